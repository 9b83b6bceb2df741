/** Shows the transcript in a scrolling area that stays at the newest message. */
import { Button } from '@mantine/core'
import { type RefObject, useEffect, useLayoutEffect, useRef } from 'react'
import { Failed, Loading } from '../../components/QueryStates.tsx'
import { t } from '../../strings/language.ts'
import { OutgoingMessages } from '../answer/OutgoingMessages.tsx'
import type { Outgoing } from '../answer/outbox.ts'
import { Transcript } from './Transcript.tsx'
import type { TranscriptData } from './use-transcript.ts'

interface TranscriptViewProps {
  readonly transcript: TranscriptData
  readonly selectedId: string | undefined
  readonly onSelect: (turnId: string) => void
  /** The messages that are not stored yet. */
  readonly outgoing: readonly Outgoing[]
}

export function TranscriptView({ transcript, outgoing, selectedId, onSelect }: TranscriptViewProps) {
  const { items, loaded, turns, turnsError, live } = transcript
  const scroller = useRef<HTMLDivElement>(null)
  const keepPlace = useScrollPlace(scroller)
  const error = items.error ?? turnsError
  if (items.data === undefined || turns === undefined)
    return (
      <div className="desk-transcript">
        {error === null ? (
          <Loading what="messages" rows={4} height={72} />
        ) : (
          <Failed error={error} what="messages" retry={() => void items.refetch().then(transcript.refresh)} />
        )}
      </div>
    )
  const loadEarlier = () => {
    keepPlace()
    void items.fetchNextPage()
  }
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable region must be reachable by keyboard
    <section className="desk-transcript" ref={scroller} tabIndex={0} aria-label={t('conversations.messages')}>
      {items.isFetchNextPageError ? (
        <Failed error={items.error} title={t('common.moreMessagesFailed')} retry={loadEarlier} />
      ) : null}
      {items.hasNextPage && !items.isFetchNextPageError ? (
        <Button
          variant="default"
          mx="auto"
          display="block"
          mb="md"
          loading={items.isFetchingNextPage}
          onClick={loadEarlier}
        >
          {t('conversations.loadEarlier')}
        </Button>
      ) : null}
      <Transcript
        items={loaded}
        turns={turns}
        isWhole={!items.hasNextPage}
        live={live}
        selectedId={selectedId}
        onSelect={onSelect}
      />
      <OutgoingMessages messages={outgoing} />
    </section>
  )
}

/** Distance from its end in pixels within which the area counts as scrolled to the end. */
const NEAR_END = 80

/**
 * Scrolls to the end when content is added while the end is visible. After the returned function was called,
 * keeps the visible messages in place instead, because earlier ones are added above them.
 */
function useScrollPlace(scroller: RefObject<HTMLElement | null>): () => void {
  const fromEnd = useRef(0)
  const isKept = useRef(false)
  const height = useRef(0)
  useEffect(() => {
    const element = scroller.current
    if (element === null) return
    const note = () => {
      fromEnd.current = element.scrollHeight - element.scrollTop - element.clientHeight
    }
    element.addEventListener('scroll', note, { passive: true })
    return () => element.removeEventListener('scroll', note)
  })
  useLayoutEffect(() => {
    const element = scroller.current
    if (element === null || element.scrollHeight === height.current) return
    height.current = element.scrollHeight
    if (isKept.current) element.scrollTop = element.scrollHeight - element.clientHeight - fromEnd.current
    else if (fromEnd.current < NEAR_END) element.scrollTop = element.scrollHeight
    isKept.current = false
  })
  return () => {
    isKept.current = true
  }
}
