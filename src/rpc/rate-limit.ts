/** Counts requests in fixed windows of a minute, in memory; the interface is what a shared store will fill too. */
import type { Clock } from '../deps.ts'

const WINDOW_MS = 60_000
/** Windows kept at once; beyond it the oldest go first, so that invented addresses cannot fill the memory. */
const MOST_WINDOWS = 100_000

/** The state of one key's window after a hit. */
export interface Hit {
  readonly limit: number
  /** Requests left in this window. */
  readonly remaining: number
  /** Unix seconds, rounded up: when the window ends. */
  readonly resetAt: number
  readonly isLimited: boolean
  /** Whole seconds, at least 1: a caller that waits exactly that long succeeds. */
  readonly retryAfterSeconds: number
}

/** Counts one request of `key` against `limit` a minute. */
export interface RateLimiter {
  hit(key: string, limit: number): Promise<Hit> | Hit
}

/** A window: how many hits it has seen, and when it ends on the monotonic clock. */
export interface Window {
  readonly count: number
  readonly endsAtMs: number
}

/** The window after one more hit at `nowMs`: the same one, or a new one when it has ended. */
export function advanceWindow(window: Window | undefined, nowMs: number): Window {
  if (window === undefined || nowMs >= window.endsAtMs) return { count: 1, endsAtMs: nowMs + WINDOW_MS }
  return { count: window.count + 1, endsAtMs: window.endsAtMs }
}

/** A limiter for one process. */
export function createMemoryRateLimiter(clock: Pick<Clock, 'now' | 'monotonic'>): RateLimiter {
  const windows = new Map<string, Window>()
  let sweepAtMs = clock.monotonic() + WINDOW_MS

  function sweep(nowMs: number): void {
    for (const [key, window] of windows) if (nowMs >= window.endsAtMs) windows.delete(key)
    sweepAtMs = nowMs + WINDOW_MS
  }

  return {
    hit(key, limit) {
      const nowMs = clock.monotonic()
      if (nowMs >= sweepAtMs) sweep(nowMs)
      const window = advanceWindow(windows.get(key), nowMs)
      if (windows.size >= MOST_WINDOWS && !windows.has(key))
        windows.delete(windows.keys().next().value as string)
      windows.set(key, window)
      const leftMs = window.endsAtMs - nowMs
      return {
        limit,
        remaining: Math.max(0, limit - window.count),
        resetAt: Math.ceil((clock.now() + leftMs) / 1000),
        isLimited: window.count > limit,
        retryAfterSeconds: Math.max(1, Math.ceil(leftMs / 1000)),
      }
    },
  }
}
