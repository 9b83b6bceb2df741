/** Keeps the conversation in the frame's own storage, where the page cannot read it; without one it lives as long as the frame. */
import type { Entry } from '../conversation/state.ts'
import { parseHistory, renderHistory } from './limits.ts'

/** How long changes are gathered before they are written. */
const PACE_MS = 500

export interface History {
  readonly load: () => readonly Entry[]
  /** Writes the entries a moment later, the newest of several. */
  readonly save: (entries: readonly Entry[]) => void
  /** Writes what waits, at once: the page goes away. */
  readonly flush: () => void
  readonly remove: () => void
}

/** The history of one agent. `getStorage` may throw: a browser can forbid storage in frames. */
export function createHistory(scope: string, getStorage: () => Storage): History {
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
