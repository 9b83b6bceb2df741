/** A clock that stands still until a test moves it; both of its faces move together. */
import type { Clock } from '../../src/lib/clock.ts'

export interface FakeClock extends Clock {
  /** Lets that many seconds pass. */
  advance(seconds: number): void
}

/** Starts at a round second, so that tests can name times; what waits on it does not wait. */
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
