/** The one table of reasons a call can fail for, and the error every room throws. */

/**
 * Every reason, with its HTTP status and the `type` of the chat-side error body. The reason's name is the body's `code`
 * unless the thrower gives a more specific one. Decision: 4 (Errors).
 */
export const reasons = {
  missing_api_key: { status: 401, type: 'authentication_error', rpc: 'UNAUTHORIZED' },
  invalid_api_key: { status: 401, type: 'authentication_error', rpc: 'UNAUTHORIZED' },
  insufficient_permissions: { status: 403, type: 'permission_error', rpc: 'FORBIDDEN' },
  model_not_allowed: { status: 403, type: 'permission_error', rpc: 'FORBIDDEN' },
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

/** The name of a reason; also the `code` a client sees when nothing more specific is given. */
export type Reason = keyof typeof reasons

/** What a thrower may add to a reason. */
export interface ErrorDetails {
  /** The request field at fault, as a path: `messages[2].tool_call_id`. */
  param?: string
  /** Where in a text the fault lies, both counted from 1. */
  position?: { readonly line: number; readonly column: number }
  /** A more specific `code` than the reason's name. */
  code?: string
  /** Whole seconds after which the same call can succeed; becomes `Retry-After`. */
  retryAfterSeconds?: number
  /** The HTTP methods the path does answer; becomes `Allow`. */
  allow?: readonly string[]
  /** The message is in somebody else's words, who may quote what they were sent: for the caller, and for no log. */
  isQuoted?: true
  /** What went wrong underneath: logged, never sent. */
  cause?: unknown
}

/** A failure with a reason the caller may know; `message` is sent to the caller as it is. */
export class ServiceError extends Error {
  override readonly name = 'ServiceError'
  readonly reason: Reason
  readonly details: ErrorDetails

  constructor(reason: Reason, message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause })
    this.reason = reason
    this.details = details
  }

  /** The HTTP status of the reason. */
  get status(): number {
    return reasons[this.reason].status
  }

  /** The string a client can branch on. */
  get code(): string {
    return this.details.code ?? this.reason
  }
}

/** What a disk or a database says when the fault is not in our code. Decision: 4 (507, 503). */
const storageFaults: Readonly<Record<string, Reason>> = {
  ENOSPC: 'storage_full',
  EDQUOT: 'storage_full',
  SQLITE_FULL: 'storage_full',
  SQLITE_BUSY: 'service_unavailable',
  SQLITE_LOCKED: 'service_unavailable',
  DATABASE_AWAY: 'service_unavailable',
}

/** PostgreSQL's codes, the longer ones first: a code that is not here goes by its first two characters, its class. */
const postgresFaults: Readonly<Record<string, Reason>> = {
  // The character U+0000, which it does not keep.
  '22021': 'invalid_value',
  '53100': 'storage_full',
  // Writing is not possible (a change of roles), a time limit or a deadlock: the same call may succeed the next time.
  '25006': 'service_unavailable',
  '25P03': 'service_unavailable',
  '55P03': 'service_unavailable',
  '08': 'service_unavailable',
  '40': 'service_unavailable',
  '53': 'service_unavailable',
  '57': 'service_unavailable',
}

/** Whole seconds after which a call is worth another try. */
const RETRY_AFTER_SECONDS = 1

/** Turns whatever was thrown into a ServiceError; an unknown error says nothing of itself to the caller. */
export function toServiceError(thrown: unknown): ServiceError {
  if (thrown instanceof ServiceError) return thrown
  const fault = findFault(thrown)
  if (fault === 'storage_full')
    return new ServiceError(fault, 'There is no room to store this.', { cause: thrown })
  if (fault === 'invalid_value')
    return new ServiceError(fault, 'The request holds the character U+0000.', { cause: thrown })
  if (fault !== undefined) {
    const details = { retryAfterSeconds: RETRY_AFTER_SECONDS, cause: thrown }
    return new ServiceError(fault, 'The data store is busy or away; try again.', details)
  }
  return new ServiceError('internal_error', 'Something went wrong on our side.', { cause: thrown })
}

function findFault(thrown: unknown): Reason | undefined {
  const code = String((thrown as { code?: unknown } | null)?.code)
  if (!/^[0-9A-Z]{5}$/.test(code)) return storageFaults[code]
  return postgresFaults[code] ?? postgresFaults[code.slice(0, 2)]
}

/** Its message is a sentence for the operator, printed as it is; no stack is needed to act on it. */
export class StartupError extends Error {
  override readonly name: string = 'StartupError'
}
