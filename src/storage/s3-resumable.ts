/**
 * Stores active uploads in a bucket: full parts in a multipart upload, trailing bytes in a separate object.
 * See docs/adr/0023.
 */
import { buffer } from 'node:stream/consumers'
import { type BlobEntry, isBlobName, type ResumableBlob, type ResumableBlobs } from './blobs.ts'
import type { Dependencies } from './dependencies.ts'
import type { Bucket, UnfinishedUpload } from './s3/bucket.ts'
import { rethrowS3, S3Failure } from './s3/failure.ts'
import { SpareParts } from './s3/part.ts'
import { ResumableObject } from './s3/resumable-object.ts'
import {
  chooseTrailingPart,
  decodeTrailingPart,
  parseTrailingKey,
  type TrailingPart,
  type TrailingPartEntry,
} from './s3/trailing-part.ts'
import { choosePartBytes, completeOrFind, MAX_PARTS } from './s3/upload.ts'

const RESUMABLE_FOLDER = 'growing/'
/** Each lease skips this many part numbers, because a fenced-out writer may use the next one. */
const NUMBERS_PER_LEASE = 2

interface S3ResumableOptions extends Pick<Dependencies, 'log'> {
  readonly bucket: Bucket
  readonly prefix: string
  readonly maxBytes: number
  readonly closing: AbortSignal
  /** Returns whether this process is sending that multipart upload for a staged blob. */
  isArriving(upload: UnfinishedUpload): boolean
}

export class S3ResumableBlobs implements ResumableBlobs {
  readonly survivesCrashes = true
  /** Longer than for local storage, because each sync resends all bytes after the last full part. */
  readonly syncEveryMs = 5_000
  private readonly options: S3ResumableOptions
  private readonly spare = new SpareParts()

  constructor(options: S3ResumableOptions) {
    this.options = options
  }

  async extend(name: string, offset: number, fence: number): Promise<ResumableBlob | undefined> {
    const { bucket, closing } = this.options
    const [key, folder] = [this.keyOf(name), this.folderOf(name)]
    const options = { bucket, key, folder, fence, closing, spare: this.spare }
    if (offset === 0)
      return new ResumableObject({ ...options, trailing: this.begin(), trailingKey: undefined, obsolete: [] })
    const trailingParts = (await this.listTrailingParts(name)).filter((trailing) => trailing.fence <= fence)
    const chosen = chooseTrailingPart(trailingParts, offset)
    const trailing = chosen && (await this.loadTrailingPart(chosen, offset))
    if (chosen === undefined || trailing === undefined) return undefined
    const nextNumber = this.skipNumbers(trailing, fence - chosen.fence)
    const obsolete = trailingParts.filter((other) => other !== chosen).map((other) => other.key)
    const resumed = { trailing: { ...trailing, nextNumber }, trailingKey: chosen.key, obsolete }
    return new ResumableObject({ ...options, ...resumed })
  }

  async assertSpace(): Promise<void> {
    // Has no effect, because S3 reports a full bucket only by rejecting a write.
  }

  async findSize(name: string): Promise<number | undefined> {
    const { bucket, closing } = this.options
    const keptBytes = await bucket.findSize(this.keyOf(name), closing).catch(rethrowS3)
    if (keptBytes !== undefined) return keptBytes
    const sizes = (await this.listTrailingParts(name)).map(({ endBytes }) => endBytes)
    return sizes.length === 0 ? undefined : Math.max(...sizes)
  }

  async commit(name: string, sizeBytes: number): Promise<void> {
    const { bucket, closing } = this.options
    const key = this.keyOf(name)
    const trailingParts = await this.listTrailingParts(name)
    const chosen = chooseTrailingPart(trailingParts, sizeBytes)
    const trailing =
      sizeBytes === 0 ? this.begin() : chosen && (await this.loadTrailingPart(chosen, sizeBytes))
    if (trailing === undefined) {
      // If the trailing part is missing, an earlier attempt may have completed the blob and crashed before
      // the database update.
      const keptBytes = await bucket.findSize(key, closing).catch(rethrowS3)
      if (keptBytes !== sizeBytes) throw new Error(`the blob ${name} does not have ${sizeBytes} bytes`)
    } else await this.finish(key, trailing, sizeBytes).catch(rethrowS3)
    await this.deleteTrailingParts(trailingParts)
  }

  async delete(name: string): Promise<void> {
    const { bucket, closing, log } = this.options
    const key = this.keyOf(name)
    try {
      await this.deleteTrailingParts(await this.listTrailingParts(name))
      for await (const upload of bucket.listUnfinished(key, closing)) {
        if (upload.key === key && !this.options.isArriving(upload)) await bucket.abortUpload(upload, closing)
      }
    } catch (err) {
      // Does not rethrow, because the sweeper will delete the remaining objects.
      log.warn({ err, blob: name }, 'failed to delete an upload from the bucket; the sweeper will retry')
    }
  }

  async *list(): AsyncIterable<BlobEntry> {
    const folder = this.options.prefix + RESUMABLE_FOLDER
    const changedAtMs = await this.listUnfinished()
    for await (const { key, begunAtMs } of this.options.bucket.list(folder, this.options.closing)) {
      const name = key.slice(folder.length).split('/', 1)[0] ?? ''
      if (parseTrailingKey(key) === undefined || !isBlobName(name)) continue
      changedAtMs.set(name, Math.max(begunAtMs, changedAtMs.get(name) ?? 0))
    }
    for (const [name, storedAtMs] of changedAtMs) yield { name, storedAtMs }
  }

  /** Returns each multipart upload's start time, keyed by name. Empty if the bucket does not list them. */
  private async listUnfinished(): Promise<Map<string, number>> {
    const { bucket, prefix, closing, log, isArriving } = this.options
    const begunAtMs = new Map<string, number>()
    try {
      for await (const upload of bucket.listUnfinished(prefix, closing)) {
        const name = upload.key.slice(prefix.length)
        if (isBlobName(name) && !isArriving(upload)) begunAtMs.set(name, upload.begunAtMs)
      }
    } catch (err) {
      if (!(err instanceof S3Failure)) throw err
      log.warn({ err }, 'failed to list unfinished uploads in the bucket')
    }
    return begunAtMs
  }

  private async finish(key: string, { uploadId, parts, nextNumber, bytes }: TrailingPart, sizeBytes: number) {
    const { bucket, closing } = this.options
    if (uploadId === undefined) return bucket.put(key, bytes, closing)
    const address = { key, uploadId }
    await completeOrFind(bucket, address, sizeBytes, closing, async () => {
      if (bytes.length === 0) return parts
      return [...parts, await bucket.sendPart(address, nextNumber, bytes, closing)]
    })
  }

  private begin(): TrailingPart {
    // Leaves twice as many part numbers as needed, because leases may skip up to half of them.
    const partBytes = choosePartBytes(2 * this.options.maxBytes)
    return { uploadId: undefined, partBytes, parts: [], nextNumber: 1, bytes: new Uint8Array() }
  }

  /** Returns the first part number that only this writer uses. Skips fewer numbers if few are left. */
  private skipNumbers({ partBytes, parts, nextNumber }: TrailingPart, leases: number): number {
    const mostParts = Math.ceil(this.options.maxBytes / partBytes)
    const lastStart = MAX_PARTS + 1 - (mostParts - parts.length)
    return Math.max(nextNumber, Math.min(nextNumber + NUMBERS_PER_LEASE * leases, lastStart))
  }

  /** Loads the trailing part up to `endBytes`. Returns undefined if the object does not exist. */
  private async loadTrailingPart(
    { key, startBytes }: TrailingPartEntry,
    endBytes: number,
  ): Promise<TrailingPart | undefined> {
    const { bucket, closing } = this.options
    const found = await bucket.find(key, undefined, closing).catch(rethrowS3)
    if (found === undefined) return undefined
    const trailing = decodeTrailingPart(await buffer(found.body))
    return { ...trailing, bytes: trailing.bytes.subarray(0, endBytes - startBytes) }
  }

  private async listTrailingParts(name: string): Promise<TrailingPartEntry[]> {
    const { bucket, closing } = this.options
    const trailingParts: TrailingPartEntry[] = []
    try {
      for await (const { key } of bucket.list(this.folderOf(name), closing)) {
        const trailing = parseTrailingKey(key)
        if (trailing !== undefined) trailingParts.push(trailing)
      }
      return trailingParts
    } catch (error) {
      return rethrowS3(error)
    }
  }

  private async deleteTrailingParts(trailingParts: readonly TrailingPartEntry[]): Promise<void> {
    const { bucket, closing, log } = this.options
    const deleting = trailingParts.map(({ key }) => bucket.delete(key, closing))
    await Promise.all(deleting).catch((err) => log.warn({ err }, 'failed to delete a trailing part'))
  }

  private keyOf(name: string): string {
    return this.options.prefix + name
  }

  private folderOf(name: string): string {
    return `${this.options.prefix}${RESUMABLE_FOLDER}${name}/`
  }
}
