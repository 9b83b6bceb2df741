/** Sends a blob into a bucket while it comes in: in parts when it is large, and in one piece when it is not. */
import { ServiceError } from '../../lib/errors.ts'
import type { Bucket, SentPart, UploadAddress } from './bucket.ts'
import type { Part, SpareParts } from './part.ts'

const MIB = 1024 ** 2
const PART_BYTES = 8 * MIB
/** More are not in memory either: while they are on their way no further bytes are taken. */
const MAX_IN_FLIGHT = 2
/** S3's own limit. */
export const MAX_PARTS = 10_000
/** What is thrown away and does not go at once is left to the sweeper: somebody waits for an answer. */
const ABORT_TIMEOUT_MS = 5_000

/** How large the parts of a blob must be, all but the last, so that there are not too many of them. */
export function choosePartBytes(expectedBytes: number): number {
  return Math.max(PART_BYTES, Math.ceil(expectedBytes / MAX_PARTS / MIB) * MIB)
}

/** What an upload needs to know. */
export interface UploadOptions {
  readonly bucket: Bucket
  readonly key: string
  /** As far as anybody knows; 0 when nobody does. */
  readonly expectedBytes: number
  readonly spare: SpareParts
  /** Aborted with the store. */
  readonly closing: AbortSignal
}

/** One blob on its way into a bucket. `write` until all of it is there, then `end`, then `keep`; `discard` at any time. */
export class Upload {
  sizeBytes = 0
  private readonly bucket: Bucket
  private readonly key: string
  private readonly closing: AbortSignal
  private readonly stopping = new AbortController()
  private readonly signal: AbortSignal
  private readonly sending = new Set<Promise<void>>()
  private readonly sent: SentPart[] = []
  private readonly spare: SpareParts
  private part: Part
  private partCount = 0
  /** Undefined as long as the blob fits into one piece: nothing of it is in the bucket then. */
  private address: UploadAddress | undefined
  private failure: unknown
  private state: 'arriving' | 'committing' | 'committed' | 'aborted' = 'arriving'

  constructor({ bucket, key, expectedBytes, spare, closing }: UploadOptions) {
    this.bucket = bucket
    this.key = key
    this.spare = spare
    this.closing = closing
    this.part = spare.take(choosePartBytes(expectedBytes))
    this.signal = AbortSignal.any([closing, this.stopping.signal])
  }

  /** The id under which S3 has the parts; undefined while there are none. */
  get uploadId(): string | undefined {
    return this.address?.uploadId
  }

  /** Takes bytes, which may be overwritten afterwards; waits while too many are on their way. */
  async write(chunk: Uint8Array): Promise<void> {
    this.sizeBytes += chunk.length
    for (let rest = chunk; rest.length > 0; rest = this.part.take(rest)) {
      if (!this.part.isFull) continue
      await this.sendPart()
      this.part = this.spare.take(this.part.capacityBytes)
    }
  }

  /** Waits until all parts are in the bucket. */
  async end(): Promise<void> {
    if (this.address === undefined) return
    await this.sendPart()
    await Promise.all(this.sending)
    this.assertSound()
  }

  /** Puts the object there, in full. */
  async commit(): Promise<void> {
    this.state = 'committing'
    if (this.address === undefined) {
      await this.bucket.put(this.key, this.part.bytes, this.signal)
      this.spare.give(this.part)
    } else await this.complete(this.address)
    this.state = 'committed'
  }

  /** Takes everything out of the bucket again; does nothing once the object is kept. */
  async abort(): Promise<void> {
    if (this.state === 'committed' || this.state === 'aborted') return
    const mayBeThere = this.state === 'committing'
    this.state = 'aborted'
    this.stopping.abort()
    // A part that arrives after its upload was thrown away would stay.
    await Promise.all(this.sending)
    const signal = AbortSignal.any([this.closing, AbortSignal.timeout(ABORT_TIMEOUT_MS)])
    if (this.address !== undefined) await this.bucket.abortUpload(this.address, signal)
    // The answer was lost, perhaps, and not what it answered.
    if (mayBeThere) await this.bucket.delete(this.key, signal)
  }

  private async sendPart(): Promise<void> {
    this.address ??= { key: this.key, uploadId: await this.bucket.beginUpload(this.key, this.signal) }
    if (this.partCount === MAX_PARTS) throw tooLong(this.sizeBytes)
    this.partCount += 1
    const sending = this.send(this.address, this.partCount, this.part)
    this.sending.add(sending)
    void sending.then(() => this.sending.delete(sending))
    if (this.sending.size === MAX_IN_FLIGHT) await Promise.race(this.sending)
    this.assertSound()
  }

  /** Never rejects: whoever takes the next step finds the failure. */
  private async send(address: UploadAddress, number: number, part: Part): Promise<void> {
    try {
      this.sent.push(await this.bucket.sendPart(address, number, part.bytes, this.signal))
      this.spare.give(part)
    } catch (failure) {
      this.failure ??= failure
      this.stopping.abort()
    }
  }

  private assertSound(): void {
    if (this.failure !== undefined) throw this.failure
  }

  private async complete(address: UploadAddress): Promise<void> {
    const { bucket, sizeBytes, signal, sent } = this
    await completeOrFind({ bucket, address, sizeBytes, signal }, async () =>
      sent.toSorted((one, other) => one.PartNumber - other.PartNumber),
    )
  }
}

/** A multipart upload of which all is there, or nearly. */
interface Completion {
  readonly bucket: Bucket
  readonly address: UploadAddress
  readonly sizeBytes: number
  readonly signal: AbortSignal
}

/** Makes an object of the parts, which `prepare` lists, unless that has been done. */
export async function completeOrFind(
  { bucket, address, sizeBytes, signal }: Completion,
  prepare: () => Promise<readonly SentPart[]>,
): Promise<void> {
  try {
    await bucket.completeUpload(address, [...(await prepare())], signal)
  } catch (failure) {
    // Tried again after its answer was lost, it finds no upload any more.
    const foundBytes = await bucket.findSize(address.key, signal).catch(() => undefined)
    if (foundBytes !== sizeBytes) throw failure
  }
}

/** The failure of a blob that nobody expected to be so long. */
export function tooLong(sizeBytes: number): ServiceError {
  const message = `More than ${sizeBytes} bytes can only be taken in when their length is announced.`
  return new ServiceError('too_large', message)
}
