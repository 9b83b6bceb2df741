/**
 * Sends an active upload to the bucket as it arrives, so that acknowledged bytes survive a crash of this
 * process.
 */
import { ServiceError } from '../../lib/errors.ts'
import { countExternalBytes } from '../../lib/external-memory.ts'
import type { ResumableBlob } from '../blobs.ts'
import type { Bucket } from './bucket.ts'
import { isMissing, rethrowS3 } from './failure.ts'
import type { Part, SpareParts } from './part.ts'
import { encodeTrailingPart, type TrailingPart, toTrailingKey } from './trailing-part.ts'
import { MAX_PARTS, tooLong } from './upload.ts'

interface ResumableObjectOptions {
  readonly bucket: Bucket
  readonly key: string
  readonly folder: string
  readonly fence: number
  /** The state to resume from; its `nextNumber` is unused by other writers. */
  readonly trailing: TrailingPart
  readonly trailingKey: string | undefined
  readonly obsolete: readonly string[]
  readonly spare: SpareParts
  readonly closing: AbortSignal
}

/**
 * Sends one request at a time, with two parts in memory. Sends a part only after the previous part is
 * recorded, so that a fenced-out writer uses at most one new part number.
 */
export class ResumableObject implements ResumableBlob {
  private readonly options: ResumableObjectOptions
  private readonly stopping = new AbortController()
  private readonly signal: AbortSignal
  private uploadId: string | undefined
  private readonly parts: TrailingPart['parts'][number][]
  private nextNumber: number
  private part: Part
  private sizeBytes: number
  private queuedParts: number
  private settledParts: number
  private settledKey: string | undefined
  private obsolete: readonly string[]
  private calls: Promise<unknown> = Promise.resolve()
  private passing: Promise<void> | undefined
  private settling: PromiseWithResolvers<void> | undefined
  private failure: unknown

  constructor(options: ResumableObjectOptions) {
    const { trailing, trailingKey, spare, closing, obsolete } = options
    this.options = options
    this.signal = AbortSignal.any([closing, this.stopping.signal])
    this.uploadId = trailing.uploadId
    this.parts = [...trailing.parts]
    this.nextNumber = trailing.nextNumber
    this.part = spare.take(trailing.partBytes)
    this.part.take(trailing.bytes)
    this.sizeBytes = trailing.parts.length * trailing.partBytes + trailing.bytes.length
    this.queuedParts = trailing.parts.length
    this.settledParts = trailing.parts.length
    this.settledKey = trailingKey
    this.obsolete = obsolete
  }

  async append(chunks: readonly Uint8Array[]): Promise<void> {
    if (this.failure !== undefined) throw this.failure
    for (const chunk of chunks) {
      for (let rest = chunk; rest.length > 0; rest = this.part.take(rest))
        if (this.part.isFull) await this.queueFullPart()
      this.sizeBytes += chunk.length
    }
    // Sends the full part now; otherwise the next trailing part would contain it too.
    if (this.part.isFull && this.queuedParts === this.settledParts) this.queueFullPart().catch(() => {})
  }

  async sync(record: () => Promise<void>): Promise<void> {
    // Covers only the bytes appended so far, because more may be appended while a part is being sent.
    const { sizeBytes } = this
    const saved = await this.call(() => this.saveTrailingPart(sizeBytes))
    await record().catch((error) => this.fail(error))
    this.settle(saved)
  }

  async close(): Promise<void> {
    // Aborts requests in progress, whose bytes were never acknowledged.
    this.stopping.abort()
    await this.calls
    this.options.spare.give(this.part)
  }

  /** Queues the full part for sending and replaces it with an empty one, without waiting for the transfer. */
  private queueFullPart(): Promise<void> {
    this.passing ??= this.queuePartInTurn().finally(() => {
      this.passing = undefined
    })
    return this.passing
  }

  private async queuePartInTurn(): Promise<void> {
    while (this.queuedParts > this.settledParts) {
      if (this.failure !== undefined) throw this.failure
      this.settling ??= Promise.withResolvers()
      await this.settling.promise
    }
    const { promise: passed, resolve, reject } = Promise.withResolvers<void>()
    const sending = this.call(async () => {
      const { part } = this
      this.part = this.options.spare.take(part.capacityBytes)
      this.queuedParts += 1
      resolve()
      await this.send(part)
    })
    sending.catch(reject)
    await passed
  }

  private async send(part: Part): Promise<void> {
    const { bucket, key, spare } = this.options
    const number = this.nextNumber
    if (number > MAX_PARTS) throw tooLong(this.parts.length * part.capacityBytes)
    this.nextNumber += 1
    this.uploadId ??= await bucket.beginUpload(key, this.signal)
    const address = { key, uploadId: this.uploadId }
    try {
      this.parts.push(await bucket.sendPart(address, number, part.bytes, this.signal))
    } catch (error) {
      if (!isMissing(error)) throw error
      // The multipart upload was aborted externally. Deletes the trailing part, because every retry would
      // fail with it; without it, the upload restarts.
      if (this.settledKey !== undefined) await bucket.delete(this.settledKey, this.signal)
      throw new ServiceError(
        'service_unavailable',
        'The storage lost the received bytes of this upload. Read its offset, and send the bytes again.',
        { cause: error },
      )
    }
    // Counts only sent bytes; the request that delivers them counts them when they are received.
    countExternalBytes(part.capacityBytes)
    spare.give(part)
  }

  /**
   * Runs in the queue between the earlier and later parts, so that the trailing part starts after the last
   * sent part.
   */
  private async saveTrailingPart(endBytes: number): Promise<{ key: string; partCount: number }> {
    const { bucket, folder, fence } = this.options
    const { uploadId, parts, nextNumber, part } = this
    const startBytes = parts.length * part.capacityBytes
    // Without this check, `sync` during an `append` could end before the start of the trailing part.
    if (endBytes < startBytes) throw new Error('cannot sync bytes that have not all been appended')
    const bytes = part.bytes.subarray(0, endBytes - startBytes)
    const key = toTrailingKey(folder, fence, startBytes, endBytes)
    const trailing = { uploadId, partBytes: part.capacityBytes, parts, nextNumber, bytes }
    const saved = { key, partCount: parts.length }
    if (key !== this.settledKey) await bucket.put(key, encodeTrailingPart(trailing), this.signal)
    return saved
  }

  private settle({ key, partCount }: { key: string; partCount: number }): void {
    const { settledKey, options } = this
    const gone =
      settledKey === undefined || settledKey === key ? this.obsolete : [...this.obsolete, settledKey]
    this.obsolete = []
    this.settledKey = key
    this.settledParts = partCount
    // Not awaited, because objects that cannot be deleted now are deleted with the upload.
    for (const one of gone) options.bucket.delete(one, options.closing).catch(() => {})
    this.settling?.resolve()
    this.settling = undefined
  }

  /** Runs requests one after another, and rejects all requests after a failure. */
  private call<T>(send: () => Promise<T>): Promise<T> {
    const called = this.calls.then(() => {
      if (this.failure !== undefined) throw this.failure
      return send().catch(rethrowS3)
    })
    const result = called.catch((error) => this.fail(error))
    this.calls = result.catch(() => {})
    return result
  }

  private fail(error: unknown): never {
    this.failure ??= error
    this.settling?.reject(error)
    this.settling = undefined
    throw error
  }
}
