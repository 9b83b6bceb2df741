/** Keeps the newest text in sight, unless the person has scrolled away from it. */
import { type RefObject, useCallback, useEffect, useRef, useState } from 'react'

/** Nearer to the end than that is at the end. */
const NEAR_PX = 48

interface Stick {
  readonly scroller: RefObject<HTMLElement | null>
  readonly content: RefObject<HTMLDivElement | null>
  /** Something came that is out of sight. */
  readonly hasNew: boolean
  readonly scrollToEnd: () => void
}

/** `stickKey` changing (the person has said something) brings the end into sight again. */
export function useStickToBottom(stickKey: unknown): Stick {
  const scroller = useRef<HTMLElement>(null)
  const content = useRef<HTMLDivElement>(null)
  const isAtEnd = useRef(true)
  const [hasNew, setHasNew] = useState(false)

  const scrollToEnd = useCallback(() => {
    isAtEnd.current = true
    setHasNew(false)
    const { current } = scroller
    if (current !== null) current.scrollTop = current.scrollHeight
  }, [])

  useEffect(() => {
    const box = scroller.current as HTMLElement
    const inner = content.current as HTMLDivElement
    let height = inner.offsetHeight
    let top = box.scrollTop
    function onScroll(): void {
      const isNear = box.scrollHeight - box.scrollTop - box.clientHeight < NEAR_PX
      // Text that has grown moves the end away; only a person moves back.
      if (isNear) isAtEnd.current = true
      else if (box.scrollTop < top) isAtEnd.current = false
      top = box.scrollTop
      if (isAtEnd.current) setHasNew(false)
    }
    const observer = new ResizeObserver(() => {
      const hasGrown = inner.offsetHeight > height
      height = inner.offsetHeight
      if (isAtEnd.current) box.scrollTop = box.scrollHeight
      else if (hasGrown) setHasNew(true)
    })
    box.addEventListener('scroll', onScroll, { passive: true })
    observer.observe(inner)
    observer.observe(box)
    return () => {
      observer.disconnect()
      box.removeEventListener('scroll', onScroll)
    }
  }, [])

  // biome-ignore lint/correctness/useExhaustiveDependencies: the key is what this waits for
  useEffect(scrollToEnd, [stickKey])
  return { scroller, content, hasNew, scrollToEnd }
}
