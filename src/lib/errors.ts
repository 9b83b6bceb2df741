/** Defines `ServiceError` with its reasons, and `StartupError`. */

/**
 * Maps each reason to its HTTP status, OpenAI error `type` and tRPC code; the reason is also the default
 * `code`.
 */
export const reasons = {
  missing_api_key: { status: 401, type: 'authentication_error', rpc: 'UNAUTHORIZED' },
  invalid_api_key: { status: 401, type: 'authentication_error', rpc: 'UNAUTHORIZED' },
  identity_invalid: { status: 401, type: 'authentication_error', rpc: 'UNAUTHORIZED' },
  identity_expired: { status: 401, type: 'authentication_error', rpc: 'UNAUTHORIZED' },
  insufficient_permissions: { status: 403, type: 'permission_error', rpc: 'FORBIDDEN' },
  model_not_allowed: { status: 403, type: 'permission_error', rpc: 'FORBIDDEN' },
  model_not_priced: { status: 403, type: 'permission_error', rpc: 'FORBIDDEN' },
  content_not_priced: { status: 403, type: 'permission_error', rpc: 'FORBIDDEN' },
  invalid_value: { status: 400, type: 'invalid_request_error', rpc: 'BAD_REQUEST' },
  not_found: { status: 404, type: 'invalid_request_error', rpc: 'NOT_FOUND' },
  model_not_found: { status: 404, type: 'invalid_request_error', rpc: 'NOT_FOUND' },
  conflict: { status: 409, type: 'invalid_request_error', rpc: 'CONFLICT' },
  method_not_allowed: { status: 405, type: 'invalid_request_error', rpc: 'METHOD_NOT_SUPPORTED' },
  request_timeout: { status: 408, type: 'invalid_request_error', rpc: 'TIMEOUT' },
  precondition_failed: { status: 412, type: 'invalid_request_error', rpc: 'PRECONDITION_FAILED' },
  too_large: { status: 413, type: 'invalid_request_error', rpc: 'PAYLOAD_TOO_LARGE' },
  unsupported_media_type: { status: 415, type: 'invalid_request_error', rpc: 'UNSUPPORTED_MEDIA_TYPE' },
  range_not_satisfiable: { status: 416, type: 'invalid_request_error', rpc: 'BAD_REQUEST' },
  idempotency_key_reused: { status: 422, type: 'invalid_request_error', rpc: 'UNPROCESSABLE_CONTENT' },
  checksum_mismatch: { status: 422, type: 'invalid_request_error', rpc: 'UNPROCESSABLE_CONTENT' },
  locked: { status: 423, type: 'invalid_request_error', rpc: 'CONFLICT' },
  rate_limit_exceeded: { status: 429, type: 'rate_limit_error', rpc: 'TOO_MANY_REQUESTS' },
  insufficient_quota: { status: 429, type: 'rate_limit_error', rpc: 'TOO_MANY_REQUESTS' },
  internal_error: { status: 500, type: 'server_error', rpc: 'INTERNAL_SERVER_ERROR' },
  service_unavailable: { status: 503, type: 'server_error', rpc: 'SERVICE_UNAVAILABLE' },
  storage_full: { status: 507, type: 'server_error', rpc: 'INTERNAL_SERVER_ERROR' },
  backend_error: { status: 502, type: 'upstream_error', rpc: 'BAD_GATEWAY' },
  backend_unavailable: { status: 503, type: 'upstream_error', rpc: 'SERVICE_UNAVAILABLE' },
  backend_timeout: { status: 504, type: 'upstream_error', rpc: 'GATEWAY_TIMEOUT' },
} as const satisfies Record<string, { status: number; type: string; rpc: string }>

export type Reason = keyof typeof reasons

interface ErrorDetails {
  /** Path of the invalid request field, such as `messages[2].tool_call_id`. */
  param?: string
  /** Position of the error in a text; both numbers start at 1. */
  position?: { readonly line: number; readonly column: number }
  /** A more specific `code` than the reason. */
  code?: string
  /** Whole seconds after which the same request may succeed; sent as `Retry-After`. */
  retryAfterSeconds?: number
  /** Whether official clients should retry the request; sent as `X-Should-Retry`. */
  shouldRetry?: boolean
  /** The id of the last stored event in the stream. */
  lastEventId?: string
  /** The conversation's mode, and the person who answers if the client may know it; sent in the error. */
  handover?: { readonly mode: 'model' | 'waiting' | 'person'; readonly assignee: string | null }
  /** The path's HTTP methods, for the `Allow` header. */
  allow?: readonly string[]
  /**
   * The message comes from a different server and may quote the request, so it is sent to the client but not
   * logged.
   */
  isQuoted?: true
  /** The underlying error, which is logged but not sent to the client. */
  cause?: unknown
}

/** A failure that is reported to the client; `message` is sent unchanged. */
export class ServiceError extends Error {
  override readonly name = 'ServiceError'
  readonly reason: Reason
  readonly details: ErrorDetails

  constructor(reason: Reason, message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause })
    this.reason = reason
    this.details = details
  }

  get status(): number {
    return reasons[this.reason].status
  }

  get code(): string {
    return this.details.code ?? this.reason
  }
}

const storageFaults: Readonly<Record<string, Reason>> = {
  ENOSPC: 'storage_full',
  EDQUOT: 'storage_full',
  SQLITE_FULL: 'storage_full',
  SQLITE_BUSY: 'service_unavailable',
  SQLITE_LOCKED: 'service_unavailable',
  DATABASE_AWAY: 'service_unavailable',
}

/** Maps PostgreSQL error codes, or their two-character classes, to reasons. */
const postgresFaults: Readonly<Record<string, Reason>> = {
  // The request contains U+0000, which PostgreSQL cannot store.
  '22021': 'invalid_value',
  '53100': 'storage_full',
  // Temporary failures (failover, time limit, deadlock), after which the same request may succeed.
  '25006': 'service_unavailable',
  '25P03': 'service_unavailable',
  '55P03': 'service_unavailable',
  '08': 'service_unavailable',
  '40': 'service_unavailable',
  '53': 'service_unavailable',
  '57': 'service_unavailable',
}

const RETRY_AFTER_SECONDS = 1

/**
 * Converts any thrown value to a ServiceError; the details of an unknown error are not sent to the client.
 */
export function toServiceError(thrown: unknown): ServiceError {
  if (thrown instanceof ServiceError) return thrown
  const fault = findFault(thrown)
  if (fault === 'storage_full') return new ServiceError(fault, 'The storage is full.', { cause: thrown })
  if (fault === 'invalid_value')
    return new ServiceError(fault, 'The request contains the character U+0000.', { cause: thrown })
  if (fault !== undefined) {
    const details = { retryAfterSeconds: RETRY_AFTER_SECONDS, cause: thrown }
    return new ServiceError(fault, 'The data store is busy or unavailable; try again.', details)
  }
  return new ServiceError('internal_error', 'Internal server error.', { cause: thrown })
}

function findFault(thrown: unknown): Reason | undefined {
  const code = String((thrown as { code?: unknown } | null)?.code)
  // SQLite adds a suffix to some codes, such as SQLITE_BUSY_RECOVERY.
  if (!/^[0-9A-Z]{5}$/.test(code)) return storageFaults[code.replace(/^(SQLITE_(?:BUSY|LOCKED))_.*/, '$1')]
  return postgresFaults[code] ?? postgresFaults[code.slice(0, 2)]
}

/** An error that the operator can fix; its message is printed without a stack trace. */
export class StartupError extends Error {
  override readonly name: string = 'StartupError'
}
