/** The smallest store that does: one state, one pure reducer, listeners. */

export interface Store<State, Action> {
  readonly get: () => State
  readonly dispatch: (action: Action) => void
  /** Calls `listener` after each change; the answer ends that. */
  readonly subscribe: (listener: () => void) => () => void
}

/** A store that starts with `initial`. */
export function createStore<State, Action>(
  reduce: (state: State, action: Action) => State,
  initial: State,
): Store<State, Action> {
  let state = initial
  const listeners = new Set<() => void>()
  return {
    get: () => state,
    dispatch(action) {
      const next = reduce(state, action)
      if (next === state) return
      state = next
      for (const listener of listeners) listener()
    },
    subscribe(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
}
