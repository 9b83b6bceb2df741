/** How a backend that answers by itself refuses a request. */
import { BackendFailure } from '../backend.ts'

/** A 400 that names the field at fault, and what it must be. */
export function callersMistake(param: string, rule: string, code = 'invalid_value'): BackendFailure {
  const message = `${param}: ${rule}`
  return new BackendFailure('status', message, { status: 400, said: { message, param, code } })
}
