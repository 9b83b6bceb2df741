/** Writes down how a call failed: what is our fault with its cause, what is the caller's on debug level only. */
import type { Logger } from 'pino'
import type { ServiceError } from '../errors.ts'

/** What a line says of the call. */
export interface FailedCall {
  readonly requestId: string | undefined
  readonly path: string | undefined
}

/** No line holds a key, wherever in the address a caller put it. Security: 2.13. */
export function logFailure(log: Logger, { requestId, path }: FailedCall, failure: ServiceError): void {
  const line = { requestId, path: withoutKeys(path ?? ''), reason: failure.reason }
  const causedBy = { ...line, err: failure.details.cause }
  if (failure.reason === 'internal_error') log.error(causedBy, 'request failed')
  else if (failure.status >= 500) log.warn(causedBy, failure.message)
  else log.debug(line, withoutKeys(failure.message))
}

/** Leaves of every key its prefix and the public id behind it. */
function withoutKeys(text: string): string {
  return text.replace(/((?:svc_(?:scoped_)?|agnt_key-)\w{0,12})\w*/g, '$1…')
}
