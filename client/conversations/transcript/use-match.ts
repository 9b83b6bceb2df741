/** Scrolls to the message that a search has found, and marks the words of the search in it. */
import { type RefObject, useEffect, useLayoutEffect, useRef } from 'react'
import { splitHits } from '../../search-hits.ts'
import type { TranscriptData } from './use-transcript.ts'

export interface Match {
  readonly itemId: string
  /** The search. */
  readonly query: string
}

/** The name of the highlight in the style sheet. */
const HIGHLIGHT = 'search-hit'

interface MatchOptions {
  readonly scroller: RefObject<HTMLElement | null>
  readonly match: Match | undefined
  readonly transcript: TranscriptData
  /** Records the new position of the scrolling area at once. */
  readonly notePlace: () => void
}

/**
 * Loads earlier messages until the match is one of them, then scrolls to it and moves the focus there.
 * Returns whether it is still loading messages.
 */
export function useMatch({ scroller, match, transcript, notePlace }: MatchOptions): boolean {
  const { items, loaded } = transcript
  const { hasNextPage, isFetchingNextPage, isFetchNextPageError, fetchNextPage } = items
  const isLoaded = match === undefined || loaded.some(({ id }) => id === match.itemId)
  const isMissing = !isLoaded && hasNextPage && !isFetchNextPageError
  useEffect(() => {
    if (isMissing && !isFetchingNextPage) void fetchNextPage()
  }, [isMissing, isFetchingNextPage, fetchNextPage])

  const shown = useRef<Match>(undefined)
  useLayoutEffect(() => {
    const area = scroller.current
    const isShown = shown.current?.itemId === match?.itemId && shown.current?.query === match?.query
    if (match === undefined || isShown || area === null) return
    const message = area.querySelector<HTMLElement>(`[data-item="${CSS.escape(match.itemId)}"]`)
    if (message === null) return
    shown.current = match
    const ranges = findRanges(message, match.query)
    if ('highlights' in CSS) CSS.highlights.set(HIGHLIGHT, new Highlight(...ranges))
    scrollTo(area, ranges[0] ?? message)
    notePlace()
    message.focus({ preventScroll: true })
  })
  useEffect(() => () => void ('highlights' in CSS && CSS.highlights.delete(HIGHLIGHT)), [])
  return isMissing
}

/** Finds the words in the elements that are already rendered, because answers are rendered as Markdown. */
function findRanges(element: HTMLElement, query: string): Range[] {
  const texts = document.createTreeWalker(element, NodeFilter.SHOW_TEXT)
  const ranges: Range[] = []
  while (texts.nextNode() !== null) {
    const node = texts.currentNode as Text
    if (node.parentElement?.closest('.transcript-head') !== null) continue
    let at = 0
    for (const { text, isHit } of splitHits(node.data, query)) {
      if (isHit) {
        const range = new Range()
        range.setStart(node, at)
        range.setEnd(node, at + text.length)
        ranges.push(range)
      }
      at += text.length
    }
  }
  return ranges
}

/** Scrolls the first word to the upper third, even if its message is longer than the area. */
function scrollTo(area: HTMLElement, target: Range | HTMLElement): void {
  const distance = target.getBoundingClientRect().top - area.getBoundingClientRect().top
  area.scrollTop += distance - area.clientHeight / 3
}
