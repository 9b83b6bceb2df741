/** Writes down how a call failed: what is our fault with its cause, what is the caller's on debug level only. */

import type { ServiceError } from '../errors.ts'
import { withoutKeys } from '../without-keys.ts'
import type { Dependencies } from './dependencies.ts'

/** What a line says of the call. */
export interface FailedCall {
  readonly requestId?: string | undefined
  readonly traceId?: string | undefined
  readonly path: string | undefined
}

/** Counts the failure, and writes it down. No line holds a key, wherever in the address a caller put it. Security: 2.13. */
export function logFailure(
  { log, metrics }: Pick<Dependencies, 'log' | 'metrics'>,
  { requestId, traceId, path }: FailedCall,
  failure: ServiceError,
): void {
  metrics.callFailed(failure.reason)
  const line = { requestId, traceId, path: withoutKeys(path ?? ''), reason: failure.reason }
  const text = failure.details.isQuoted ? 'refused in the words of a backend' : withoutKeys(failure.message)
  const causedBy = { ...line, err: failure.details.cause }
  if (failure.reason === 'internal_error') log.error(causedBy, 'request failed')
  else if (failure.status >= 500) log.warn(causedBy, text)
  else log.debug(line, text)
}
