/** Defines the clock, which is passed as a parameter so that tests can replace it. */
import { performance } from 'node:perf_hooks'
import { setTimeout as wait } from 'node:timers/promises'

export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number
  /** Milliseconds on a monotonic clock, for measuring durations. */
  monotonic(): number
  /** Resolves after `ms` milliseconds; rejects with the signal's reason if it aborts first. */
  wait(ms: number, signal?: AbortSignal): Promise<void>
}

export function unixSeconds(clock: Pick<Clock, 'now'>): number {
  return Math.floor(clock.now() / 1000)
}

/** Creates microsecond timestamps for ordering lists; they increase strictly within a process. */
export function createPositions(clock: Pick<Clock, 'now'>): () => number {
  let last = 0
  return () => {
    last = Math.max(last + 1, Math.floor(clock.now() * 1000))
    return last
  }
}

/**
 * A larger drift between the wall clock and the monotonic clock means that the wall clock was changed.
 */
const CLOCK_JUMP_MS = 60_000
/** Gives the operator a day to correct a wrong clock before expired data is deleted. */
const TRUST_JUMP_AFTER_MS = 24 * 3_600_000

/**
 * Returns a function that returns a time in Unix milliseconds. Data that expired before this time may be
 * deleted. The time is never ahead of the wall clock, and follows a forward jump of the wall clock only after
 * a day.
 */
export function createDeletionTime(
  clock: Pick<Clock, 'now' | 'monotonic'>,
  onJump: (seconds: number) => void,
): () => number {
  const read = () => ({ wallMs: clock.now(), monotonicMs: clock.monotonic() })
  let trusted = read()
  let jumpedAtMs: number | undefined
  return () => {
    const current = read()
    const expectedMs = trusted.wallMs + (current.monotonicMs - trusted.monotonicMs)
    const aheadMs = current.wallMs - expectedMs
    if (aheadMs > CLOCK_JUMP_MS) {
      if (jumpedAtMs === undefined) onJump(Math.round(aheadMs / 1000))
      jumpedAtMs ??= current.monotonicMs
      if (current.monotonicMs - jumpedAtMs < TRUST_JUMP_AFTER_MS) return expectedMs
    }
    trusted = current
    jumpedAtMs = undefined
    return current.wallMs
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
