/** Stores blobs as objects in an S3 bucket. */
import { randomUUID } from 'node:crypto'
import type { Readable } from 'node:stream'
import type { S3Config } from '../config/config.ts'
import type { ByteRange } from '../http/ranges.ts'
import { ServiceError } from '../lib/errors.ts'
import { countExternalBytes } from '../lib/external-memory.ts'
import { within } from '../lib/timeout.ts'
import {
  type BlobEntry,
  type Blobs,
  extendHead,
  isBlobName,
  type ResumableStore,
  type StagedBlob,
} from './blobs.ts'
import type { Dependencies } from './dependencies.ts'
import type { Bucket, UnfinishedUpload } from './s3/bucket.ts'
import { type BucketTimings, createBucket } from './s3/client.ts'
import { isFull, rethrowS3 } from './s3/failure.ts'
import { SpareParts } from './s3/part.ts'
import { claimPlace, type Place, toPlaceError } from './s3/prefix.ts'
import { openObject } from './s3/reading.ts'
import { Upload } from './s3/upload.ts'
import { S3ResumableBlobs } from './s3-resumable.ts'

const START_TIMEOUT_MS = 5_000
const CHECK_TIMEOUT_MS = 5_000
const LAST_ABORTS_MS = 2_000
const ABANDONED_AFTER_MS = 3_600_000
const MAX_ABORTED = 1_000

export interface S3BlobsOptions extends Pick<Dependencies, 'clock' | 'log'> {
  readonly name: string
  readonly installationId: string
  readonly timings?: BucketTimings
}

/**
 * Opens the store and aborts the unfinished uploads of earlier processes: all of them if this is the only
 * process of the installation, otherwise those older than an hour. @throws StartupError
 */
export async function openS3Blobs(
  config: S3Config,
  options: S3BlobsOptions & { readonly isOnlyServer: boolean },
): Promise<Blobs> {
  const blobs = new S3Blobs(await openPlace(config, options), options)
  const begunBeforeMs = options.isOnlyServer
    ? Number.POSITIVE_INFINITY
    : options.clock.now() - ABANDONED_AFTER_MS
  await blobs.abortUnfinished(begunBeforeMs, AbortSignal.timeout(START_TIMEOUT_MS))
  return blobs
}

/**
 * Opens the store without aborting unfinished uploads; the sweeper deletes those without a database row.
 * @throws StartupError in the same cases as `openS3Blobs`.
 */
export async function openS3ResumableStore(
  config: S3Config,
  options: S3BlobsOptions & { readonly maxBytes: number },
): Promise<ResumableStore> {
  const place = await openPlace(config, options)
  const blobs = new S3Blobs(place, options, true)
  const { maxBytes, log } = options
  const isArriving = (upload: UnfinishedUpload) => blobs.isArriving(upload)
  const resumable = new S3ResumableBlobs({ ...place, maxBytes, log, closing: blobs.closed, isArriving })
  return { blobs, resumable }
}

async function openPlace(config: S3Config, options: S3BlobsOptions): Promise<Place> {
  const { name, installationId, log, timings } = options
  const prefix = `${config.prefix}${name}/`
  let bucket: Bucket | undefined
  try {
    bucket = await createBucket(config, timings)
    await claimPlace({ bucket, prefix }, installationId, AbortSignal.timeout(START_TIMEOUT_MS))
  } catch (error) {
    bucket?.close()
    throw toPlaceError(error, config)
  }
  if (config.credentials === undefined)
    log.info('no S3 credentials are configured; using the AWS credentials of this machine or container')
  return { bucket, prefix }
}

class S3Blobs implements Blobs {
  private readonly bucket: Bucket
  private readonly prefix: string
  private readonly deps: Pick<Dependencies, 'clock' | 'log'>
  private readonly closing = new AbortController()
  private readonly spare = new SpareParts()
  private readonly arriving = new Set<Upload>()
  private readonly aborting = new Set<Promise<void>>()
  /**
   * Commit times of blobs sent in parts. S3 dates such an object by its upload's start, which may be much
   * earlier.
   */
  private readonly storedAtMs = new Map<string, number>()
  /** True if the artifact sweeper handles unfinished uploads. */
  private readonly hasResumableBlobs: boolean
  private isFull = false

  constructor(
    { bucket, prefix }: Place,
    deps: Pick<Dependencies, 'clock' | 'log'>,
    hasResumableBlobs = false,
  ) {
    this.bucket = bucket
    this.prefix = prefix
    this.deps = deps
    this.hasResumableBlobs = hasResumableBlobs
  }

  get closed(): AbortSignal {
    return this.closing.signal
  }

  async stage(
    bytes: AsyncIterable<Uint8Array>,
    expectedBytes = 0,
    name: string = randomUUID(),
  ): Promise<StagedBlob> {
    const { bucket, spare, closing } = this
    const key = this.prefix + name
    const upload = new Upload({ bucket, key, expectedBytes, spare, closing: closing.signal })
    this.arriving.add(upload)
    let head: Uint8Array = Buffer.alloc(0)
    try {
      for await (const chunk of bytes) {
        head = extendHead(head, chunk)
        await upload.write(chunk)
        // Counts each byte twice, because it is received and then sent.
        countExternalBytes(2 * chunk.length)
      }
      await upload.end()
    } catch (error) {
      await this.abort(upload)
      return this.rethrow(error)
    }
    return {
      name,
      sizeBytes: upload.sizeBytes,
      head,
      commit: () => this.commit(name, upload),
      abort: () => this.abort(upload),
    }
  }

  open(name: string, range?: ByteRange): Promise<Readable> {
    return openObject(this.bucket, this.prefix + name, range, this.closing.signal)
  }

  async delete(name: string): Promise<void> {
    await this.bucket.delete(this.prefix + name, this.closing.signal).catch(rethrowS3)
  }

  async *list(): AsyncIterable<BlobEntry> {
    try {
      for await (const { key, begunAtMs } of this.bucket.list(this.prefix, this.closing.signal)) {
        const name = key.slice(this.prefix.length)
        if (isBlobName(name)) yield { name, storedAtMs: this.storedAtMs.get(name) ?? begunAtMs }
      }
    } catch (error) {
      rethrowS3(error)
    }
  }

  async check(): Promise<'up' | 'full'> {
    const signal = AbortSignal.any([this.closing.signal, AbortSignal.timeout(CHECK_TIMEOUT_MS)])
    await this.bucket.probe(signal)
    // Writes a test object only after an earlier write has found the bucket full; otherwise, the cheaper
    // `probe` is enough.
    if (this.isFull) await this.tryToWrite(signal)
    return this.isFull ? 'full' : 'up'
  }

  async abortAbandoned(): Promise<void> {
    const begunBeforeMs = this.deps.clock.now() - ABANDONED_AFTER_MS
    for (const [name, storedAtMs] of this.storedAtMs)
      if (storedAtMs < begunBeforeMs) this.storedAtMs.delete(name)
    if (!this.hasResumableBlobs) await this.abortUnfinished(begunBeforeMs, this.closing.signal)
  }

  async close(): Promise<void> {
    await within(LAST_ABORTS_MS, Promise.all(this.aborting), () => {})
    this.closing.abort(new ServiceError('service_unavailable', 'The server is shutting down.'))
    this.bucket.close()
  }

  /**
   * Aborts uploads started before the given Unix time in milliseconds, except those staged here. Never
   * rejects.
   */
  async abortUnfinished(begunBeforeMs: number, signal: AbortSignal): Promise<void> {
    let aborted = 0
    try {
      for await (const upload of this.bucket.listUnfinished(this.prefix, signal)) {
        const isOurs = isBlobName(upload.key.slice(this.prefix.length))
        if (!isOurs || upload.begunAtMs >= begunBeforeMs || this.isArriving(upload)) continue
        if (aborted++ === MAX_ABORTED) return
        await this.bucket.abortUpload(upload, signal)
      }
    } catch (err) {
      this.deps.log.warn({ err }, 'failed to abort unfinished uploads in the bucket')
    }
  }

  isArriving({ uploadId }: UnfinishedUpload): boolean {
    return [...this.arriving].some((upload) => upload.uploadId === uploadId)
  }

  private async commit(name: string, upload: Upload): Promise<void> {
    await upload.commit().catch((error) => this.rethrow(error))
    this.isFull = false
    this.arriving.delete(upload)
    if (upload.uploadId !== undefined) this.storedAtMs.set(name, this.deps.clock.now())
  }

  /**
   * Logs failures instead of throwing, because the caller has already reported an error and the sweeper
   * deletes the rest.
   */
  private async abort(upload: Upload): Promise<void> {
    const aborting = upload.abort().catch((err) => {
      this.deps.log.warn({ err }, 'failed to delete aborted bytes from the bucket; the sweeper will retry')
    })
    this.aborting.add(aborting)
    await aborting
    this.aborting.delete(aborting)
    this.arriving.delete(upload)
  }

  private async tryToWrite(signal: AbortSignal): Promise<void> {
    const key = `${this.prefix}check`
    try {
      await this.bucket.put(key, Buffer.from('Space check.'), signal)
      await this.bucket.delete(key, signal)
      this.isFull = false
    } catch (error) {
      if (!isFull(error)) throw error
    }
  }

  private rethrow(error: unknown): never {
    this.isFull ||= isFull(error)
    return rethrowS3(error)
  }
}
