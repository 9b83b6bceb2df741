/** Makes sure at start that a place in a bucket can be used, and that it is this installation's. */
import { text } from 'node:stream/consumers'
import type { S3Config } from '../../config/config.ts'
import { StartupError } from '../../lib/errors.ts'
import { isBlobName } from '../blobs.ts'
import type { Bucket } from './bucket.ts'
import { S3Failure, toS3Failure } from './failure.ts'

/** The object that says whose place it is. */
const MARK = 'installation'
/** When nobody has marked a place, so many names there are looked at. */
const MOST_LOOKED_AT = 1_000

/** Where in a bucket a store keeps its objects. */
export interface Place {
  readonly bucket: Bucket
  /** Stands before the names of all of them, with a slash at its end. */
  readonly prefix: string
}

/**
 * Whether a place is the installation's already; if not, it can become so. Bytes that no row speaks of are swept away, so to a
 * second installation, or to one whose database was lost, everything there would look like rubbish.
 * @throws StartupError when it is another's, or nobody's and not empty; S3Failure.
 */
export async function isOwnPlace(
  place: Place,
  installationId: string | undefined,
  signal: AbortSignal,
): Promise<boolean> {
  const { bucket, prefix } = place
  const mark = await bucket.find(prefix + MARK, undefined, signal)
  if (mark === undefined) {
    if (!(await holdsBlobs(place, signal))) return false
    const id = installationId ?? 'the id that a start will name here'
    throw new StartupError(
      `The bucket holds files under ${prefix} already, and nothing says whose they are; set S3_PREFIX to a place of its own, or, if they are this installation's, put an object ${prefix}${MARK} there that holds ${id}.`,
    )
  }
  if ((await text(mark.body)).trim() === installationId) return true
  throw new StartupError(
    `What lies under ${prefix} in the bucket belongs to another installation, or to this one with another database; set S3_PREFIX to a place of its own, put the right database back, or, if nobody needs those files, delete the object ${prefix}${MARK} and all others there.`,
  )
}

/** Takes a place for the installation. @throws StartupError as `isOwnPlace`; S3Failure. */
export async function claimPlace(place: Place, installationId: string, signal: AbortSignal): Promise<void> {
  if (await isOwnPlace(place, installationId, signal)) return
  await place.bucket.put(place.prefix + MARK, Buffer.from(`${installationId}\n`), signal)
}

async function holdsBlobs({ bucket, prefix }: Place, signal: AbortSignal): Promise<boolean> {
  let seen = 0
  for await (const { key } of bucket.list(prefix, signal)) {
    if (isBlobName(key.slice(prefix.length))) return true
    if (++seen === MOST_LOOKED_AT) return false
  }
  return false
}

const NEEDED_RIGHTS =
  's3:ListBucket, s3:ListBucketMultipartUploads, s3:GetObject, s3:PutObject, s3:DeleteObject and s3:AbortMultipartUpload'

/** The sentence for a bucket that cannot be used; whatever else was thrown stays as it is. */
export function toPlaceError(error: unknown, { bucket, endpoint, region }: S3Config): unknown {
  // What was too late for the whole start is no failure of one call.
  const failure = error instanceof DOMException ? toS3Failure(error) : error
  if (!(failure instanceof S3Failure)) return error
  const where = `The bucket ${bucket} at ${endpoint ?? `AWS (${region})`}`
  return new StartupError(`${where} ${whatIsWrong(failure)}`, { cause: error })
}

function whatIsWrong({ code, status, message }: S3Failure): string {
  if (code === 'NoSuchBucket') return 'does not exist; create it, or set S3_BUCKET to one that does.'
  if (/^(PermanentRedirect|AuthorizationHeaderMalformed|IllegalLocationConstraintException)$/.test(code))
    return `lies in another region (${message}); set S3_REGION to it.`
  if (
    /^(InvalidAccessKeyId|SignatureDoesNotMatch|ExpiredToken|InvalidToken|TokenRefreshRequired)$/.test(code)
  )
    return `does not accept the credentials (${code}); set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY to some it accepts.`
  if (code === 'CredentialsProviderError')
    return 'needs credentials, and AWS lends this machine none; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.'
  if (status === 401 || status === 403)
    return `may not be used with these credentials (${code}); they need ${NEEDED_RIGHTS}.`
  return `cannot be used (${message}); check S3_ENDPOINT, S3_REGION and that it can be reached from here.`
}
