/** Converts failures of the store to errors for the requests that depend on it. */
import { mapConstraintError } from '../../db/open.ts'
import { ServiceError, toServiceError } from '../../lib/errors.ts'

/** Returns violated constraints and errors with a known cause unchanged. */
export function toStoreFailure(thrown: unknown): unknown {
  if (mapConstraintError(thrown) !== undefined) return thrown
  const failure = toServiceError(thrown)
  if (failure.reason !== 'internal_error') return failure
  return new ServiceError('service_unavailable', 'The conversation store is unavailable; try again.', {
    retryAfterSeconds: 1,
    cause: thrown,
  })
}
