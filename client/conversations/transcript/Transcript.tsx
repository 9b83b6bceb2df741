/** Shows the messages and tool calls of a conversation, grouped by turn. */
import { Button, Text } from '@mantine/core'
import type { ReactNode } from 'react'
import { renderDate } from '../../format.ts'
import { Icon } from '../../shell/icons.tsx'
import { t } from '../../strings/language.ts'
import { explain } from '../explain.ts'
import { type Item, isRunning, type Turn } from '../queries.ts'
import { type Entry, findResults, isShownWithCall, toEntries } from './entries.ts'
import { ItemView, LiveMessage } from './ItemView.tsx'
import type { LiveAnswer } from './use-transcript.ts'

interface TranscriptProps {
  readonly items: readonly Item[]
  readonly turns: readonly Turn[]
  /** Whether all items are loaded. */
  readonly isWhole: boolean
  readonly live: LiveAnswer | undefined
  /** Id of the message that a search has found. */
  readonly matchId: string | undefined
  readonly selectedId: string | undefined
  /** Explains a turn. */
  readonly onSelect: (turnId: string) => void
}

export function Transcript({ items, turns, isWhole, live, matchId, selectedId, onSelect }: TranscriptProps) {
  const results = findResults(items)
  const entries = toEntries(items, turns, isWhole)
  if (entries.length === 0)
    return (
      <Text c="dimmed" size="sm" ta="center" py="xl">
        {t('conversations.noMessages')}
      </Text>
    )
  const days = entries.map((entry) => renderDate(startOf(entry)))
  return (
    <ol className="transcript" aria-label={t('conversations.transcript')}>
      {entries.map(({ key, turn, items: own }, index) => (
        <li
          key={key}
          className="transcript-turn"
          data-status={turn?.status}
          data-selected={(turn !== undefined && turn.id === selectedId) || undefined}
        >
          {days[index] === days[index - 1] ? null : <p className="transcript-day">{days[index]}</p>}
          <Replaced turn={turn} isOpen={own.some(({ id }) => id === matchId)}>
            {own
              .filter((item) => !isShownWithCall(item, items))
              .map((item) => (
                <ItemView
                  key={item.id}
                  item={item}
                  result={results.get(String(item.call_id))}
                  isMatch={item.id === matchId}
                />
              ))}
            {turn === undefined ? null : (
              <TurnEnd
                turn={turn}
                live={live?.turnId === turn.id ? live : undefined}
                isSelected={turn.id === selectedId}
                onSelect={() => onSelect(turn.id)}
              />
            )}
          </Replaced>
        </li>
      ))}
    </ol>
  )
}

const replaced = {
  edited: t('conversations.replacedByEdit'),
  regenerated: t('conversations.replacedByAnswer'),
  removed: t('conversations.removedByVisitor'),
} as const

interface ReplacedProps {
  readonly turn: Turn | undefined
  /** Whether the turn starts expanded because it contains the search match. */
  readonly isOpen: boolean
  readonly children: ReactNode
}

/** Folds a turn that the visitor has replaced. */
function Replaced({ turn, isOpen, children }: ReplacedProps) {
  if (turn?.replaced == null) return children
  return (
    <details className="transcript-replaced" open={isOpen}>
      <summary>{replaced[turn.replaced.how]}</summary>
      <div className="transcript-turn">{children}</div>
    </details>
  )
}

function startOf({ items: [first], turn }: Entry): number {
  return first?.parley?.created_at ?? turn?.created_at ?? 0
}

interface TurnEndProps {
  readonly turn: Turn
  readonly live: LiveAnswer | undefined
  readonly isSelected: boolean
  readonly onSelect: () => void
}

/**
 * Shows the answer that is being written, or why a turn has no complete answer, and the button that explains
 * it.
 */
function TurnEnd({ turn, live, isSelected, onSelect }: TurnEndProps) {
  const problem = explain(turn)
  return (
    <>
      {isRunning(turn) ? <LiveMessage text={live?.text ?? ''} /> : null}
      {problem === undefined ? null : (
        <p className="transcript-problem" data-status={turn.status}>
          <Icon name={turn.status === 'failed' ? 'warning' : 'stop'} size={16} />
          {problem}
        </p>
      )}
      <div className="transcript-foot">
        <Button variant="subtle" color="gray" size="compact-xs" aria-pressed={isSelected} onClick={onSelect}>
          {t('conversations.turn', { number: turn.number })} · {t('conversations.why')}
        </Button>
        {turn.ratings.map(({ source, value }) => (
          <span key={source} className="desk-thumb" data-value={value}>
            <Icon name={value === 'up' ? 'thumbUp' : 'thumbDown'} size={13} />
            <span className="for-screen-readers">
              {t(value === 'up' ? 'conversations.ratedUp' : 'conversations.ratedDown')}
            </span>
          </span>
        ))}
      </div>
    </>
  )
}
