/** Writes resumable blobs like the uploads module: with leases and recorded offsets. */
import { randomUUID } from 'node:crypto'
import type { ResumableBlob, ResumableBlobs, ResumableStore } from '../../src/storage/blobs.ts'
import type { S3Server } from './s3-server.ts'
import { MIB, readBlob } from './s3-store.ts'

/** An upload's database row, in memory. */
export class UploadRow {
  readonly name = randomUUID()
  receivedBytes = 0
  fence = 0
  readonly store: ResumableStore

  constructor(store: ResumableStore) {
    this.store = store
  }

  /** Acquires the lease, so that the previous writer can no longer record an offset. */
  async lease(resumable: ResumableBlobs = this.store.resumable): Promise<Writer> {
    this.fence += 1
    const blob = await resumable.extend(this.name, this.receivedBytes, this.fence)
    if (blob === undefined)
      throw new Error(`the store does not hold ${this.receivedBytes} bytes to resume from`)
    return new Writer(this, blob)
  }

  /** Simulates one request: appends the bytes in chunks, syncs and closes the blob. */
  async add(bytes: Buffer, pieceBytes = MIB): Promise<void> {
    const writer = await this.lease()
    try {
      await writer.write(bytes, pieceBytes)
      await writer.sync()
    } finally {
      await writer.blob.close()
    }
  }

  /** Commits the blob and reads it back. */
  async finish(): Promise<Buffer> {
    await this.store.resumable.commit(this.name, this.receivedBytes)
    return this.receivedBytes === 0 ? Buffer.alloc(0) : readBlob(this.store.blobs, this.name)
  }
}

/** A writer that holds the lease or has lost it. */
export class Writer {
  readonly blob: ResumableBlob
  private readonly row: UploadRow
  private readonly fence: number
  private writtenBytes: number

  constructor(row: UploadRow, blob: ResumableBlob) {
    this.row = row
    this.blob = blob
    this.fence = row.fence
    this.writtenBytes = row.receivedBytes
  }

  /** Appends the bytes in chunks, and syncs after every 8 MiB. */
  async write(bytes: Buffer, pieceBytes = MIB): Promise<void> {
    let unsafeBytes = 0
    for (let start = 0; start < bytes.length; start += pieceBytes) {
      const piece = bytes.subarray(start, start + pieceBytes)
      await this.append(piece)
      unsafeBytes += piece.length
      if (unsafeBytes < 8 * MIB) continue
      await this.sync()
      unsafeBytes = 0
    }
  }

  async append(piece: Buffer): Promise<void> {
    await this.blob.append([piece])
    this.writtenBytes += piece.length
  }

  sync(): Promise<void> {
    const afterBytes = this.writtenBytes
    return this.blob.sync(async () => {
      if (this.fence !== this.row.fence) throw new Error('another writer holds the lease')
      this.row.receivedBytes = afterBytes
    })
  }
}

/** Returns the bucket's trailing parts and the number of its multipart uploads. */
export function listResumable(server: S3Server): { trailingParts: string[]; uploads: number } {
  const trailingParts = [...server.objects.keys()].filter((key) => key.includes('/growing/'))
  return { trailingParts, uploads: server.uploads.size }
}
