/** Encodes stored conversations, limits their size and age, and merges the versions of several tabs. */

import { isRecord } from '../../values.ts'
import { withoutData } from '../attachments/attachments.ts'
import type { Entry, Reply, Round, ToolCall } from '../conversation.ts'

const MAX_ENTRIES = 200
/** Maximum length of the entries as JSON, in UTF-16 code units. */
const MAX_LENGTH = 1024 * 1024
/** Version of the stored format; conversations in other versions are ignored. */
const VERSION = 2
/** Conversations expire this many milliseconds after their last change (30 days). */
const KEPT_MS = 30 * 24 * 60 * 60 * 1000

/** Returns the newest entries within the limits as JSON, or undefined if there are no entries. */
export function renderHistory(entries: readonly Entry[], nowMs: number): string | undefined {
  const texts: string[] = []
  let length = 0
  for (const entry of entries.slice(-MAX_ENTRIES).toReversed()) {
    const whole = JSON.stringify(entry)
    // An image must not displace the messages before it.
    const text = whole.length > MAX_LENGTH / 4 ? JSON.stringify(withoutFiles(entry)) : whole
    length += text.length + 1
    if (length > MAX_LENGTH) break
    texts.unshift(text)
  }
  if (texts.length === 0) return undefined
  return `{"version":${VERSION},"savedAtMs":${nowMs},"entries":[${texts.join(',')}]}`
}

function withoutFiles(entry: Entry): Entry {
  if (entry.kind !== 'user' || entry.attachments === undefined) return entry
  return { ...entry, attachments: withoutData(entry.attachments) }
}

/** Returns the stored entries, or an empty list if the text is invalid or has expired. */
export function parseHistory(text: string, nowMs: number): readonly Entry[] {
  try {
    const kept: unknown = JSON.parse(text)
    if (!isRecord(kept) || kept.version !== VERSION || !Array.isArray(kept.entries)) return []
    if (!(Number(kept.savedAtMs) > nowMs - KEPT_MS) || !kept.entries.every(isEntry)) return []
    return kept.entries
  } catch {
    return []
  }
}

/** Marks replies as interrupted if they were streaming when the page was closed. */
export function breakOffAll(entries: readonly Entry[]): readonly Entry[] {
  return entries.map(breakOff)
}

/**
 * Merges the versions of several tabs. `base` is what this tab last read or wrote, and `ours` is its current
 * version. This tab's additions, changes and removals since `base` apply; everything else is taken from
 * `stored`.
 */
export function mergeEntries(
  stored: readonly Entry[],
  base: readonly Entry[],
  ours: readonly Entry[],
): readonly Entry[] {
  const before = new Map(base.map((entry) => [entry.id, entry]))
  const now = new Map(ours.map((entry) => [entry.id, entry]))
  const isChanged = (entry: Entry) => before.get(entry.id) !== entry
  const merged = stored.flatMap((entry) => {
    const own = now.get(entry.id)
    if (own === undefined) return before.has(entry.id) ? [] : [entry]
    return [isChanged(own) ? own : entry]
  })
  const storedIds = new Set(stored.map(({ id }) => id))
  for (const [index, entry] of ours.entries()) {
    if (storedIds.has(entry.id) || !isChanged(entry)) continue
    // Inserts a reply directly after its question.
    const question = entry.kind === 'reply' ? merged.findIndex(({ id }) => id === ours[index - 1]?.id) : -1
    merged.splice(question === -1 ? merged.length : question + 1, 0, entry)
  }
  return merged
}

function breakOff(entry: Entry): Entry {
  if (entry.kind !== 'reply' || entry.status !== 'streaming') return entry
  const rounds = entry.rounds.map((round) => ({ ...round, calls: round.calls.map(endCall) }))
  return { ...entry, rounds, status: 'interrupted', failure: { code: 'reloaded' } }
}

function endCall(call: ToolCall): ToolCall {
  return call.status === 'asking' || call.status === 'running' ? { ...call, status: 'failed' } : call
}

function isEntry(value: unknown): value is Entry {
  if (!isRecord(value) || typeof value.id !== 'string') return false
  if (value.kind === 'user') return typeof value.text === 'string' && areAttachments(value.attachments)
  const statuses: readonly unknown[] = ['streaming', 'done', 'stopped', 'failed', 'interrupted']
  const { kind, rounds, status } = value as Partial<Record<keyof Reply, unknown>>
  return (
    kind === 'reply' &&
    statuses.includes(status) &&
    Array.isArray(rounds) &&
    rounds.every(isRound) &&
    (value.versions === undefined || isVersions(value.versions))
  )
}

export function areAttachments(value: unknown): boolean {
  if (value === undefined) return true
  return (
    Array.isArray(value) &&
    value.every(
      (one: unknown) =>
        isRecord(one) &&
        [one.id, one.type, one.data ?? '', one.name ?? ''].every((text) => typeof text === 'string'),
    )
  )
}

function isVersions(value: unknown): boolean {
  return (
    isRecord(value) &&
    [value.before, value.after].every(
      (list) => Array.isArray(list) && list.every((one) => isEntry(one) && one.kind === 'reply'),
    )
  )
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
