/** Where bytes are kept that arrive bit by bit, over many requests, until they are whole. */
import type { BlobEntry, Blobs } from './blobs.ts'

/** One of them, open for its next bytes; nobody else may have it open. */
export interface GrowingBlob {
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
export interface GrowingBlobs {
  /** Whether what was written down is there whatever happens to this machine; a start need not look then. */
  readonly survivesCrashes: boolean
  /**
   * Opens one for the bytes from `offset` on, which was written down; what lies there already is forgotten. With 0 it is made if it is
   * not there. The fence is that of the lease, higher than any before. Undefined when it does not hold so many bytes.
   */
  extend(name: string, offset: number, fence: number): Promise<GrowingBlob | undefined>
  /** Refuses to begin with so many bytes. @throws ServiceError `storage_full` */
  assertRoom(plannedBytes: number): Promise<void>
  /** How many bytes it holds, in whichever place; undefined when it is not there. */
  findSize(name: string): Promise<number | undefined>
  /**
   * Makes it a blob of the store, under the same name, once all of its bytes are written down; does nothing when it is one already.
   * @throws ServiceError `storage_full`
   */
  keep(name: string, sizeBytes: number): Promise<void>
  /** Throws it away; does nothing when it is not there. */
  delete(name: string): Promise<void>
  /** Every one that is not whole yet, in no order, with the time it last changed. */
  list(): AsyncIterable<BlobEntry>
}

/** A store with what grows beside it. */
export interface GrowingStore {
  readonly blobs: Blobs
  readonly growing: GrowingBlobs
}
