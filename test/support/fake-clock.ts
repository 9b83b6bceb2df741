/** Provides a clock that only tests advance; wall clock and monotonic clock move together. */
import type { Clock } from '../../src/lib/clock.ts'

export interface FakeClock extends Clock {
  /** Advances the clock. */
  advance(seconds: number): void
}

/** Starts at a full second, so that tests can name times; waits on it return at once. */
export function createFakeClock(startSeconds = 1_800_000_000): FakeClock {
  let elapsedMs = 0
  return {
    now: () => startSeconds * 1000 + elapsedMs,
    monotonic: () => elapsedMs,
    wait: async () => {},
    advance(seconds) {
      elapsedMs = Math.round(elapsedMs + seconds * 1000)
    },
  }
}
