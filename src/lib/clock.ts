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

/** A larger drift between the wall clock and the monotonic clock means that the wall clock was set. */
const CLOCK_JUMP_MS = 60_000
/** An operator has this long to correct a clock that was set to a wrong time. */
const TRUST_JUMP_AFTER_MS = 24 * 3_600_000

/**
 * Returns the time, in milliseconds, up to which expired data may be deleted. It never runs ahead of the wall
 * clock, and follows a jump of the wall clock into the future only a day later.
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
