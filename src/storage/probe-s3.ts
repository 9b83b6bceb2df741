/** Checks for `parley doctor` that a bucket allows all calls of the server, and leaves nothing behind. */
import { randomUUID } from 'node:crypto'
import type { S3Config } from '../config/config.ts'
import type { Bucket } from './s3/bucket.ts'
import { createBucket } from './s3/client.ts'
import { S3Failure } from './s3/failure.ts'
import { isOwnPlace, toPlaceError } from './s3/prefix.ts'

/** The time limit of the whole check. */
const CHECK_TIMEOUT_MS = 10_000

/**
 * Reads, writes and deletes under the store's prefix. Returns false if unfinished uploads cannot be listed; those of a killed server would
 * never be deleted.
 * @throws StartupError when a start or an upload would fail.
 */
export async function checkBucket(
  config: S3Config,
  name: string,
  installationId: string | undefined,
): Promise<boolean> {
  const prefix = `${config.prefix}${name}/`
  let bucket: Bucket | undefined
  try {
    bucket = await createBucket(config)
    const signal = AbortSignal.timeout(CHECK_TIMEOUT_MS)
    await isOwnPlace({ bucket, prefix }, installationId, signal)
    const address = { key: `${prefix}doctor-${randomUUID()}`, uploadId: '' }
    await bucket.put(address.key, Buffer.from('parley doctor'), signal)
    await bucket.delete(address.key, signal)
    const uploadId = await bucket.beginUpload(address.key, signal)
    await bucket.abortUpload({ ...address, uploadId }, signal)
    return await canListUnfinished(bucket, prefix, signal)
  } catch (error) {
    throw toPlaceError(error, config)
  } finally {
    bucket?.close()
  }
}

async function canListUnfinished(bucket: Bucket, prefix: string, signal: AbortSignal): Promise<boolean> {
  try {
    for await (const _upload of bucket.listUnfinished(prefix, signal)) return true
    return true
  } catch (error) {
    if (error instanceof S3Failure) return false
    throw error
  }
}

export { adoptPlaces } from './s3/prefix.ts'
