/** Checks at start that a bucket can be used and that the store's prefix belongs to this installation. */
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

/** False if the prefix is empty and unmarked. @throws StartupError for another installation, or blobs without a mark; S3Failure. */
export async function isOwnPlace(
  place: Place,
  installationId: string | undefined,
  signal: AbortSignal,
): Promise<boolean> {
  const { prefix } = place
  const mark = await readMark(place, signal)
  if (mark === undefined) {
    if (!(await holdsBlobs(place, signal))) return false
    const id = installationId ?? 'the id that a start will name here'
    throw new StartupError(
      `The bucket holds files under ${prefix} already, and nothing says whose they are; set S3_PREFIX to a place of its own, or, if they are this installation's, run \`parley store adopt\` or put an object ${prefix}${MARK} there that holds ${id}.`,
    )
  }
  if (mark === installationId) return true
  const whose =
    installationId === undefined ? 'the database has none yet' : `the id of the database is ${installationId}`
  throw new StartupError(
    `What is stored under ${prefix} in the bucket belongs to another installation, or to this one with another database: its object ${prefix}${MARK} holds ${mark}, and ${whose}. Set S3_PREFIX to a place of its own, or put the right database back. If these files do belong to this database, run \`parley store adopt\`; the server deletes files that no row names.`,
  )
}

export async function readMark({ bucket, prefix }: Place, signal: AbortSignal): Promise<string | undefined> {
  const mark = await bucket.find(prefix + MARK, undefined, signal)
  return mark && (await text(mark.body)).trim()
}

/** @throws StartupError as `isOwnPlace`; S3Failure. */
export async function claimPlace(place: Place, installationId: string, signal: AbortSignal): Promise<void> {
  if (await isOwnPlace(place, installationId, signal)) return
  await place.bucket.putNew(place.prefix + MARK, Buffer.from(`${installationId}\n`), signal)
  // Another installation may have written its mark first.
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
  // The time limit of the whole start.
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
