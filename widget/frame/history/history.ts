/** Stores the conversation in the frame's storage, which the page cannot read, and shares it between tabs. */

import type { Store } from '../app-state.ts'
import { type Entry, findStreaming } from '../conversation.ts'
import { breakOffAll, mergeEntries, parseHistory, renderHistory } from './stored-entries.ts'

/** Delay between writes in milliseconds, so that not every chunk causes a write. */
const PACE_MS = 500
const PREFIX = 'parley-history '

/** Identifies the owner of a conversation. */
export interface HistoryScope {
  /** The agent or the endpoint; never a secret. */
  readonly server: string
  /** The page's id for the signed-in user. */
  readonly user: string | undefined
}

interface HistorySync {
  /** Shows the conversation of `scope`. If `isStored` is false, deletes the stored conversation. */
  readonly follow: (scope: HistoryScope | undefined, isStored: boolean) => void
  /** Deletes all users' conversations with this agent, including the one on the screen. */
  readonly forget: () => void
  /** Writes pending changes immediately, because the page is being closed. */
  readonly flush: () => void
}

/** Returns undefined if storage is blocked or full; the conversation then exists only in memory. */
function attempt<T>(use: (storage: Storage) => T): T | undefined {
  try {
    return use(localStorage)
  } catch {
    return undefined
  }
}

function nameOf({ server, user }: HistoryScope): string {
  return PREFIX + server + (user === undefined ? '' : ` ${JSON.stringify(user)}`)
}

function removeAll(isRemoved: (name: string, text: string) => boolean): void {
  attempt((storage) => {
    for (const [name, text] of Object.entries(storage)) {
      if (name.startsWith(PREFIX) && isRemoved(name, String(text))) storage.removeItem(name)
    }
  })
}

/** Synchronizes this store's conversation with the browser's storage. */
export function createHistorySync(store: Store): HistorySync {
  let scope: HistoryScope | undefined
  let hasBegun = false
  /** The conversation's storage key; undefined if it is not stored. */
  let stored: string | undefined
  /** The entries that this tab last read or wrote. */
  let base: readonly Entry[] = []
  let timer: ReturnType<typeof setTimeout> | undefined
  const currentEntries = () => store.get().conversation.entries
  const read = (name: string) => parseHistory(attempt((storage) => storage.getItem(name)) ?? '', Date.now())

  /** Replaces the conversation on the screen with the stored one. */
  function show(entries: readonly Entry[]): void {
    base = entries
    if (entries.length > 0 || currentEntries().length > 0) store.dispatch({ type: 'replaced', entries })
  }

  function flush(): void {
    clearTimeout(timer)
    timer = undefined
    const entries = currentEntries()
    const name = stored
    if (name === undefined || entries === base) return
    const text = renderHistory(mergeEntries(read(name), base, entries), Date.now())
    const isWritten = attempt((storage) => {
      if (text === undefined) storage.removeItem(name)
      else storage.setItem(name, text)
      return true
    })
    if (isWritten) base = entries
  }

  store.subscribe(() => {
    if (stored !== undefined && currentEntries() !== base) timer ??= setTimeout(flush, PACE_MS)
  })
  // Browsers dispatch `storage` events only to other tabs.
  window.addEventListener('storage', ({ key, newValue }) => {
    if (stored === undefined || (key !== null && key !== stored)) return
    if (findStreaming(store.get().conversation) !== undefined) return
    if (currentEntries() !== base) flush()
    if (currentEntries() !== base) return
    const entries = newValue === null ? [] : read(stored)
    // Ignores a reply in progress; the other tab writes again when the reply is complete.
    if (findStreaming({ entries }) === undefined) show(entries)
  })

  return {
    follow(next, isStored) {
      const isOther = !hasBegun || next?.server !== scope?.server || next?.user !== scope?.user
      const name = next === undefined ? undefined : nameOf(next)
      if (isOther) flush()
      if (!hasBegun) removeAll((_name, text) => parseHistory(text, Date.now()).length === 0)
      scope = next
      hasBegun = true
      const wasStored = !isOther && stored !== undefined
      stored = isStored ? name : undefined
      if (!isStored && name !== undefined) attempt((storage) => storage.removeItem(name))
      if (isOther) show(stored === undefined ? [] : breakOffAll(read(stored)))
      else if (isStored && !wasStored) {
        base = []
        flush()
      }
    },
    forget() {
      clearTimeout(timer)
      timer = undefined
      const { server } = scope ?? {}
      if (server !== undefined) {
        const name = nameOf({ server, user: undefined })
        removeAll((one) => one === name || one.startsWith(`${name} "`))
      }
      show([])
    },
    flush,
  }
}
