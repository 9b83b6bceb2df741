/** Shows a button that copies a text, and confirms the copy. */

import { useEffect, useState } from 'react'
import { copyText } from '../copy-text.ts'
import { useFrame } from '../frame-context.ts'
import { CopyIcon, DoneIcon } from './icons.tsx'

export function CopyButton({ text, name }: { text: string; name: string }) {
  const { strings } = useFrame().language
  const [isCopied, flashCopied] = useFlash()
  const label = isCopied ? strings.copied : name
  return (
    <button
      type="button"
      className="action"
      title={label}
      aria-label={label}
      onClick={async () => {
        if (await copyText(text)) flashCopied()
      }}
    >
      {isCopied ? <DoneIcon /> : <CopyIcon />}
    </button>
  )
}

const FLASH_MS = 2000

/** Returns a flag and a function that sets it for two seconds. */
export function useFlash(): readonly [boolean, () => void] {
  const [count, setCount] = useState(0)
  useEffect(() => {
    if (count === 0) return
    const timer = setTimeout(() => setCount(0), FLASH_MS)
    return () => clearTimeout(timer)
  }, [count])
  return [count > 0, () => setCount((before) => before + 1)]
}
