/** What an artifact can be, and what can happen to it. Contract: States and transitions. */

/**
 * `unknown` is whatever nobody has begun to upload: an id never seen, one that is only reserved, and one that is gone again.
 * `uploading` until the last byte, `processing` until the bytes are what will be served, then `ready`.
 */
export const states = ['unknown', 'uploading', 'processing', 'ready'] as const

export type State = (typeof states)[number]

/** For each thing that can happen: in which states it can, and what follows. Whatever is not here is refused. */
const transitions = {
  /** An upload is created. */
  create: { unknown: 'uploading' },
  /** The whole declared length has been received. */
  complete: { uploading: 'processing' },
  /** The bytes to be served are made, or will be served as they came. */
  convert: { processing: 'ready' },
  /** The upload was not finished in time. */
  expire: { uploading: 'unknown' },
  /** The bytes are not what was announced, or dangerous. */
  reject: { uploading: 'unknown', processing: 'unknown' },
  /** Somebody who may do so removes it. */
  remove: { uploading: 'unknown', processing: 'unknown', ready: 'unknown' },
} as const satisfies Record<string, Partial<Record<State, State>>>

export type Occurrence = keyof typeof transitions

export const occurrences = Object.keys(transitions) as readonly Occurrence[]

/** The state after that has happened in `state`; undefined where it cannot. */
export function findNextState(state: State, occurrence: Occurrence): State | undefined {
  const next: Partial<Record<State, State>> = transitions[occurrence]
  return next[state]
}

/** The states in which that can happen: what a statement that makes it happen asks for. */
export function listStatesBefore(occurrence: Occurrence): State[] {
  return states.filter((state) => findNextState(state, occurrence) !== undefined)
}

/** The one state after that has happened, whatever was before. */
export function stateAfter(occurrence: Occurrence): State {
  const [before] = listStatesBefore(occurrence)
  return findNextState(before as State, occurrence) as State
}
