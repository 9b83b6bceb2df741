/** Keeps the visitor's newest question at the top of the view while its answer grows below it. */
import { type RefObject, useCallback, useEffect, useLayoutEffect, useRef, useState } from 'react'

/** Distance from the end, in pixels, up to which the end counts as visible. */
const NEAR_PX = 48
/** Distance between a pinned question and the top of the view, in pixels. */
const TOP_PX = 12
/** Milliseconds after an input event during which scrolling is attributed to the visitor. */
const INPUT_MS = 2000
/** Maximum share of the view's height that a pinned question covers. */
const QUESTION_SHARE = 0.4

interface PinnedQuestion {
  readonly scroller: RefObject<HTMLElement | null>
  readonly content: RefObject<HTMLDivElement | null>
  /** The element after the content that makes room for the pinned question. */
  readonly spacer: RefObject<HTMLDivElement | null>
  /** Whether the end of the messages is below the view. */
  readonly isEndHidden: boolean
  /** Scrolls to the end, and follows it until the visitor scrolls up. */
  readonly followEnd: () => void
}

/**
 * Scrolls each new question to the top. Growing text does not move the view, unless the visitor has scrolled
 * to the end. `question` is the newest question's id; an earlier conversation opens at its end. Without
 * `isPinning`, each new message scrolls to the end.
 */
export function usePinnedQuestion(question: string | undefined, isPinning: boolean): PinnedQuestion {
  const scroller = useRef<HTMLElement>(null)
  const content = useRef<HTMLDivElement>(null)
  const spacer = useRef<HTMLDivElement>(null)
  const isFollowing = useRef(true)
  /**
   * True from a new question until the visitor scrolls. While true, the question keeps its place even if
   * content above it changes.
   */
  const isPinned = useRef(false)
  const shown = useRef<string>(undefined)
  const [isEndHidden, setIsEndHidden] = useState(false)

  const scrollTo = useCallback((top: number) => {
    const box = scroller.current as HTMLElement
    box.scrollTop = top
  }, [])

  const update = useCallback(() => {
    const [box, inner] = [scroller.current as HTMLElement, content.current as HTMLDivElement]
    const room = isFollowing.current ? 0 : box.clientHeight - (endOf(inner) - pinnedTopOf(box, inner))
    ;(spacer.current as HTMLDivElement).style.blockSize = `${Math.max(0, Math.floor(room))}px`
    if (isFollowing.current) scrollTo(endOf(inner) - box.clientHeight)
    else if (isPinned.current) scrollTo(pinnedTopOf(box, inner))
    setIsEndHidden(distanceToEnd(box, inner) > NEAR_PX)
  }, [scrollTo])

  const followEnd = useCallback(() => {
    isFollowing.current = true
    update()
  }, [update])

  useEffect(() => {
    const [box, inner] = [scroller.current as HTMLElement, content.current as HTMLDivElement]
    let top = box.scrollTop
    let inputAt = Number.NEGATIVE_INFINITY
    function onInput({ timeStamp }: Event): void {
      inputAt = timeStamp
    }
    function onScroll({ timeStamp }: Event): void {
      const moved = box.scrollTop - top
      top = box.scrollTop
      // Ignores scrolling by the browser, for example when content above the view changes.
      const isByVisitor = timeStamp - inputAt < INPUT_MS
      if (isByVisitor && moved !== 0) isPinned.current = false
      if (isByVisitor && moved < 0) isFollowing.current = false
      if (isByVisitor && moved > 0 && distanceToEnd(box, inner) <= NEAR_PX) isFollowing.current = true
      setIsEndHidden(distanceToEnd(box, inner) > NEAR_PX)
    }
    const inputs = ['wheel', 'touchmove', 'keydown', 'pointerdown']
    for (const name of inputs) box.addEventListener(name, onInput, { passive: true })
    const observer = new ResizeObserver(update)
    box.addEventListener('scroll', onScroll, { passive: true })
    observer.observe(inner)
    observer.observe(box)
    return () => {
      observer.disconnect()
      box.removeEventListener('scroll', onScroll)
      for (const name of inputs) box.removeEventListener(name, onInput)
    }
  }, [update])

  useLayoutEffect(() => {
    const isNew = shown.current !== undefined && question !== undefined && question !== shown.current
    const isFirst = shown.current === undefined && isStreaming(content.current)
    shown.current = question
    isPinned.current = isPinning && (isNew || isFirst)
    isFollowing.current = !isPinned.current
    update()
  }, [question, isPinning, update])

  return { scroller, content, spacer, isEndHidden, followEnd }
}

/** Returns the end of the content in the scroller's coordinates. */
function endOf(inner: HTMLElement): number {
  return inner.offsetTop + inner.offsetHeight
}

function distanceToEnd(box: HTMLElement, inner: HTMLElement): number {
  return endOf(inner) - box.scrollTop - box.clientHeight
}

/** Returns the scroll position that shows the newest question at the top, or the end of a long question. */
function pinnedTopOf(box: HTMLElement, inner: HTMLElement): number {
  const question = [...inner.querySelectorAll<HTMLElement>('.user')].at(-1)
  if (question === undefined) return 0
  const top = question.getBoundingClientRect().top - box.getBoundingClientRect().top + box.scrollTop - TOP_PX
  return Math.max(0, top, top + question.offsetHeight - box.clientHeight * QUESTION_SHARE)
}

/** Returns whether an answer is streaming, which means that the visitor has just asked a question. */
function isStreaming(inner: HTMLElement | null): boolean {
  return inner?.querySelector('[aria-busy=true]') != null
}
