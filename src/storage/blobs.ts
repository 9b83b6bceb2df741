/** Where bytes are kept: what every store of them can do, be it a folder or a bucket. */
import type { Readable } from 'node:stream'
import type { ByteRange } from '../http/ranges.ts'

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
  commit(): Promise<void>
  /** Throws them away; does nothing once they are kept. */
  abort(): Promise<void>
}

/** A kept blob as a store lists it. */
export interface BlobEntry {
  readonly name: string
  /** Unix milliseconds: when it was kept. */
  readonly storedAtMs: number
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
  abortAbandoned(): Promise<void>
  /** Gives back what the store holds in this process. */
  close(): Promise<void>
}

/** All of a blob, named to the last byte, so that one which lost its end is not sent as if it were whole. */
export function wholeOf(sizeBytes: number): ByteRange | undefined {
  return sizeBytes === 0 ? undefined : { start: 0, end: sizeBytes - 1 }
}

/** One of them, open for its next bytes; nobody else may have it open. */
export interface ResumableBlob {
  /**
   * Adds bytes at its end.
   * @throws ServiceError `storage_full`; then some of them may have been added.
   */
  append(chunks: readonly Uint8Array[]): Promise<void>
  /**
   * Makes safe what was added before the call, so that it survives a power failure, and then has `record` write down that it is; more
   * may be added meanwhile. Rejects with what `record` did: then nothing more can be added.
   */
  sync(record: () => Promise<void>): Promise<void>
  close(): Promise<void>
}

/** The growing blobs beside a store, which they go into once they are whole. */
export interface ResumableBlobs {
  /** Whether what was written down is there whatever happens to this machine; a start need not look then. */
  readonly survivesCrashes: boolean
  /**
   * Opens one for the bytes from `offset` on, which was written down; what lies there already is forgotten. With 0 it is made if it is
   * not there. The fence is that of the lease, higher than any before. Undefined when it does not hold so many bytes.
   */
  extend(name: string, offset: number, fence: number): Promise<ResumableBlob | undefined>
  /** Refuses to begin with so many bytes. @throws ServiceError `storage_full` */
  assertSpace(plannedBytes: number): Promise<void>
  /** How many bytes it holds, in whichever place; undefined when it is not there. */
  findSize(name: string): Promise<number | undefined>
  /**
   * Makes it a blob of the store, under the same name, once all of its bytes are written down; does nothing when it is one already.
   * @throws ServiceError `storage_full`
   */
  commit(name: string, sizeBytes: number): Promise<void>
  /** Throws it away; does nothing when it is not there. */
  delete(name: string): Promise<void>
  /** Every one that is not whole yet, in no order, with the time it last changed. */
  list(): AsyncIterable<BlobEntry>
}

/** A store with what grows beside it. */
export interface ResumableStore {
  readonly blobs: Blobs
  readonly resumable: ResumableBlobs
}

/** What the bytes are, by their beginning (`HEAD_BYTES` of it); nothing a sender says is believed. Security: 2.7. */
export async function sniff(head: Uint8Array): Promise<string> {
  // Loaded with the first upload: a start has no use for it.
  const { fileTypeFromBuffer } = await import('file-type')
  // A beginning that breaks the detector is nothing known either.
  const found = await fileTypeFromBuffer(head).catch(() => undefined)
  return found?.mime ?? 'application/octet-stream'
}
