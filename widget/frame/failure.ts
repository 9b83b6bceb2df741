/** Defines the frame's failures and their codes. */
import type { WidgetErrorCode } from '../messages.ts'

/** Every file in `strings/` must contain a message for each code. */
const failureCodes = [
  'missing_api_key',
  'invalid_api_key',
  'agent_mismatch',
  'endpoint_not_allowed',
  'provider_key_not_allowed',
  'context_too_large',
  'rate_limited',
  'quota_spent',
  'offline',
  'unreachable',
  'too_long',
  'refused',
  'busy',
  'interrupted',
  'reloaded',
  'empty',
  'identity_invalid',
  'identity_expired',
  'server',
] as const

type FailureCode = (typeof failureCodes)[number]

export interface Failure {
  readonly code: FailureCode
  /** Earliest time for a retry, in Unix milliseconds. */
  readonly retryAtMs?: number
  /** Milliseconds after which the frame repeats the request itself. */
  readonly repeatAfterMs?: number
  /** HTTP status of the server's response. */
  readonly status?: number
  /** The request's id in the server's log. */
  readonly requestId?: string
  /** A message for the page's developer, which replaces the visitor's message. */
  readonly detail?: string
}

/** Maximum number of repeats of a request that failed because other answers had reserved the rest of a budget. */
export const MAX_REPEATS = 2
/** The wait before such a repeat if the server states none, in milliseconds. */
export const REPEAT_AFTER_MS = 1_000

/** Failures that last until the page changes its options. */
const lasting: ReadonlySet<FailureCode> = new Set([
  'missing_api_key',
  'invalid_api_key',
  'agent_mismatch',
  'endpoint_not_allowed',
  'provider_key_not_allowed',
])

export function isLasting({ code }: Failure): boolean {
  return lasting.has(code)
}

/** Returns the code for the page, which is less specific than the visitor's message. */
export function toWidgetErrorCode(code: FailureCode): WidgetErrorCode {
  switch (code) {
    case 'quota_spent':
      return 'rate_limited'
    case 'unreachable':
      return 'offline'
    case 'too_long':
    case 'refused':
    case 'busy':
    case 'interrupted':
    case 'reloaded':
    case 'empty':
    case 'server':
      return 'chat_failed'
    default:
      return code
  }
}

export class ChatFailure extends Error {
  override readonly name = 'ChatFailure'
  readonly failure: Failure

  constructor(failure: Failure, cause?: unknown) {
    super(failure.code, { cause })
    this.failure = failure
  }
}

/** Returns a ChatFailure unchanged, and any other error as a server failure. */
export function toChatFailure(thrown: unknown): ChatFailure {
  return thrown instanceof ChatFailure ? thrown : new ChatFailure({ code: 'server' }, thrown)
}
