/** Defines the interfaces of a blob store, which a folder and an S3 bucket implement. */
import type { Readable } from 'node:stream'
import type { ByteRange } from '../http/ranges.ts'

/** Received bytes that no row refers to yet. Without `commit` they are lost when the process ends. */
export interface StagedBlob {
  readonly name: string
  readonly sizeBytes: number
  readonly head: Uint8Array
  /** Stores the bytes durably: once this resolves, they survive a power failure. @throws ServiceError `storage_full` */
  commit(): Promise<void>
  /** Does nothing after `commit`. */
  abort(): Promise<void>
}

export interface BlobEntry {
  readonly name: string
  /** Unix milliseconds. For a resumable blob, the time of its last change. */
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

/** Stores blobs. An implementation keeps at most a few chunks of a blob in memory. */
export interface Blobs {
  /**
   * Reads a stream to its end and cleans up on failure. Pass `name` only to copy a blob under its existing
   * name. @throws ServiceError `storage_full`, or the error of `bytes`.
   */
  stage(bytes: AsyncIterable<Uint8Array>, expectedBytes?: number, name?: string): Promise<StagedBlob>
  /** Opens a committed blob or a range of it. Rejects if any of those bytes is missing. */
  open(name: string, range?: ByteRange): Promise<Readable>
  /** Returns the path of a committed blob, for programs that read it. Only a local store has paths. */
  findPath?(name: string): Promise<string>
  /** Deletes a committed blob, if it exists. Open streams can still be read to their end. */
  delete(name: string): Promise<void>
  list(): AsyncIterable<BlobEntry>
  /** Rejects when the store is unreachable. */
  check(): Promise<'up' | 'full'>
  /** Deletes unfinished blobs that a stopped process left behind. Never fails. */
  abortAbandoned(): Promise<void>
  close(): Promise<void>
}

/** Returns the range of a whole blob. A range that names the last byte makes `open` reject a truncated blob. */
export function wholeOf(sizeBytes: number): ByteRange | undefined {
  return sizeBytes === 0 ? undefined : { start: 0, end: sizeBytes - 1 }
}

export interface ResumableBlob {
  /** Appends bytes. If the disk is full, some of them may have been stored. @throws ServiceError `storage_full` */
  append(chunks: readonly Uint8Array[]): Promise<void>
  /**
   * Makes appended bytes durable, then calls `record` to store their number. If `record` rejects, `sync`
   * rejects too and the blob accepts no more bytes. Appends may overlap with `sync`.
   */
  sync(record: () => Promise<void>): Promise<void>
  close(): Promise<void>
}

export interface ResumableBlobs {
  /** True if recorded bytes survive every crash, so that a server need not check them at startup. */
  readonly survivesCrashes: boolean
  /**
   * Opens a blob and truncates it at `offset`; 0 creates the blob. Undefined if it is shorter. `fence`
   * exceeds that of all earlier writers. Earlier writers may still run, and cannot change the blob any longer.
   * `isPreviousDone` states that the writer of the fence before this one has ended.
   */
  extend(
    name: string,
    offset: number,
    fence: number,
    isPreviousDone?: boolean,
  ): Promise<ResumableBlob | undefined>
  /** @throws ServiceError `storage_full` */
  assertSpace(plannedBytes: number): Promise<void>
  /**
   * Returns the number of stored bytes of an active or committed blob, or undefined if it does not exist.
   * `lastFence`, the fence of the last lease, saves a search.
   */
  findSize(name: string, lastFence?: number): Promise<number | undefined>
  /**
   * Moves a fully recorded blob into the store under the same name. Has no effect if already moved. @throws
   * ServiceError `storage_full`
   */
  commit(name: string, sizeBytes: number, lastFence?: number): Promise<void>
  delete(name: string): Promise<void>
  list(): AsyncIterable<BlobEntry>
}

export interface ResumableStore {
  readonly blobs: Blobs
  readonly resumable: ResumableBlobs
}

/** Detects the media type from the first bytes, because the type that a client sends cannot be trusted. */
export async function sniff(head: Uint8Array): Promise<string> {
  // Imported here, because a server start without uploads does not need it.
  const { fileTypeFromBuffer } = await import('file-type')
  // Malformed bytes can make the detector throw.
  const found = await fileTypeFromBuffer(head).catch(() => undefined)
  return found?.mime ?? 'application/octet-stream'
}
