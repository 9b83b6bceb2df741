/** Counts requests in fixed windows of a minute; here in memory, for the only replica or for one whose shared store is away. */
import type { Clock } from '../lib/clock.ts'

export const WINDOW_MS = 60_000
/** Half of the windows kept at most: invented addresses must not fill the memory. */
const GENERATION = 50_000

/** What one key may do in a minute. */
export interface Quota {
  readonly key: string
  readonly limit: number
}

/** The state of the tightest window after a hit. */
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

export interface RateLimiter {
  /**
   * Counts one request against every quota, or, when one of them is used up, against none: a call that was refused must not use up what
   * the caller is told to wait for.
   */
  hit(quotas: readonly [Quota, ...Quota[]]): Promise<Hit> | Hit
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
  // Windows in use are in the newer map; with every change of generation those nobody used since the last one go.
  let newer = new Map<string, Window>()
  let older = new Map<string, Window>()

  function keep(key: string, window: Window): void {
    newer.set(key, window)
    if (newer.size < GENERATION) return
    older = newer
    newer = new Map()
  }

  return {
    hit(quotas) {
      // Whole milliseconds: fractions would now and then add up to a second more to wait.
      const nowMs = Math.floor(clock.monotonic())
      const after = quotas.map(({ key }) => advanceWindow(newer.get(key) ?? older.get(key), nowMs))
      const counts = after.map(({ count, endsAtMs }) => ({ count, leftMs: endsAtMs - nowMs }))
      const tightest = toHit(quotas, counts, clock.now())
      if (!tightest.isLimited) {
        for (const [index, { key }] of quotas.entries()) keep(key, after[index] as Window)
      }
      return tightest
    },
  }
}

/** How many hits a window would have with this one, and how long it lasts yet. */
export interface WindowCount {
  readonly count: number
  readonly leftMs: number
}

/** What a hit came to in windows of these quotas, in their order, at `nowMs` of the wall clock. */
export function toHit(quotas: readonly Quota[], counts: readonly WindowCount[], nowMs: number): Hit {
  const hits = quotas.map(({ limit }, index): Hit => {
    const { count, leftMs } = counts[index] as WindowCount
    return {
      limit,
      remaining: Math.max(0, limit - count),
      resetAt: Math.ceil((nowMs + leftMs) / 1000),
      isLimited: count > limit,
      retryAfterSeconds: Math.max(1, Math.ceil(leftMs / 1000)),
    }
  })
  return hits.reduce(tighterOf)
}

/** Of two windows that are both used up, the one that opens later decides. */
function tighterOf(one: Hit, other: Hit): Hit {
  if (one.isLimited !== other.isLimited) return one.isLimited ? one : other
  const isOtherTighter = one.isLimited
    ? other.retryAfterSeconds > one.retryAfterSeconds
    : other.remaining < one.remaining
  return isOtherTighter ? other : one
}
