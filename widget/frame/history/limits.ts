/** How much of a conversation is kept, and what is read back of what was kept. */
import { isRecord } from '../check-message.ts'
import type { Entry, Reply, Round, ToolCall } from '../conversation/state.ts'

const MOST_ENTRIES = 200
/** In UTF-16 code units of its JSON. */
const MOST_LENGTH = 1024 * 1024
/** What was kept by another version of this form is not read. */
const VERSION = 1

/** The newest entries that fit, as JSON; undefined when there is nothing to keep. */
export function renderHistory(entries: readonly Entry[]): string | undefined {
  const texts: string[] = []
  let length = 0
  for (const entry of entries.slice(-MOST_ENTRIES).toReversed()) {
    const text = JSON.stringify(entry)
    length += text.length + 1
    if (length > MOST_LENGTH) break
    texts.unshift(text)
  }
  return texts.length === 0 ? undefined : `{"version":${VERSION},"entries":[${texts.join(',')}]}`
}

/** The entries of such a text; a reply that was being written then is marked as broken off. Nothing of what has another form. */
export function parseHistory(text: string): readonly Entry[] {
  try {
    const kept: unknown = JSON.parse(text)
    if (!isRecord(kept) || kept.version !== VERSION || !Array.isArray(kept.entries)) return []
    if (!kept.entries.every(isEntry)) return []
    return kept.entries.map(breakOff)
  } catch {
    return []
  }
}

function breakOff(entry: Entry): Entry {
  if (entry.kind === 'user' || entry.status !== 'streaming') return entry
  const rounds = entry.rounds.map((round) => ({ ...round, calls: round.calls.map(endCall) }))
  return { ...entry, rounds, status: 'interrupted', failure: { code: 'reloaded' } }
}

function endCall(call: ToolCall): ToolCall {
  return call.status === 'asking' || call.status === 'running' ? { ...call, status: 'failed' } : call
}

function isEntry(value: unknown): value is Entry {
  if (!isRecord(value) || typeof value.id !== 'string') return false
  if (value.kind === 'user') return typeof value.text === 'string'
  const statuses: readonly unknown[] = ['streaming', 'done', 'stopped', 'failed', 'interrupted']
  const { kind, rounds, status } = value as Partial<Record<keyof Reply, unknown>>
  return kind === 'reply' && statuses.includes(status) && Array.isArray(rounds) && rounds.every(isRound)
}

function isRound(value: unknown): value is Round {
  return (
    isRecord(value) &&
    typeof value.text === 'string' &&
    Array.isArray(value.calls) &&
    value.calls.every(
      (call: unknown) =>
        isRecord(call) &&
        [call.id, call.name, call.argumentsText, call.status].every((text) => typeof text === 'string'),
    )
  )
}
