/** Stores the bytes of active uploads as files in a subfolder, until they are moved into the store. */
import { type FileHandle, open, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { syncFolder } from '../lib/files.ts'
import type { BlobEntry, ResumableBlob, ResumableBlobs } from './blobs.ts'
import {
  assertSpace,
  CHECK_SPACE_EVERY_BYTES,
  ignoreMissing,
  listBlobs,
  makeFolder,
  moveDurably,
  rethrow,
  type StoreFolder,
} from './folder.ts'

/** The subfolder of active uploads. A server start does not delete anything in it. */
export const RESUMABLE_FOLDER = 'growing'

export class LocalResumableBlobs implements ResumableBlobs {
  /** False because fsync can be turned off and because a disk may be restored from a copy. */
  readonly survivesCrashes = false
  private readonly folder: StoreFolder
  private readonly isSynced: boolean
  private making: Promise<string> | undefined

  constructor(folder: StoreFolder, isSynced: boolean) {
    this.folder = folder
    this.isSynced = isSynced
  }

  async extend(name: string, offset: number): Promise<ResumableBlob | undefined> {
    const path = await this.pathOf(name)
    const file = await (offset === 0
      ? open(path, 'w', 0o600).catch(rethrow)
      : open(path, 'r+').catch(ignoreMissing))
    if (file === undefined) return undefined
    try {
      const { size } = await file.stat()
      if (size < offset) {
        await file.close()
        return undefined
      }
      if (size > offset) await file.truncate(offset)
    } catch (error) {
      await file.close()
      throw error
    }
    const checkSpace = () => this.assertSpace(0)
    const { isSynced } = this
    return new LocalResumableBlob(file, { folder: join(path, '..'), offset, isSynced, checkSpace })
  }

  async assertSpace(plannedBytes: number): Promise<void> {
    assertSpace(await this.folder.readSpace(await this.folder.root()), plannedBytes)
  }

  async findSize(name: string): Promise<number | undefined> {
    const active = await stat(await this.pathOf(name)).catch(ignoreMissing)
    const found = active ?? (await stat(join(await this.folder.root(), name)).catch(ignoreMissing))
    return found?.size
  }

  async commit(name: string): Promise<void> {
    const [path, root] = [await this.pathOf(name), await this.folder.root()]
    try {
      await moveDurably(path, root, name)
      await syncFolder(join(path, '..'))
    } catch (error) {
      // A crash may have happened after the move but before its row was written.
      ignoreMissing(error)
      await stat(join(root, name))
    }
  }

  async delete(name: string): Promise<void> {
    await rm(await this.pathOf(name), { force: true })
  }

  async *list(): AsyncIterable<BlobEntry> {
    yield* listBlobs(await this.resumableFolder())
  }

  private async pathOf(name: string): Promise<string> {
    return join(await this.resumableFolder(), name)
  }

  private resumableFolder(): Promise<string> {
    const make = async () => {
      const path = join(await this.folder.root(), RESUMABLE_FOLDER)
      await makeFolder(path)
      return path
    }
    this.making ??= make().catch((error) => {
      this.making = undefined
      return rethrow(error)
    })
    return this.making
  }
}

interface LocalResumableOptions {
  readonly folder: string
  readonly offset: number
  readonly isSynced: boolean
  checkSpace(): Promise<void>
}

class LocalResumableBlob implements ResumableBlob {
  private readonly file: FileHandle
  private readonly options: LocalResumableOptions
  private position: number
  private uncheckedBytes = 0
  private isFolderSynced: boolean

  constructor(file: FileHandle, options: LocalResumableOptions) {
    this.file = file
    this.options = options
    this.position = options.offset
    // A folder that already contains the file needs no sync.
    this.isFolderSynced = options.offset > 0
  }

  async append(chunks: readonly Uint8Array[]): Promise<void> {
    if (this.uncheckedBytes >= CHECK_SPACE_EVERY_BYTES) {
      this.uncheckedBytes = 0
      await this.options.checkSpace()
    }
    for (let left = chunks; left.length > 0; ) {
      const { bytesWritten } = await this.file.writev(left, this.position).catch(rethrow)
      this.position += bytesWritten
      this.uncheckedBytes += bytesWritten
      left = dropBytes(left, bytesWritten)
    }
  }

  async sync(record: () => Promise<void>): Promise<void> {
    if (this.options.isSynced) {
      await this.file.datasync().catch(rethrow)
      if (!this.isFolderSynced) await syncFolder(this.options.folder)
      this.isFolderSynced = true
    }
    await record()
  }

  close(): Promise<void> {
    return this.file.close()
  }
}

/** Drops the bytes already written from the chunks, because `writev` may write only some of them. */
function dropBytes(chunks: readonly Uint8Array[], sizeBytes: number): readonly Uint8Array[] {
  let dropped = 0
  for (const [index, chunk] of chunks.entries()) {
    if (dropped + chunk.length > sizeBytes)
      return [chunk.subarray(sizeBytes - dropped), ...chunks.slice(index + 1)]
    dropped += chunk.length
  }
  return []
}
