/**
 * Limits requests per minute, in fixed windows, and the number of open streams. Counts are in memory for a single
 * replica, and while the coordination store is unavailable.
 */
import type { Clock } from '../lib/clock.ts'
import { ServiceError } from '../lib/errors.ts'
import type { Metrics } from '../telemetry/metrics.ts'

export const WINDOW_MS = 60_000
/** Half of the maximum number of windows, which limits the memory used by requests from many addresses. */
const GENERATION = 50_000

/** The number of requests that a key may make in a minute. */
export interface Quota {
  readonly key: string
  readonly limit: number
}

export interface Hit {
  readonly limit: number
  readonly remaining: number
  /** The end of the window in Unix seconds, rounded up. */
  readonly resetAt: number
  readonly isLimited: boolean
  /** Whole seconds, at least 1; a client that waits exactly that long succeeds. */
  readonly retryAfterSeconds: number
}

export interface RateLimiter {
  /** Counts `cost` requests (1 by default) against every quota, or none if one is exhausted, so that a rejected request does not delay the next. */
  hit(quotas: readonly [Quota, ...Quota[]], cost?: number): Promise<Hit> | Hit
}

export interface Window {
  readonly count: number
  /** Milliseconds on the monotonic clock. */
  readonly endsAtMs: number
}

export function advanceWindow(window: Window | undefined, nowMs: number, cost = 1): Window {
  if (window === undefined || nowMs >= window.endsAtMs) return { count: cost, endsAtMs: nowMs + WINDOW_MS }
  return { count: window.count + cost, endsAtMs: window.endsAtMs }
}

export function createMemoryRateLimiter(clock: Pick<Clock, 'now' | 'monotonic'>): RateLimiter {
  // When the newer map is full, it replaces the older one; windows that were not used since are dropped.
  let newer = new Map<string, Window>()
  let older = new Map<string, Window>()

  function keep(key: string, window: Window): void {
    newer.set(key, window)
    if (newer.size < GENERATION) return
    older = newer
    newer = new Map()
  }

  return {
    hit(quotas, cost = 1) {
      // Whole milliseconds, because rounding up a fraction could add a second to the wait.
      const nowMs = Math.floor(clock.monotonic())
      const after = quotas.map(({ key }) => advanceWindow(newer.get(key) ?? older.get(key), nowMs, cost))
      const counts = after.map(({ count, endsAtMs }) => ({ count, leftMs: endsAtMs - nowMs }))
      const tightest = toHit(quotas, counts, clock.now())
      if (!tightest.isLimited) {
        for (const [index, { key }] of quotas.entries()) keep(key, after[index] as Window)
      }
      return tightest
    },
  }
}

export interface WindowCount {
  /** Including this hit. */
  readonly count: number
  readonly leftMs: number
}

/** Returns the tightest window after a hit; `counts` has the order of `quotas`, `nowMs` is wall-clock time. */
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

/** Of two windows that are both used up, the one that ends later decides. */
function tighterOf(one: Hit, other: Hit): Hit {
  if (one.isLimited !== other.isLimited) return one.isLimited ? one : other
  const isOtherTighter = one.isLimited
    ? other.retryAfterSeconds > one.retryAfterSeconds
    : other.remaining < one.remaining
  return isOtherTighter ? other : one
}

/** The number of streams that a key may have open at once; 0 means no limit. */
export interface StreamQuota {
  readonly key: string
  readonly limit: number
}

/** Ends a stream; only the first call counts. Resolves when the other replicas can open another, and never rejects. */
export type Release = () => Promise<void> | void

export interface StreamLimiter {
  /** Counts one stream for every quota. @throws ServiceError `rate_limit_exceeded` when one is used up; then none is counted. */
  acquire(quotas: readonly StreamQuota[]): Promise<Release> | Release
}

/** The number of open streams by key; a key without streams is absent. */
export class OpenStreams {
  private readonly counts = new Map<string, number>()

  countOf(key: string): number {
    return this.counts.get(key) ?? 0
  }

  add(keys: readonly string[], by: 1 | -1): void {
    for (const key of keys) {
      const count = this.countOf(key) + by
      if (count > 0) this.counts.set(key, count)
      else this.counts.delete(key)
    }
  }

  snapshot(): Map<string, number> {
    return new Map(this.counts)
  }
}

export function listLimited(quotas: readonly StreamQuota[]): StreamQuota[] {
  return quotas.filter(({ limit }) => limit > 0)
}

export function once(release: Release): Release {
  let isReleased = false
  return () => {
    if (isReleased) return
    isReleased = true
    return release()
  }
}

export function tooManyStreams({ limit }: StreamQuota): ServiceError {
  return new ServiceError('rate_limit_exceeded', `Too many open streams: the limit is ${limit}.`, {
    retryAfterSeconds: 1,
  })
}

export function createMemoryStreamLimiter(): StreamLimiter {
  const open = new OpenStreams()
  return {
    acquire(quotas) {
      const limited = listLimited(quotas)
      const full = limited.find(({ key, limit }) => open.countOf(key) >= limit)
      if (full !== undefined) throw tooManyStreams(full)
      const keys = limited.map(({ key }) => key)
      open.add(keys, 1)
      return once(() => open.add(keys, -1))
    },
  }
}

/** Adds metrics to a limiter. */
export function countStreams(limiter: StreamLimiter, metrics: Metrics): StreamLimiter {
  return {
    async acquire(quotas) {
      try {
        const release = await limiter.acquire(quotas)
        metrics.openStreams.inc()
        let isOpen = true
        return () => {
          if (isOpen) metrics.openStreams.dec()
          isOpen = false
          return release()
        }
      } catch (failure) {
        metrics.callLimited('streams')
        throw failure
      }
    },
  }
}
