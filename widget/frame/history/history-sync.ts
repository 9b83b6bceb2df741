/** Brings the conversation of an agent back, and keeps it as it goes on. */
import type { AppAction, AppState } from '../app-state.ts'
import type { Store } from '../store.ts'
import { createHistory, type History } from './history.ts'

export interface Keeper {
  /** From now on the conversation is that of `scope`; `isKept`: it outlives the frame, otherwise what was kept is deleted. */
  readonly keep: (scope: string | undefined, isKept: boolean) => void
  /** Writes what has not been written yet. */
  readonly flush: () => void
}

/** Keeps the conversation in that store. */
export function createKeeper(store: Store<AppState, AppAction>): Keeper {
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
    keep(scope, isKept) {
      const next = scope === undefined ? undefined : createHistory(scope, () => localStorage)
      const isOther = !hasBegun || scope !== current
      if (isOther) changeScope(scope, isKept ? next : undefined)
      if (!isKept) {
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
