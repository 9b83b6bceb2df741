/**
 * Opens a bucket for commands: `parley doctor` checks its permissions, and `parley store adopt` marks its
 * prefixes.
 */
import { randomUUID } from 'node:crypto'
import type { S3Config } from '../config/config.ts'
import { MARK, type StoreName, storeNames } from './mark.ts'
import type { Bucket } from './s3/bucket.ts'
import { createBucket } from './s3/client.ts'
import { S3Failure } from './s3/failure.ts'
import { isOwnPlace, readMark, toPlaceError } from './s3/prefix.ts'

const CHECK_TIMEOUT_MS = 10_000

/**
 * Returns false if the credentials cannot list unfinished uploads, which can then never be deleted. @throws
 * StartupError if a server start or an upload would fail.
 */
export function checkBucket(
  config: S3Config,
  name: string,
  installationId: string | undefined,
): Promise<boolean> {
  const prefix = `${config.prefix}${name}/`
  return withBucket(config, async (bucket) => {
    const signal = AbortSignal.timeout(CHECK_TIMEOUT_MS)
    await isOwnPlace({ bucket, prefix }, installationId, signal)
    const key = `${prefix}doctor-${randomUUID()}`
    await bucket.put(key, Buffer.from('parley doctor'), signal)
    await bucket.delete(key, signal)
    await bucket.abortUpload({ key, uploadId: await bucket.beginUpload(key, signal) }, signal)
    try {
      for await (const _upload of bucket.listUnfinished(prefix, signal)) break
      return true
    } catch (error) {
      if (error instanceof S3Failure) return false
      throw error
    }
  })
}

/**
 * Marks both prefixes for this installation even if they have different marks; returns their previous marks.
 * @throws StartupError
 */
export function adoptPlaces(
  config: S3Config,
  id: string,
  signal: AbortSignal,
): Promise<Record<StoreName, string | null>> {
  return withBucket(config, async (bucket) => {
    const former: Record<StoreName, string | null> = { files: null, artifacts: null }
    for (const name of storeNames) {
      const prefix = `${config.prefix}${name}/`
      former[name] = (await readMark({ bucket, prefix }, signal)) ?? null
      if (former[name] !== id) await bucket.put(prefix + MARK, Buffer.from(`${id}\n`), signal)
    }
    return former
  })
}

async function withBucket<T>(config: S3Config, use: (bucket: Bucket) => Promise<T>): Promise<T> {
  let bucket: Bucket | undefined
  try {
    bucket = await createBucket(config)
    return await use(bucket)
  } catch (error) {
    throw toPlaceError(error, config)
  } finally {
    bucket?.close()
  }
}
