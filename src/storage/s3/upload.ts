/**
 * Sends a blob to the bucket while it is being received: large blobs in parts, small ones in a single
 * request.
 */
import { ServiceError } from '../../lib/errors.ts'
import type { Bucket, SentPart, UploadAddress } from './bucket.ts'
import type { Part, SpareParts } from './part.ts'

const MIB = 1024 ** 2
const PART_BYTES = 8 * MIB
/**
 * Maximum number of parts being sent. Also limits memory, because `write` waits while this many are being
 * sent.
 */
const MAX_IN_FLIGHT = 2
export const MAX_PARTS = 10_000
/** After this timeout, cleanup is left to the sweeper, because a client is waiting for the response. */
const ABORT_TIMEOUT_MS = 5_000

export function choosePartBytes(expectedBytes: number): number {
  return Math.max(PART_BYTES, Math.ceil(expectedBytes / MAX_PARTS / MIB) * MIB)
}

interface UploadOptions {
  readonly bucket: Bucket
  readonly key: string
  /** Expected size in bytes; 0 if unknown. */
  readonly expectedBytes: number
  readonly spare: SpareParts
  readonly closing: AbortSignal
}

/** A staged blob. Call `write` for all bytes, then `end`, then `commit`; call `abort` at any time. */
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
  /** Undefined while the whole blob fits into one part, so that nothing has been sent yet. */
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

  get uploadId(): string | undefined {
    return this.address?.uploadId
  }

  /** Copies the chunk. Waits while too many parts are being sent. */
  async write(chunk: Uint8Array): Promise<void> {
    this.sizeBytes += chunk.length
    for (let rest = chunk; rest.length > 0; rest = this.part.take(rest)) {
      if (!this.part.isFull) continue
      await this.sendPart()
      this.part = this.spare.take(this.part.capacityBytes)
    }
  }

  async end(): Promise<void> {
    if (this.address === undefined) return
    await this.sendPart()
    await Promise.all(this.sending)
    this.assertSound()
  }

  async commit(): Promise<void> {
    this.state = 'committing'
    if (this.address === undefined) {
      await this.bucket.put(this.key, this.part.bytes, this.signal)
      this.spare.give(this.part)
    } else {
      await completeOrFind(this.bucket, this.address, this.sizeBytes, this.signal, async () =>
        this.sent.toSorted((one, other) => one.PartNumber - other.PartNumber),
      )
    }
    this.state = 'committed'
  }

  async abort(): Promise<void> {
    if (this.state === 'committed' || this.state === 'aborted') return
    const mayBeThere = this.state === 'committing'
    this.state = 'aborted'
    this.stopping.abort()
    // Waits until no part is being sent, because a part that arrives after the abort would remain in the
    // bucket.
    await Promise.all(this.sending)
    const signal = AbortSignal.any([this.closing, AbortSignal.timeout(ABORT_TIMEOUT_MS)])
    if (this.address !== undefined) await this.bucket.abortUpload(this.address, signal)
    // The upload may have been stored even though its response was lost.
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

  /** Sends one part. Never rejects; the next step throws the failure. */
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
}

/** Completes the upload with the parts that `prepare` returns, unless it is already complete. */
export async function completeOrFind(
  bucket: Bucket,
  address: UploadAddress,
  sizeBytes: number,
  signal: AbortSignal,
  prepare: () => Promise<readonly SentPart[]>,
): Promise<void> {
  try {
    await bucket.completeUpload(address, [...(await prepare())], signal)
  } catch (failure) {
    // If the response was lost, the upload no longer exists when the SDK retries.
    const foundBytes = await bucket.findSize(address.key, signal).catch(() => undefined)
    if (foundBytes !== sizeBytes) throw failure
  }
}

export function tooLong(sizeBytes: number): ServiceError {
  const message = `An upload of more than ${sizeBytes} bytes must declare its length in advance.`
  return new ServiceError('too_large', message)
}
