/** Sends one growing blob into a bucket as its bytes come, so that what was promised of it outlives this process. */
import { ServiceError } from '../../lib/errors.ts'
import { countPassed } from '../../lib/external-memory.ts'
import type { ResumableBlob } from '../blobs.ts'
import type { Bucket } from './bucket.ts'
import { isMissing, rethrowS3 } from './failure.ts'
import type { Part, SpareParts } from './part.ts'
import { encodeTrailingPart, type TrailingPart, toTrailingKey } from './trailing-part.ts'
import { MAX_PARTS, tooLong } from './upload.ts'

export interface ResumableObjectOptions {
  readonly bucket: Bucket
  /** Of the object it will be. */
  readonly key: string
  /** Where its tails lie. */
  readonly folder: string
  readonly fence: number
  /** What it goes on from; its `nextNumber` is one that no other writer may use. */
  readonly trailing: TrailingPart
  /** The tail's name; undefined at the beginning. */
  readonly trailingKey: string | undefined
  /** Tails that nobody needs any more. */
  readonly obsolete: readonly string[]
  readonly spare: SpareParts
  /** Aborted with the store. */
  readonly closing: AbortSignal
}

/**
 * Its calls go one after another, so that at most two parts are in memory: the one that is being sent, or a tail, and the one that is
 * being gathered. A part is sent only once the one before is written down: a writer that is fenced out has at most one
 * number to write to that was not there before, and that is its own.
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
    // Before the tail that is asked for next, which would hold all of it once more.
    if (this.part.isFull && this.queuedParts === this.settledParts) this.queueFullPart().catch(() => {})
  }

  async sync(record: () => Promise<void>): Promise<void> {
    // No more than that: while it waits for a part to be sent, most of another may come.
    const { sizeBytes } = this
    const saved = await this.call(() => this.saveTrailingPart(sizeBytes))
    await record().catch((error) => this.fail(error))
    this.settle(saved)
  }

  async close(): Promise<void> {
    // What is still being sent was promised to nobody.
    this.stopping.abort()
    await this.calls
    this.options.spare.give(this.part)
  }

  /** Hands the full part over to be sent, and puts an empty one in its place; does not wait until it is sent. */
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
      // Somebody threw the parts away. Without its tail it begins again; with it, it would fail for ever.
      if (this.settledKey !== undefined) await bucket.delete(this.settledKey, this.signal)
      throw new ServiceError('service_unavailable', 'The storage has lost this upload.', { cause: error })
    }
    // Out; whoever received them has counted what came in.
    countPassed(part.capacityBytes)
    spare.give(part)
  }

  /** All parts before it are sent by its turn, and none after it: it begins where the last of them ends. */
  private async saveTrailingPart(endBytes: number): Promise<{ key: string; partCount: number }> {
    const { bucket, folder, fence } = this.options
    const { uploadId, parts, nextNumber, part } = this
    const startBytes = parts.length * part.capacityBytes
    // Whoever syncs while an append waits for its turn would write down an offset that no tail begins before.
    if (endBytes < startBytes) throw new Error('bytes that are not all added yet cannot be made safe')
    const bytes = part.bytes.subarray(0, endBytes - startBytes)
    const key = toTrailingKey(folder, { fence, startBytes, endBytes })
    const trailing = { uploadId, partBytes: part.capacityBytes, parts, nextNumber, bytes }
    const saved = { key, partCount: parts.length }
    if (key !== this.settledKey) await bucket.put(key, encodeTrailingPart(trailing), this.signal)
    return saved
  }

  /** The offset is written down: nobody goes on from an earlier tail any more. */
  private settle({ key, partCount }: { key: string; partCount: number }): void {
    const { settledKey, options } = this
    const gone =
      settledKey === undefined || settledKey === key ? this.obsolete : [...this.obsolete, settledKey]
    this.obsolete = []
    this.settledKey = key
    this.settledParts = partCount
    // Nobody waits for it: what does not go now goes with the upload.
    for (const one of gone) options.bucket.delete(one, options.closing).catch(() => {})
    this.settling?.resolve()
    this.settling = undefined
  }

  /** One after another, and none once one has failed. */
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
