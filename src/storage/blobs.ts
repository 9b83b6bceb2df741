/** Defines the interfaces of blob stores, which are implemented for local folders and S3 buckets. */
import type { Readable } from 'node:stream'
import type { ByteRange } from '../http/ranges.ts'

/** A received blob that no database row refers to yet. It is lost if the process ends before `commit`. */
export interface StagedBlob {
  readonly name: string
  readonly sizeBytes: number
  readonly head: Uint8Array
  /**
   * Stores the blob durably. Once the promise resolves, the blob survives a power failure. @throws
   * ServiceError `storage_full`
   */
  commit(): Promise<void>
  /** Has no effect after `commit`. */
  abort(): Promise<void>
}

export interface BlobEntry {
  readonly name: string
  /** Unix milliseconds; for a resumable blob, when it was last changed. */
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

/** Stores blobs. Implementations hold at most a few chunks of each blob in memory. */
export interface Blobs {
  /**
   * Reads a stream to its end, and cleans up on failure. Pass `name` only to copy a blob under its existing
   * name. @throws ServiceError `storage_full`, or the error that `bytes` throws.
   */
  stage(bytes: AsyncIterable<Uint8Array>, expectedBytes?: number, name?: string): Promise<StagedBlob>
  /** Opens a committed blob or a range of it. Rejects if part of the range is missing. */
  open(name: string, range?: ByteRange): Promise<Readable>
  /** Returns a committed blob's path for programs that read it. Only local stores have paths. */
  findPath?(name: string): Promise<string>
  /** Deletes a committed blob if it exists. Open streams can still be read to their end. */
  delete(name: string): Promise<void>
  list(): AsyncIterable<BlobEntry>
  /** Rejects if the store is unreachable. */
  check(): Promise<'up' | 'full'>
  /** Deletes unfinished blobs that a stopped process left behind. Never rejects. */
  abortAbandoned(): Promise<void>
  close(): Promise<void>
}

/**
 * Returns the range of a whole blob. The range includes the last byte, so `open` rejects a truncated blob.
 */
export function wholeOf(sizeBytes: number): ByteRange | undefined {
  return sizeBytes === 0 ? undefined : { start: 0, end: sizeBytes - 1 }
}

export interface ResumableBlob {
  /**
   * Appends bytes. If the disk is full, some of them may already have been stored. @throws ServiceError
   * `storage_full`
   */
  append(chunks: readonly Uint8Array[]): Promise<void>
  /**
   * Makes appended bytes durable, then calls `record` to store how many there are. If `record` rejects,
   * `sync` rejects too, and the blob accepts no more bytes. Bytes can be appended during `sync`.
   */
  sync(record: () => Promise<void>): Promise<void>
  close(): Promise<void>
}

export interface ResumableBlobs {
  /** The recommended interval between `sync` calls while bytes arrive, in milliseconds. */
  readonly syncEveryMs: number
  /** True if recorded bytes survive every crash, so a starting server need not check them. */
  readonly survivesCrashes: boolean
  /**
   * Opens a blob and truncates it at `offset`; 0 creates the blob. Returns undefined if the blob is shorter.
   * `fence` must exceed the fences of all earlier writers, which can no longer change the blob even if they
   * still run. `isPreviousDone` means that the previous fence's writer has ended.
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
   * Returns the size of an active or committed blob, or undefined if it does not exist. If the last lease's
   * fence is known, pass it as `lastFence` to avoid a search.
   */
  findSize(name: string, lastFence?: number): Promise<number | undefined>
  /**
   * Moves a fully recorded blob into the store under the same name. Has no effect if it was already moved.
   * @throws ServiceError `storage_full`
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
  // Imported on first use, because startup does not need it.
  const { fileTypeFromBuffer } = await import('file-type')
  // The detector may throw for malformed input.
  const found = await fileTypeFromBuffer(head).catch(() => undefined)
  return found?.mime ?? 'application/octet-stream'
}
