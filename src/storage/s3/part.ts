/** A piece of memory that bytes are gathered in until they are worth sending. */

/** Small blobs are many, so a part begins small, and doubles. */
const FIRST_BYTES = 64 * 1024

/** At most `capacityBytes` of a blob. What it no longer needs it gives back at once: V8 would let it pile up. */
export class Part {
  readonly capacityBytes: number
  private memory: ArrayBuffer
  private sizeBytes = 0

  constructor(capacityBytes: number) {
    this.capacityBytes = capacityBytes
    this.memory = new ArrayBuffer(Math.min(FIRST_BYTES, capacityBytes))
  }

  get isFull(): boolean {
    return this.sizeBytes === this.capacityBytes
  }

  /** What has been gathered; overwritten by what comes after `clear`. */
  get bytes(): Buffer {
    return Buffer.from(this.memory, 0, this.sizeBytes)
  }

  /** Copies as much as there is room for; answers with the rest. */
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

  /** Gives back the memory; only when no call is sending from it any more. */
  free(): void {
    this.clear()
    this.memory = this.memory.transfer(0)
  }

  private makeRoom(neededBytes: number): void {
    const { byteLength } = this.memory
    if (neededBytes <= byteLength) return
    this.memory = this.memory.transfer(Math.min(this.capacityBytes, Math.max(neededBytes, byteLength * 2)))
  }
}
