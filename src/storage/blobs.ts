/** The interfaces of a blob store, implemented by a folder and by an S3 bucket. */
import type { Readable } from 'node:stream'
import type { ByteRange } from '../http/ranges.ts'

/** Received bytes that no row names yet. Without `commit` they are lost when the process ends. */
export interface StagedBlob {
  readonly name: string
  readonly sizeBytes: number
  readonly head: Uint8Array
  /** Stores the bytes durably: once it resolves they survive a power failure. @throws ServiceError `storage_full` */
  commit(): Promise<void>
  /** Does nothing after `commit`. */
  abort(): Promise<void>
}

export interface BlobEntry {
  readonly name: string
  /** Unix milliseconds; for a resumable blob the time of its last change. */
  readonly storedAtMs: number
}

export const HEAD_BYTES = 4_096

export function extendHead(head: Uint8Array, chunk: Uint8Array): Uint8Array {
  if (head.length >= HEAD_BYTES) return head
  return Buffer.concat([head, chunk.subarray(0, HEAD_BYTES - head.length)])
}

export function isBlobName(name: string): boolean {
  return /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(name)
}

/** A store of blobs. An implementation holds at most a few chunks of a blob in memory. */
export interface Blobs {
  /** Reads a stream to its end; cleans up on failure. A copy passes its `name`. @throws ServiceError `storage_full`, or the error of `bytes`. */
  stage(bytes: AsyncIterable<Uint8Array>, expectedBytes?: number, name?: string): Promise<StagedBlob>
  /** Opens a committed blob or a range of it; rejects if any of those bytes is missing. */
  open(name: string, range?: ByteRange): Promise<Readable>
  /** The path of a committed blob, for programs that read it. Only a local store has paths. */
  findPath?(name: string): Promise<string>
  /** Deletes a committed blob, if it exists. Open streams of it can still be read to their end. */
  delete(name: string): Promise<void>
  list(): AsyncIterable<BlobEntry>
  /** Rejects when the store is unreachable. */
  check(): Promise<'up' | 'full'>
  /** Deletes unfinished blobs that a stopped process left behind. Never fails. */
  abortAbandoned(): Promise<void>
  close(): Promise<void>
}

/** The range of a whole blob. Naming the last byte makes `open` reject a truncated blob. */
export function wholeOf(sizeBytes: number): ByteRange | undefined {
  return sizeBytes === 0 ? undefined : { start: 0, end: sizeBytes - 1 }
}

export interface ResumableBlob {
  /** Appends bytes. A full disk may store some of them. @throws ServiceError `storage_full` */
  append(chunks: readonly Uint8Array[]): Promise<void>
  /** Makes appended bytes durable, then `record` stores their number; rejects if it does, and then accepts no more bytes. Appends may overlap. */
  sync(record: () => Promise<void>): Promise<void>
  close(): Promise<void>
}

export interface ResumableBlobs {
  /** Whether recorded bytes survive every crash, so that a server need not check them at start. */
  readonly survivesCrashes: boolean
  /**
   * Opens a blob at `offset` (0 creates it) and cuts it there; undefined if it is shorter. `fence` exceeds that of all earlier writers.
   * `isPreviousDone`: the writer of the fence before this one writes no more. Unless it is set, earlier writers may still run, and change nothing here.
   */
  extend(
    name: string,
    offset: number,
    fence: number,
    isPreviousDone?: boolean,
  ): Promise<ResumableBlob | undefined>
  /** @throws ServiceError `storage_full` */
  assertSpace(plannedBytes: number): Promise<void>
  /** The stored bytes of an active or committed blob; undefined if it does not exist. The fence of the last lease saves a search. */
  findSize(name: string, lastFence?: number): Promise<number | undefined>
  /** Moves a fully recorded blob into the store under the same name, once. @throws ServiceError `storage_full` */
  commit(name: string, sizeBytes: number, lastFence?: number): Promise<void>
  delete(name: string): Promise<void>
  list(): AsyncIterable<BlobEntry>
}

export interface ResumableStore {
  readonly blobs: Blobs
  readonly resumable: ResumableBlobs
}

/** Detects the media type from the first bytes, because the type a client sends cannot be trusted. */
export async function sniff(head: Uint8Array): Promise<string> {
  // Imported here because a start without uploads does not need it.
  const { fileTypeFromBuffer } = await import('file-type')
  // Malformed bytes can make the detector throw.
  const found = await fileTypeFromBuffer(head).catch(() => undefined)
  return found?.mime ?? 'application/octet-stream'
}
