/** Converts failures of the store to errors for the requests that depend on it. */
import { mapConstraintError } from '../../db/open.ts'
import { type Reason, reasons, ServiceError, toServiceError } from '../../lib/errors.ts'
import type { TurnRow } from '../store.ts'

/**
 * Returns constraint violations unchanged, and converts other errors. An error without a known cause means
 * that the store is unavailable.
 */
export function toStoreFailure(thrown: unknown): unknown {
  if (mapConstraintError(thrown) !== undefined) return thrown
  const failure = toServiceError(thrown)
  if (failure.reason !== 'internal_error') return failure
  return new ServiceError('service_unavailable', 'The conversation store is unavailable; try again.', {
    retryAfterSeconds: 1,
    cause: thrown,
  })
}

/** Returns the error of a stored turn that failed before its first event; undefined for other turns. */
export function findFailure({ status, last_seq, error_code }: TurnRow): ServiceError | undefined {
  if (status !== 'failed' || last_seq >= 0) return undefined
  const code = error_code ?? 'backend_error'
  const reason = Object.hasOwn(reasons, code) ? (code as Reason) : 'backend_error'
  return new ServiceError(reason, 'The turn failed before the answer began; try again.', { code })
}
