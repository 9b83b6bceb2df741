/** Converts a server error or network error to a failure that the frame can show. */
import { type Failure, REPEAT_AFTER_MS } from '../failure.ts'

/** An error response, over tRPC or REST. */
export interface ErrorResponse {
  readonly status: number
  readonly code: string
  readonly retryAfterSeconds: number | undefined
  readonly requestId?: string | undefined
}

/**
 * Returns the failure. `response` is undefined for a network error; `hasBegun` means that part of the reply
 * has arrived.
 */
export function toFailure(response: ErrorResponse | undefined, hasBegun: boolean): Failure {
  if (response === undefined) {
    if (!navigator.onLine) return { code: 'offline' }
    return { code: hasBegun ? 'interrupted' : 'unreachable' }
  }
  const { status, requestId } = response
  return { ...toReason(response, hasBegun), status, ...(requestId !== undefined && { requestId }) }
}

function toReason({ status, code, retryAfterSeconds }: ErrorResponse, hasBegun: boolean): Failure {
  if (code === 'identity_invalid' || code === 'identity_expired') return { code }
  if (status === 401 || code === 'insufficient_permissions') return { code: 'invalid_api_key' }
  if (status === 429 && code === 'insufficient_quota') return { code: 'quota_spent' }
  if (status === 429 && code === 'budget_reserved') {
    const repeatAfterMs = retryAfterSeconds === undefined ? REPEAT_AFTER_MS : retryAfterSeconds * 1000
    return { code: 'quota_spent', ...(!hasBegun && { repeatAfterMs }) }
  }
  if (status === 429) {
    if (retryAfterSeconds === undefined) return { code: 'rate_limited' }
    return { code: 'rate_limited', retryAtMs: Date.now() + retryAfterSeconds * 1000 }
  }
  if (hasBegun) return { code: 'interrupted' }
  if (status === 413 || code === 'context_length_exceeded' || code === 'conversation_full')
    return { code: 'too_long' }
  if (status > 500 || status === 409) return { code: 'busy' }
  return { code: status < 500 ? 'refused' : 'server' }
}
