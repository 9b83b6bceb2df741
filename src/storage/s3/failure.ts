/** What a bucket refuses a call with, in little: nothing of it is secret, and it says whose fault it is. */
import { ServiceError } from '../../lib/errors.ts'
import { storageFull } from '../folder.ts'

/** A call of S3 that failed for good. The client's own error is not kept: it holds the request that was signed. */
export class S3Failure extends Error {
  override readonly name = 'S3Failure'
  /** S3's word for it, such as `NoSuchBucket`, or the system's, such as `ECONNREFUSED`. */
  readonly code: string
  /** Of the answer; undefined when there was none. */
  readonly status: number | undefined

  constructor(code: string, status: number | undefined, message: string) {
    super(message)
    this.code = code
    this.status = status
  }
}

/** What the SDK's errors hold; one of the system's has a `code` and no metadata. */
interface ThrownBySdk {
  readonly name?: string
  readonly message?: string
  readonly code?: unknown
  readonly $metadata?: { readonly httpStatusCode?: number; readonly requestId?: string }
}

/** Tells what the SDK threw. */
export function toS3Failure(thrown: unknown): S3Failure {
  const { name = 'Error', message = '', code, $metadata } = thrown as ThrownBySdk
  const status = $metadata?.httpStatusCode
  const word = status === undefined && typeof code === 'string' ? code : name
  const answer = status === undefined ? '' : ` (${status}, request ${$metadata?.requestId ?? 'unnamed'})`
  return new S3Failure(word, status, `${word}: ${message || 'no reason was given'}${answer}`)
}

/** What S3, Ceph and MinIO say when a quota or a disk is full; AWS itself never is. */
const fullCodes: readonly string[] = [
  'EntityTooLarge',
  'InsufficientStorage',
  'QuotaExceeded',
  'XMinioAdminBucketQuotaExceeded',
  'XMinioStorageFull',
]

/** Whether a bucket said that it has no room. */
export function isFull(error: unknown): boolean {
  return error instanceof S3Failure && (error.status === 507 || fullCodes.includes(error.code))
}

/** Refusals that are no mistake in the call: of the credentials, of the hour, of another call at the same time. */
const passingStatuses: readonly number[] = [401, 403, 408, 409, 429]

/**
 * Throws what was thrown; a bucket that is full, or away, becomes what the caller of the service is told. What stays is a loss or a
 * mistake of ours. Decision: 4 (507, 503).
 */
export function rethrowS3(error: unknown): never {
  if (isFull(error)) throw storageFull(error)
  if (!(error instanceof S3Failure)) throw error
  const { code, status = 503 } = error
  if (status < 500 && !passingStatuses.includes(status) && code !== 'NoSuchBucket') throw error
  throw new ServiceError('service_unavailable', 'The storage does not answer as it should; try again.', {
    cause: error,
  })
}

/** Whether there is nothing under the name. */
export function isMissing(error: unknown): boolean {
  return error instanceof S3Failure && error.status === 404 && error.code !== 'NoSuchBucket'
}
