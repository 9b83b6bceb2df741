/** Defines the clock, which is passed as a parameter so that tests can replace it. */
import { performance } from 'node:perf_hooks'
import { setTimeout as wait } from 'node:timers/promises'

export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number
  /** Milliseconds on a monotonic clock, for windows, leases and deadlines. */
  monotonic(): number
  /** Resolves after `ms` milliseconds; rejects with the reason of the signal if it aborts first. */
  wait(ms: number, signal?: AbortSignal): Promise<void>
}

export function unixSeconds(clock: Pick<Clock, 'now'>): number {
  return Math.floor(clock.now() / 1000)
}

/** Creates numbers to order lists by, which grow with time and are unique within a process. */
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
