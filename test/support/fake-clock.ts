/** Provides a clock that advances only when a test advances it. */
import { type Clock, systemClock } from '../../src/lib/clock.ts'

export interface FakeClock extends Clock {
  /** Advances the wall clock and the monotonic clock. */
  advance(seconds: number): void
}

/** Creates a clock that starts at a Unix time in seconds; its `wait` takes a millisecond. */
export function createFakeClock(startSeconds = 1_800_000_000): FakeClock {
  let elapsedMs = 0
  return {
    now: () => startSeconds * 1000 + elapsedMs,
    monotonic: () => elapsedMs,
    // Not zero, because loops that poll with `wait`, such as open streams, would block the process.
    wait: () => systemClock.wait(1),
    advance(seconds) {
      elapsedMs = Math.round(elapsedMs + seconds * 1000)
    },
  }
}
