/** Checks at startup that a bucket is usable and that the store's prefix belongs to this installation. */
import { text } from 'node:stream/consumers'
import type { S3Config } from '../../config/config.ts'
import { StartupError } from '../../lib/errors.ts'
import { isBlobName } from '../blobs.ts'
import { MARK } from '../mark.ts'
import type { Bucket } from './bucket.ts'
import { S3Failure, toS3Failure } from './failure.ts'

const MAX_NAMES_CHECKED = 1_000

export interface Place {
  readonly bucket: Bucket
  readonly prefix: string
}

/**
 * Returns false if the prefix is empty and unmarked. @throws StartupError for another installation's mark or
 * for unmarked blobs; S3Failure.
 */
export async function isOwnPlace(
  place: Place,
  installationId: string | undefined,
  signal: AbortSignal,
): Promise<boolean> {
  const { prefix } = place
  const mark = await readMark(place, signal)
  if (mark === undefined) {
    if (!(await holdsBlobs(place, signal))) return false
    const id = installationId ?? 'the id of this installation'
    throw new StartupError(
      `The bucket already contains files under ${prefix} without the mark of an installation. Set S3_PREFIX to an unused prefix. If the files belong to this installation, run \`parley store adopt\`, or create the object ${prefix}${MARK} with the content ${id}.`,
    )
  }
  if (mark === installationId) return true
  const whose =
    installationId === undefined ? 'the database has no id yet' : `the database has the id ${installationId}`
  throw new StartupError(
    `The files under ${prefix} in the bucket belong to another installation or to another database: the object ${prefix}${MARK} contains ${mark}, but ${whose}. Set S3_PREFIX to an unused prefix, or restore the right database. If these files do belong to this database, run \`parley store adopt\`; the server then deletes files that no row refers to.`,
  )
}

export async function readMark({ bucket, prefix }: Place, signal: AbortSignal): Promise<string | undefined> {
  const mark = await bucket.find(prefix + MARK, undefined, signal)
  return mark && (await text(mark.body)).trim()
}

/** Marks the prefix if it is empty. @throws StartupError in the same cases as `isOwnPlace`; S3Failure. */
export async function claimPlace(place: Place, installationId: string, signal: AbortSignal): Promise<void> {
  if (await isOwnPlace(place, installationId, signal)) return
  await place.bucket.putNew(place.prefix + MARK, Buffer.from(`${installationId}\n`), signal)
  // Checks again, because another installation may have written its mark first.
  await isOwnPlace(place, installationId, signal)
}

async function holdsBlobs({ bucket, prefix }: Place, signal: AbortSignal): Promise<boolean> {
  let seen = 0
  for await (const { key } of bucket.list(prefix, signal)) {
    if (isBlobName(key.slice(prefix.length))) return true
    if (++seen === MAX_NAMES_CHECKED) return false
  }
  return false
}

const NEEDED_RIGHTS =
  's3:ListBucket, s3:ListBucketMultipartUploads, s3:GetObject, s3:PutObject, s3:DeleteObject and s3:AbortMultipartUpload'

export function toPlaceError(error: unknown, { bucket, endpoint, region }: S3Config): unknown {
  // A DOMException means that the startup timeout has passed.
  const failure = error instanceof DOMException ? toS3Failure(error) : error
  if (!(failure instanceof S3Failure)) return error
  const where = `The bucket ${bucket} at ${endpoint ?? `AWS (${region})`}`
  return new StartupError(`${where} ${describeFailure(failure)}`, { cause: error })
}

function describeFailure({ code, status, message }: S3Failure): string {
  if (code === 'NoSuchBucket') return 'does not exist; create it, or set S3_BUCKET to one that does.'
  if (/^(PermanentRedirect|AuthorizationHeaderMalformed|IllegalLocationConstraintException)$/.test(code))
    return `is in another region (${message}); set S3_REGION to it.`
  if (
    /^(InvalidAccessKeyId|SignatureDoesNotMatch|ExpiredToken|InvalidToken|TokenRefreshRequired)$/.test(code)
  )
    return `rejects the credentials (${code}); correct AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.`
  if (code === 'CredentialsProviderError')
    return 'needs credentials, and AWS provides none to this machine; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.'
  if (status === 401 || status === 403)
    return `denies access with these credentials (${code}); they need the permissions ${NEEDED_RIGHTS}.`
  return `is not usable (${message}); check S3_ENDPOINT, S3_REGION and the network connection.`
}
