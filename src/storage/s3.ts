/** Keeps bytes in a bucket of S3, or of anything that speaks like it. */
import { randomUUID } from 'node:crypto'
import type { Readable } from 'node:stream'
import { setTimeout as wait } from 'node:timers/promises'
import type { S3Config } from '../config/config.ts'
import type { ByteRange } from '../http/ranges.ts'
import { ServiceError } from '../lib/errors.ts'
import { countPassed } from '../lib/external-memory.ts'
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

/** For what a start asks of the bucket, and then for what it clears away there. */
const START_TIMEOUT_MS = 5_000
const CHECK_TIMEOUT_MS = 5_000
/** What is being thrown away may go on for so long after the service's end. */
const LAST_ABORTS_MS = 2_000
/** Parts that nobody here is sending are given up after so long, and the times of what was kept forgotten. */
const ABANDONED_AFTER_MS = 3_600_000
/** Security: 2.8 (caps each run) */
const MAX_ABORTED = 1_000

/** Which store to open, and with what. */
export interface S3BlobsOptions extends Pick<Dependencies, 'clock' | 'log'> {
  /** Stands before the names of its objects, behind the prefix of the bucket. */
  readonly name: string
  readonly installationId: string
  /** The usual ones unless given. */
  readonly timings?: BucketTimings
}

/**
 * Opens the store in a bucket. What a process that was killed had not finished is thrown away there, so no other server of the
 * installation may be running.
 * @throws StartupError when the bucket cannot be used, or is another installation's.
 */
export async function openS3Blobs(config: S3Config, options: S3BlobsOptions): Promise<Blobs> {
  const blobs = new S3Blobs(await openPlace(config, options), options)
  await blobs.abortUnfinished(Number.POSITIVE_INFINITY, AbortSignal.timeout(START_TIMEOUT_MS))
  return blobs
}

/**
 * Opens the store in a bucket with what grows beside it, up to `maxBytes` each. Nothing is thrown away at the start: that lives as long
 * as its rows, and whoever sweeps those clears away the rest.
 * @throws StartupError as `openS3Blobs`.
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
  if (config.credentials === undefined) log.info('the bucket is used with credentials that AWS lends')
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
  /** S3 dates an object by the beginning of its upload, which may have been long ago when it was kept. */
  private readonly storedAtMs = new Map<string, number>()
  private readonly hasResumableBlobs: boolean
  private isFull = false

  /** Where others grow beside it, its own unfinished uploads are swept with theirs. */
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

  /** Aborted when the store is closed. */
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
        // In, and out again.
        countPassed(2 * chunk.length)
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
    // To try it out costs more than to look, so only where there was no room the last time.
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
    const last = new AbortController()
    const { signal } = last
    const overdue = wait(LAST_ABORTS_MS, undefined, { signal, ref: false }).catch(() => {})
    await Promise.race([Promise.all(this.aborting), overdue])
    last.abort()
    this.closing.abort(new ServiceError('service_unavailable', 'The service is shutting down.'))
    this.bucket.close()
  }

  /** Throws away what was begun before that time (Unix milliseconds) and is not arriving here; never fails. */
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
      this.deps.log.warn({ err }, 'unfinished uploads could not be cleared out of the bucket')
    }
  }

  /** Whether it is being staged here. */
  isArriving({ uploadId }: UnfinishedUpload): boolean {
    return [...this.arriving].some((upload) => upload.uploadId === uploadId)
  }

  private async commit(name: string, upload: Upload): Promise<void> {
    await upload.commit().catch((error) => this.rethrow(error))
    this.isFull = false
    this.arriving.delete(upload)
    if (upload.uploadId !== undefined) this.storedAtMs.set(name, this.deps.clock.now())
  }

  /** What does not go now is found later: whoever waits has been told of another failure. */
  private async abort(upload: Upload): Promise<void> {
    const aborting = upload.abort().catch((err) => {
      this.deps.log.warn({ err }, 'bytes nobody keeps could not be taken out of the bucket yet')
    })
    this.aborting.add(aborting)
    await aborting
    this.aborting.delete(aborting)
    this.arriving.delete(upload)
  }

  private async tryToWrite(signal: AbortSignal): Promise<void> {
    const key = `${this.prefix}check`
    try {
      await this.bucket.put(key, Buffer.from('There is room.'), signal)
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
