/** Decides when a failed delivery is retried, and when a webhook is disabled. */
import type { Random } from '../lib/ids.ts'

const MINUTE = 60
const HOUR = 3600
/** Seconds to wait before each attempt, counted from the previous one. */
const waits = [0, 5, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR, 14 * HOUR, 20 * HOUR, 24 * HOUR]

const DAY = 24 * HOUR
/** A webhook is disabled after it has failed for this many seconds. */
export const FAILING_SECONDS = 5 * DAY
/**
 * Adds up to a tenth to each wait, so that deliveries that failed together are not retried at the same time.
 */
const JITTER = 0.1
const LONGEST_RETRY_AFTER = DAY

/**
 * Returns the seconds until the next attempt after `attempts` failed ones; undefined after the last attempt.
 * `retryAfter` is the time that the receiver requests, in seconds.
 */
export function secondsUntilNext(
  attempts: number,
  retryAfter: number | undefined,
  random: Random,
): number | undefined {
  const wait = waits[attempts]
  if (wait === undefined) return undefined
  const [high = 0, low = 0] = random(2)
  const spread = Math.ceil(wait * JITTER * ((high * 256 + low) / 65_535))
  return Math.max(wait + spread, Math.min(retryAfter ?? 0, LONGEST_RETRY_AFTER))
}

/** Parses `Retry-After`, which is a number of seconds or a date. Returns seconds. */
export function parseRetryAfter(text: string | string[] | undefined, nowMs: number): number | undefined {
  if (typeof text !== 'string') return undefined
  if (/^\d{1,9}$/.test(text.trim())) return Number(text)
  const at = Date.parse(text)
  return Number.isNaN(at) ? undefined : Math.max(0, Math.ceil((at - nowMs) / 1000))
}
