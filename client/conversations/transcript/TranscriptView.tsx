/** Shows the transcript in a scrolling area that stays at the newest message. */
import { Button, Text } from '@mantine/core'
import { type RefObject, useEffect, useLayoutEffect, useRef } from 'react'
import { Failed, Loading } from '../../components/QueryStates.tsx'
import { t } from '../../strings/language.ts'
import { OutgoingMessages } from '../answer/OutgoingMessages.tsx'
import type { Outgoing } from '../answer/outbox.ts'
import { Transcript } from './Transcript.tsx'
import { type Match, useMatch } from './use-match.ts'
import type { TranscriptData } from './use-transcript.ts'

interface TranscriptViewProps {
  readonly transcript: TranscriptData
  /** The message that a search has found. */
  readonly match: Match | undefined
  readonly selectedId: string | undefined
  readonly onSelect: (turnId: string) => void
  /** The messages that are not stored yet. */
  readonly outgoing: readonly Outgoing[]
}

export function TranscriptView({ transcript, match, outgoing, selectedId, onSelect }: TranscriptViewProps) {
  const { items, loaded, turns, turnsError, live } = transcript
  const scroller = useRef<HTMLDivElement>(null)
  const { keepPlace, notePlace } = useScrollPlace(scroller)
  const isFinding = useMatch({ scroller, match, transcript, notePlace })
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
      <div role="status">
        {isFinding ? (
          <Text size="sm" c="dimmed" ta="center" mb="md">
            {t('conversations.findingMatch')}
          </Text>
        ) : null}
      </div>
      {items.hasNextPage && !isFinding && !items.isFetchNextPageError ? (
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
        matchId={match?.itemId}
        selectedId={selectedId}
        onSelect={onSelect}
      />
      <OutgoingMessages messages={outgoing} />
    </section>
  )
}

/** The area counts as scrolled to the end if it is at most this many pixels away from it. */
const NEAR_END = 80

interface ScrollPlace {
  /** Keeps the visible messages in place at the next change, which adds earlier messages above them. */
  readonly keepPlace: () => void
  /** Reads the position at once; the browser reports it only later. */
  readonly notePlace: () => void
}

/** Scrolls to the end when content is added while the end is visible. */
function useScrollPlace(scroller: RefObject<HTMLElement | null>): ScrollPlace {
  const fromEnd = useRef(0)
  const isKept = useRef(false)
  const height = useRef(0)
  const notePlace = () => {
    const element = scroller.current
    if (element !== null) fromEnd.current = element.scrollHeight - element.scrollTop - element.clientHeight
  }
  useEffect(() => {
    const element = scroller.current
    element?.addEventListener('scroll', notePlace, { passive: true })
    return () => element?.removeEventListener('scroll', notePlace)
  })
  useLayoutEffect(() => {
    const element = scroller.current
    if (element === null || element.scrollHeight === height.current) return
    height.current = element.scrollHeight
    if (isKept.current) element.scrollTop = element.scrollHeight - element.clientHeight - fromEnd.current
    else if (fromEnd.current < NEAR_END) element.scrollTop = element.scrollHeight
    isKept.current = false
  })
  const keepPlace = () => {
    isKept.current = true
  }
  return { keepPlace, notePlace }
}
