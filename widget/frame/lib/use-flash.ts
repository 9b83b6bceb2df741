/** Something that is so for a moment. */
import { useEffect, useState } from 'react'

const FLASH_MS = 2000

/** Whether it is so, and what makes it so. */
export function useFlash(): readonly [boolean, () => void] {
  const [count, setCount] = useState(0)
  useEffect(() => {
    if (count === 0) return
    const timer = setTimeout(() => setCount(0), FLASH_MS)
    return () => clearTimeout(timer)
  }, [count])
  return [count > 0, () => setCount((before) => before + 1)]
}
