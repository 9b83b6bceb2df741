/** Converts a server's error, or a network error, into a failure that the person can read. */
import type { Failure } from '../failure.ts'

/** A refusal, whichever way it came. */
export interface Refusal {
  readonly status: number
  readonly code: string
  readonly retryAfterSeconds: number | undefined
}

/** The failure; without a refusal the connection is at fault. `hasBegun`: part of the answer is there already. */
export function toFailure(refusal: Refusal | undefined, hasBegun: boolean): Failure {
  if (refusal === undefined) {
    if (!navigator.onLine) return { code: 'offline' }
    return { code: hasBegun ? 'interrupted' : 'unreachable' }
  }
  const { status, code, retryAfterSeconds } = refusal
  if (status === 401 || code === 'insufficient_permissions') return { code: 'invalid_api_key' }
  if (status === 429 && code === 'insufficient_quota') return { code: 'quota_spent' }
  if (status === 429) {
    if (retryAfterSeconds === undefined) return { code: 'rate_limited' }
    return { code: 'rate_limited', retryAtMs: Date.now() + retryAfterSeconds * 1000 }
  }
  if (hasBegun) return { code: 'interrupted' }
  if (status === 413 || code === 'context_length_exceeded') return { code: 'too_long' }
  if (status > 500) return { code: 'busy' }
  return { code: status < 500 ? 'refused' : 'server' }
}
