/** Stores the conversation in the frame's storage, which the page cannot read, and shares it between tabs. */

import type { Store } from '../app-state.ts'
import { type Entry, findStreaming } from '../conversation.ts'
import { createBrowserStorage, type StorageScope } from './browser-storage.ts'
import { breakOffAll, mergeEntries, parseHistory, renderHistory } from './stored-entries.ts'

/** Delay between writes in milliseconds, so that not every chunk causes a write. */
const PACE_MS = 500

interface HistorySync {
  /** Shows the conversation of `scope`. If `isStored` is false, deletes the stored conversation. */
  readonly follow: (scope: StorageScope | undefined, isStored: boolean) => void
  /** Deletes all users' conversations with this agent, including the one on the screen. */
  readonly forget: () => void
}

const storage = createBrowserStorage('parley-history ')

/** Synchronizes this store's conversation with the browser's storage. */
export function createHistorySync(store: Store): HistorySync {
  let scope: StorageScope | undefined
  let hasBegun = false
  /** The conversation's storage key; undefined if it is not stored. */
  let stored: string | undefined
  /** The entries that this tab last read or wrote. */
  let base: readonly Entry[] = []
  let timer: ReturnType<typeof setTimeout> | undefined
  const currentEntries = () => store.get().conversation.entries
  const read = (name: string) => parseHistory(storage.read(name), Date.now())

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
    // Until the agent is known, the server may be the one that stores its conversations.
    if (name === undefined || entries === base || store.get().home !== 'browser') return
    const text = renderHistory(mergeEntries(read(name), base, entries), Date.now())
    if (storage.write(name, text)) base = entries
  }

  store.subscribe(() => {
    if (stored !== undefined && currentEntries() !== base) timer ??= setTimeout(flush, PACE_MS)
  })
  window.addEventListener('pagehide', flush)
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
      const name = next === undefined ? undefined : storage.nameOf(next)
      if (isOther) flush()
      if (!hasBegun) storage.removeAll((_name, text) => parseHistory(text, Date.now()).length === 0)
      scope = next
      hasBegun = true
      const wasStored = !isOther && stored !== undefined
      stored = isStored ? name : undefined
      if (!isStored && name !== undefined) storage.write(name, undefined)
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
      if (server !== undefined) storage.removeServer(server)
      show([])
    },
  }
}
