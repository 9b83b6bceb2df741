/** Collects bytes in memory until they are sent as one part. */

/** Initial size; a buffer doubles as needed, because most blobs are small. */
const FIRST_BYTES = 64 * 1024
/** Number of buffers to reuse; enough for one upload. */
const MAX_SPARE = 2

export class Part {
  readonly capacityBytes: number
  private memory: ArrayBuffer
  private sizeBytes = 0

  constructor(capacityBytes: number) {
    this.capacityBytes = capacityBytes
    this.memory = new ArrayBuffer(Math.min(FIRST_BYTES, capacityBytes))
  }

  get hasGrown(): boolean {
    return this.memory.byteLength === this.capacityBytes
  }

  get isFull(): boolean {
    return this.sizeBytes === this.capacityBytes
  }

  /** The collected bytes. They are overwritten by the first `take` after `clear`. */
  get bytes(): Buffer {
    return Buffer.from(this.memory, 0, this.sizeBytes)
  }

  take(chunk: Uint8Array): Uint8Array {
    const taken = chunk.subarray(0, this.capacityBytes - this.sizeBytes)
    this.makeRoom(this.sizeBytes + taken.length)
    new Uint8Array(this.memory).set(taken, this.sizeBytes)
    this.sizeBytes += taken.length
    return chunk.subarray(taken.length)
  }

  clear(): void {
    this.sizeBytes = 0
  }

  /**
   * Grows the buffer and frees the old one immediately; this is safe because requests only read full-size
   * buffers, which never grow.
   */
  private makeRoom(neededBytes: number): void {
    const { byteLength } = this.memory
    if (neededBytes <= byteLength) return
    this.memory = this.memory.transfer(Math.min(this.capacityBytes, Math.max(neededBytes, byteLength * 2)))
  }
}

/** Reuses the memory of a few parts, because V8 would free it too late. */
export class SpareParts {
  private readonly spare: Part[] = []

  take(capacityBytes: number): Part {
    const index = this.spare.findIndex((part) => part.capacityBytes === capacityBytes)
    const [part = new Part(capacityBytes)] = index < 0 ? [] : this.spare.splice(index, 1)
    return part
  }

  give(part: Part): void {
    if (!part.hasGrown) return
    part.clear()
    this.spare.push(part)
    if (this.spare.length > MAX_SPARE) this.spare.shift()
  }
}
