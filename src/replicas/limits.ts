/**
 * Limits requests per minute, in fixed windows, and open streams. Counts in memory if the coordination store
 * is unavailable or not configured.
 */
import type { Clock } from '../lib/clock.ts'
import { ServiceError } from '../lib/errors.ts'
import type { Metrics } from '../telemetry/metrics.ts'

export const WINDOW_MS = 60_000
/**
 * Half of the maximum number of windows in memory, which is limited because many addresses may send requests.
 */
const GENERATION = 50_000

/**
 * Maximum number of requests per minute. `key` names the counter, for example that of an API key or a client
 * address.
 */
export interface Quota {
  readonly key: string
  readonly limit: number
}

export interface Hit {
  readonly limit: number
  readonly remaining: number
  /** End of the window in Unix seconds, rounded up. */
  readonly resetAt: number
  readonly isLimited: boolean
  /** Whole seconds until the window ends, rounded up; at least 1. */
  readonly retryAfterSeconds: number
}

export interface RateLimiter {
  /**
   * Charges `cost` requests (1 by default) to every quota, or to none if one is exhausted, so that rejected
   * requests do not delay later ones.
   */
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
  // When `newer` is full, it replaces `older`, which drops all windows that have not been used since the last
  // replacement.
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
      // Uses whole milliseconds, because rounding up a fraction could add a second to the wait.
      const nowMs = Math.floor(clock.monotonic())
      const wallMs = clock.now()
      const after: Window[] = []
      let tightest: Hit | undefined
      for (const { key, limit } of quotas) {
        const window = advanceWindow(newer.get(key) ?? older.get(key), nowMs, cost)
        after.push(window)
        const hit = hitOf(limit, window.count, window.endsAtMs - nowMs, wallMs)
        tightest = tightest === undefined ? hit : tighterOf(tightest, hit)
      }
      if (!tightest?.isLimited) {
        for (let at = 0; at < after.length; at++) keep((quotas[at] as Quota).key, after[at] as Window)
      }
      return tightest as Hit
    },
  }
}

export interface WindowCount {
  /** Number of requests in the window, including this hit. */
  readonly count: number
  readonly leftMs: number
}

/**
 * Returns the window closest to its limit after a hit; `counts` must be in the order of `quotas`, and `nowMs`
 * is wall-clock time.
 */
export function toHit(quotas: readonly Quota[], counts: readonly WindowCount[], nowMs: number): Hit {
  const hits = quotas.map(({ limit }, index) => {
    const { count, leftMs } = counts[index] as WindowCount
    return hitOf(limit, count, leftMs, nowMs)
  })
  return hits.reduce(tighterOf)
}

function hitOf(limit: number, count: number, leftMs: number, nowMs: number): Hit {
  return {
    limit,
    remaining: Math.max(0, limit - count),
    resetAt: Math.ceil((nowMs + leftMs) / 1000),
    isLimited: count > limit,
    retryAfterSeconds: Math.max(1, Math.ceil(leftMs / 1000)),
  }
}

/** If both windows are exhausted, chooses the one that ends later. */
function tighterOf(one: Hit, other: Hit): Hit {
  if (one.isLimited !== other.isLimited) return one.isLimited ? one : other
  const isOtherTighter = one.isLimited
    ? other.retryAfterSeconds > one.retryAfterSeconds
    : other.remaining < one.remaining
  return isOtherTighter ? other : one
}

/**
 * Maximum number of concurrent streams; 0 means no limit. `key` names the counter, for example that of an API
 * key.
 */
export interface StreamQuota {
  readonly key: string
  readonly limit: number
}

/**
 * Releases a stream; later calls have no effect. Resolves when another stream can be opened on any replica;
 * never rejects.
 */
export type Release = () => Promise<void> | void

export interface StreamLimiter {
  /**
   * Counts one stream toward each quota. @throws ServiceError `rate_limit_exceeded` if any quota is full; in
   * that case none of them changes.
   */
  acquire(quotas: readonly StreamQuota[]): Promise<Release> | Release
}

/** Number of open streams per counter; counters without streams have no entry. */
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
