/** Where bytes are kept: what every store of them can do, be it a folder or a bucket. */
import type { Readable } from 'node:stream'

/** Bytes from `start` to `end`, both included, counted from 0. */
export interface ByteRange {
  readonly start: number
  readonly end: number
}

/** Bytes that have arrived but are nobody's yet; until `keep` they go with the process, however it ends. */
export interface StagedBlob {
  /** The name they will be found by: a UUID. */
  readonly name: string
  readonly sizeBytes: number
  /** Their first `HEAD_BYTES`, for whoever wants to know what they are. */
  readonly head: Uint8Array
  /**
   * Makes them last: once it resolves they survive a power failure.
   * @throws ServiceError `storage_full`
   */
  keep(): Promise<void>
  /** Throws them away; does nothing once they are kept. */
  discard(): Promise<void>
}

/** A kept blob as a store lists it. */
export interface BlobEntry {
  readonly name: string
  /** Unix milliseconds: when it was kept. */
  readonly keptAtMs: number
}

/** How much of a blob's beginning a staged one remembers. */
export const HEAD_BYTES = 4_096

/** The beginning of a blob with the next chunk of it behind, up to `HEAD_BYTES`. */
export function extendHead(head: Uint8Array, chunk: Uint8Array): Uint8Array {
  if (head.length >= HEAD_BYTES) return head
  return Buffer.concat([head, chunk.subarray(0, HEAD_BYTES - head.length)])
}

/** What a store calls a blob; whatever else lies where it keeps them is not its own. */
export function isBlobName(name: string): boolean {
  return /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(name)
}

/** A store of bytes under names of its own making. It never holds more than a few chunks of a blob in memory. */
export interface Blobs {
  /**
   * Takes in a stream to its end; when it fails, or `bytes` does, nothing stays behind. `expectedBytes` is what the sender
   * announced. Bytes that had a name elsewhere may keep it.
   * @throws ServiceError `storage_full`, or what `bytes` failed with.
   */
  stage(bytes: AsyncIterable<Uint8Array>, expectedBytes?: number, name?: string): Promise<StagedBlob>
  /** A kept blob, or the part of it that lies in `range`, as a stream; rejects when it is not there in full. */
  open(name: string, range?: ByteRange): Promise<Readable>
  /** Where a kept blob lies, for programs that only read it; only a store of files on this machine can tell. */
  findPath?(name: string): Promise<string>
  /** Removes a kept blob; does nothing when it is gone already. Streams of it that are open go on. */
  delete(name: string): Promise<void>
  /** Every kept blob, in no order: for finding those that belong to nothing. */
  list(): AsyncIterable<BlobEntry>
  /** Whether it can take in more: `full` where only the room is missing. Rejects when it cannot be used. */
  check(): Promise<'up' | 'full'>
  /** Clears away what was left unfinished long ago, be it by a process that died; never fails. */
  discardAbandoned(): Promise<void>
  /** Gives back what the store holds in this process. */
  close(): Promise<void>
}

/** All of a blob, named to the last byte, so that one which lost its end is not sent as if it were whole. */
export function wholeOf(sizeBytes: number): ByteRange | undefined {
  return sizeBytes === 0 ? undefined : { start: 0, end: sizeBytes - 1 }
}
