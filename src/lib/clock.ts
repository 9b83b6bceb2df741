/** Time, passed in wherever it is needed, so that tests can set it. */
import { performance } from 'node:perf_hooks'
import { setTimeout as wait } from 'node:timers/promises'

export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number
  /** Milliseconds on a clock that never jumps: for windows, leases and deadlines. */
  monotonic(): number
  /** Resolves after that many milliseconds; rejects with the signal's reason when it aborts first. */
  wait(ms: number, signal?: AbortSignal): Promise<void>
}

/** Unix seconds now, as every table and answer holds them. */
export function unixSeconds(clock: Pick<Clock, 'now'>): number {
  return Math.floor(clock.now() / 1000)
}

/** Numbers that grow with time and never repeat within a process: what lists are ordered by. */
export function createPositions(clock: Pick<Clock, 'now'>): () => number {
  let last = 0
  return () => {
    last = Math.max(last + 1, Math.floor(clock.now() * 1000))
    return last
  }
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  async wait(ms, signal) {
    try {
      await wait(ms, undefined, signal === undefined ? {} : { signal })
    } catch {
      throw signal?.reason
    }
  },
}
