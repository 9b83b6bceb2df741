/** Where bytes are kept that arrive bit by bit, over many requests, until they are whole. */
import type { Readable } from 'node:stream'
import type { BlobEntry, Blobs } from './blobs.ts'

/** One of them, open for its next bytes; nobody else may have it open. */
export interface GrowingBlob {
  /**
   * Adds bytes at its end.
   * @throws ServiceError `storage_full`; then some of them may have been added.
   */
  append(chunks: readonly Uint8Array[]): Promise<void>
  /** Once it resolves, every byte added before the call survives a power failure; more may be added meanwhile. */
  sync(): Promise<void>
  close(): Promise<void>
}

/** The growing blobs beside a store, which they go into once they are whole. */
export interface GrowingBlobs {
  /**
   * Opens one for the bytes from `offset` on; what lies there already is forgotten. With 0 it is made if it is not there.
   * @throws Error when it does not hold so many.
   */
  extend(name: string, offset: number): Promise<GrowingBlob>
  /** Refuses to begin with so many bytes. @throws ServiceError `storage_full` */
  assertRoom(plannedBytes: number): Promise<void>
  /** How many bytes it holds, in whichever place; undefined when it is not there. */
  findSize(name: string): Promise<number | undefined>
  /** Its bytes from the first to the last, in whichever place. */
  open(name: string): Promise<Readable>
  /**
   * Makes it a blob of the store, under the same name; does nothing when it is one already.
   * @throws ServiceError `storage_full`
   */
  keep(name: string): Promise<void>
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
