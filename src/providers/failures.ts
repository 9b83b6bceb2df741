/** Maps failed provider calls to client errors, and decides which failures to retry. */
import { type Reason, ServiceError } from '../lib/errors.ts'
import { BackendFailure, type ChatBackend } from './provider.ts'

/** Returns true for failures that a retry may fix: network errors, 408, 429 and 5xx. */
export function isRetryable(failure: BackendFailure): boolean {
  if (failure.isFinal) return false
  if (failure.kind !== 'status') return failure.kind !== 'protocol'
  const status = failure.status ?? 500
  return status === 408 || status === 429 || status >= 500
}

export function nameFailure({ kind, status = 500 }: BackendFailure): string {
  if (kind !== 'status') return kind
  return status === 429 ? 'status_429' : `status_${Math.floor(status / 100)}xx`
}

const callersMistakes: ReadonlySet<number | undefined> = new Set([400, 409, 413, 415, 422])

/**
 * Returns true if the client's request is invalid. Other providers would reject it too, and the client may
 * see the reason.
 */
export function isCallersMistake({ status }: Pick<BackendFailure, 'status'>): boolean {
  return callersMistakes.has(status)
}

/** Error codes of connections that failed before a request was sent. */
const unsentCodes: ReadonlySet<unknown> = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
])

/**
 * Classifies a call that failed before its answer began, by the tokens that the provider may charge. The
 * provider charges none if it rejected the request or never received it. A stream stops soon after its
 * connection closes; other calls may run to completion.
 */
export function toFailedCall(
  thrown: unknown,
  isStream: boolean,
  { unknownOutcome }: Pick<ChatBackend, 'unknownOutcome'>,
): FailedCall {
  if (!(thrown instanceof BackendFailure)) return isStream ? 'cut' : 'unknown'
  const isUnsent = unsentCodes.has((thrown.cause as { code?: unknown } | undefined)?.code)
  return thrown.kind === 'status' || isUnsent || unknownOutcome === 'release' ? 'unused' : 'unknown'
}

/** Classifies how a stream ended that has begun but is not complete. */
export function toAnswerEnd(
  thrown: unknown,
  { unknownOutcome }: Pick<ChatBackend, 'unknownOutcome'>,
): 'cut' | 'lost' {
  const isLost = thrown instanceof BackendFailure && (thrown.kind === 'unreachable' || thrown.isIncomplete)
  return isLost && unknownOutcome !== 'release' ? 'lost' : 'cut'
}

/**
 * `unused`: no tokens; `unknown`: any number of tokens; `cut`: the tokens until the connection was closed.
 */
export type FailedCall = 'unused' | 'unknown' | 'cut'

export function toCallerError(thrown: unknown): unknown {
  if (!(thrown instanceof BackendFailure)) return thrown
  const { retryAfterSeconds } = thrown
  const details = {
    cause: thrown,
    ...(retryAfterSeconds !== undefined && { retryAfterSeconds: Math.max(1, Math.ceil(retryAfterSeconds)) }),
  }
  switch (thrown.kind) {
    case 'unreachable':
      return new ServiceError(
        'backend_unavailable',
        thrown.said?.message ?? 'The model provider is unreachable.',
        thrown.said === undefined ? details : { ...details, isQuoted: true },
      )
    case 'timeout':
      return new ServiceError('backend_timeout', 'The model provider did not respond in time.', details)
    case 'protocol':
      return new ServiceError('backend_error', 'The model provider returned an invalid response.', details)
    case 'status':
      return statusError(thrown, details)
  }
}

/** Returns the client's error for a failure after the first event, which leaves the response incomplete. */
export function toInterruption(thrown: unknown): unknown {
  if (!(thrown instanceof BackendFailure)) return thrown
  if (thrown.kind === 'timeout') return toCallerError(thrown)
  return new ServiceError('backend_error', 'The model provider failed before completing its response.', {
    code: 'stream_interrupted',
    cause: thrown,
  })
}

function statusError(failure: BackendFailure, details: { cause: unknown; retryAfterSeconds?: number }) {
  const { status, said } = failure
  if (status === 429) {
    return new ServiceError('rate_limit_exceeded', 'The model provider is receiving too many requests.', {
      retryAfterSeconds: 1,
      ...details,
    })
  }
  if (status === 408) return new ServiceError('backend_timeout', 'The model provider timed out.', details)
  if (said === undefined) {
    return new ServiceError('backend_error', `The model provider rejected the request (${status}).`, details)
  }
  // Uses the provider's explanation, which is more helpful than a generic message.
  const { message, ...where } = said
  return new ServiceError(saidReasons[status ?? 400] ?? 'invalid_value', message, {
    ...details,
    ...where,
    isQuoted: true,
  })
}

const saidReasons: Readonly<Record<number, Reason>> = {
  404: 'model_not_found',
  409: 'conflict',
  413: 'too_large',
  415: 'unsupported_media_type',
  503: 'backend_unavailable',
}

export function callersMistake(param: string, rule: string, code = 'invalid_value'): BackendFailure {
  const message = `${param}: ${rule}`
  return new BackendFailure('status', message, { status: 400, said: { message, param, code } })
}

const timeoutCodes = new Set([
  'UND_ERR_CONNECT_TIMEOUT',
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
  'ETIMEDOUT',
])

/** Classifies an error in the connection to a provider. */
export function toNetworkFailure(cause: Error & { code?: unknown }): BackendFailure {
  const code = typeof cause.code === 'string' ? cause.code : ''
  if (timeoutCodes.has(code))
    return new BackendFailure('timeout', 'The provider did not respond in time.', { cause })
  // A truncated body means that the connection was lost; only llhttp's message distinguishes this from a
  // protocol error.
  const isProtocolError = cause.name === 'HTTPParserError' && !cause.message.includes('Invalid EOF state')
  if (isProtocolError || code === 'UND_ERR_HEADERS_OVERFLOW') {
    // Drops the original error, because it contains bytes that may be part of a model's response.
    const reason = new Error(cause.message)
    return new BackendFailure('protocol', 'The provider sent an invalid HTTP response.', { cause: reason })
  }
  return new BackendFailure('unreachable', 'The connection to the provider failed.', { cause })
}
