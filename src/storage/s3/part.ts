/** Pieces of memory that bytes are gathered in until they are worth sending. */

/** Small blobs are many, so a part begins small, and doubles. */
const FIRST_BYTES = 64 * 1024
/** What one upload needs; more is left to V8. */
const MAX_SPARE = 2

/** At most `capacityBytes` of a blob. */
export class Part {
  readonly capacityBytes: number
  private memory: ArrayBuffer
  private sizeBytes = 0

  constructor(capacityBytes: number) {
    this.capacityBytes = capacityBytes
    this.memory = new ArrayBuffer(Math.min(FIRST_BYTES, capacityBytes))
  }

  /** Whether it has grown to all of its capacity, be it in use or not. */
  get hasGrown(): boolean {
    return this.memory.byteLength === this.capacityBytes
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

  /** The memory left behind is free at once. Nothing is being sent from it: of the parts that were sent only those come back that have grown. */
  private makeRoom(neededBytes: number): void {
    const { byteLength } = this.memory
    if (neededBytes <= byteLength) return
    this.memory = this.memory.transfer(Math.min(this.capacityBytes, Math.max(neededBytes, byteLength * 2)))
  }
}

/** Keeps the memory of a few parts for the next ones: V8 would let it pile up. */
export class SpareParts {
  private readonly spare: Part[] = []

  /** An empty part. */
  take(capacityBytes: number): Part {
    const index = this.spare.findIndex((part) => part.capacityBytes === capacityBytes)
    const [part = new Part(capacityBytes)] = index < 0 ? [] : this.spare.splice(index, 1)
    return part
  }

  /** Takes back a part of which nobody needs the bytes any more. */
  give(part: Part): void {
    if (!part.hasGrown) return
    part.clear()
    this.spare.push(part)
    if (this.spare.length > MAX_SPARE) this.spare.shift()
  }
}
