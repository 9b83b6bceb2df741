/** Converts S3 errors to errors without secrets, and then to service errors. */
import { ServiceError } from '../../lib/errors.ts'
import { storageFull } from '../folder.ts'

/** An S3 call that failed after all retries. Omits the SDK's error, which contains the signed request. */
export class S3Failure extends Error {
  override readonly name = 'S3Failure'
  /** S3's error code, such as `NoSuchBucket`, or the system's, such as `ECONNREFUSED`. */
  readonly code: string
  readonly status: number | undefined

  constructor(code: string, status: number | undefined, message: string) {
    super(message)
    this.code = code
    this.status = status
  }
}

interface ThrownBySdk extends Partial<Error> {
  readonly code?: unknown
  readonly $metadata?: { readonly httpStatusCode?: number; readonly requestId?: string }
}

export function toS3Failure(thrown: unknown): S3Failure {
  const { name = 'Error', message = '', code, $metadata } = thrown as ThrownBySdk
  const status = $metadata?.httpStatusCode
  const word = status === undefined && typeof code === 'string' ? code : name
  const answer = status === undefined ? '' : ` (${status}, request ${$metadata?.requestId ?? 'unnamed'})`
  return new S3Failure(word, status, `${word}: ${message || 'no reason given'}${answer}`)
}

const fullCodes: readonly string[] = [
  'EntityTooLarge',
  'InsufficientStorage',
  'QuotaExceeded',
  'XMinioAdminBucketQuotaExceeded',
  'XMinioStorageFull',
]

export function isFull(error: unknown): boolean {
  return error instanceof S3Failure && (error.status === 507 || fullCodes.includes(error.code))
}

/**
 * Client error statuses that the call itself does not cause: wrong credentials, throttling, concurrent calls.
 */
const passingStatuses: readonly number[] = [401, 403, 408, 409, 429]

/**
 * Throws a ServiceError if the bucket is full, unavailable or denies access; rethrows other errors unchanged.
 */
export function rethrowS3(error: unknown): never {
  if (isFull(error)) throw storageFull(error)
  if (!(error instanceof S3Failure)) throw error
  const { code, status = 503 } = error
  if (status < 500 && !passingStatuses.includes(status) && code !== 'NoSuchBucket') throw error
  throw new ServiceError('service_unavailable', 'The storage is temporarily unavailable; try again later.', {
    cause: error,
  })
}

export function isMissing(error: unknown): boolean {
  return error instanceof S3Failure && error.status === 404 && error.code !== 'NoSuchBucket'
}

export function ignoreMissing(error: unknown): undefined {
  if (!isMissing(error)) throw error
}
