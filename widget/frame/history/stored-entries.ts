/** Stores the conversation in the frame's own storage, which the page cannot read. */

import { isRecord } from '../values.ts'
import type { Store } from './app-state.ts'
import type { Entry, Reply, Round, ToolCall } from './conversation.ts'

/** How long changes are gathered before they are written. */
const PACE_MS = 500

interface History {
  readonly load: () => readonly Entry[]
  /** Writes the entries a moment later, the newest of several. */
  readonly save: (entries: readonly Entry[]) => void
  /** Writes what waits, at once: the page goes away. */
  readonly flush: () => void
  readonly remove: () => void
}

/** The history of one agent. `getStorage` may throw: a browser can forbid storage in frames. */
function createHistory(scope: string, getStorage: () => Storage): History {
  const key = `parley-history ${scope}`
  let waiting: readonly Entry[] | undefined
  let timer: ReturnType<typeof setTimeout> | undefined

  function attempt<T>(use: (storage: Storage) => T): T | undefined {
    try {
      return use(getStorage())
    } catch {
      // Forbidden or full: the conversation goes on in memory.
      return undefined
    }
  }

  function flush(): void {
    clearTimeout(timer)
    timer = undefined
    if (waiting === undefined) return
    const text = renderHistory(waiting)
    waiting = undefined
    attempt((storage) => (text === undefined ? storage.removeItem(key) : storage.setItem(key, text)))
  }

  return {
    load: () => parseHistory(attempt((storage) => storage.getItem(key)) ?? ''),
    save(entries) {
      waiting = entries
      timer ??= setTimeout(flush, PACE_MS)
    },
    flush,
    remove() {
      clearTimeout(timer)
      timer = undefined
      waiting = undefined
      attempt((storage) => storage.removeItem(key))
    },
  }
}

const MAX_ENTRIES = 200
/** In UTF-16 code units of its JSON. */
const MAX_LENGTH = 1024 * 1024
/** What was kept by another version of this form is not read. */
const VERSION = 1

/** The newest entries that fit, as JSON; undefined when there is nothing to keep. */
export function renderHistory(entries: readonly Entry[]): string | undefined {
  const texts: string[] = []
  let length = 0
  for (const entry of entries.slice(-MAX_ENTRIES).toReversed()) {
    const text = JSON.stringify(entry)
    length += text.length + 1
    if (length > MAX_LENGTH) break
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

interface HistorySync {
  /** From now on the conversation is that of `scope`; `isStored`: it outlives the frame, otherwise what was kept is deleted. */
  readonly follow: (scope: string | undefined, isStored: boolean) => void
  /** Writes what has not been written yet. */
  readonly flush: () => void
}

/** Keeps the conversation in that store. */
export function createHistorySync(store: Store): HistorySync {
  let current: string | undefined
  let hasBegun = false
  let history: History | undefined
  let kept = store.get().conversation.entries

  store.subscribe(() => {
    const { entries } = store.get().conversation
    if (entries === kept) return
    kept = entries
    history?.save(entries)
  })

  function changeScope(scope: string | undefined, next: History | undefined): void {
    history?.flush()
    history = undefined
    const loaded = next?.load() ?? []
    const isEmpty = loaded.length === 0 && store.get().conversation.entries.length === 0
    if (!isEmpty) store.dispatch({ type: 'replaced', entries: loaded })
    current = scope
    hasBegun = true
  }

  return {
    follow(scope, isStored) {
      const next = scope === undefined ? undefined : createHistory(scope, () => localStorage)
      const isOther = !hasBegun || scope !== current
      if (isOther) changeScope(scope, isStored ? next : undefined)
      if (!isStored) {
        history?.flush()
        next?.remove()
        history = undefined
      } else if (isOther || history === undefined) {
        history = next
        if (!isOther) history?.save(store.get().conversation.entries)
      }
    },
    flush: () => history?.flush(),
  }
}
