/**
 * Stores active uploads as files in a subfolder, one file per writer, until they are moved into the store.
 */
import { constants } from 'node:fs'
import { copyFile, type FileHandle, open, readdir, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { syncFolder } from '../lib/files.ts'
import type { BlobEntry, ResumableBlob, ResumableBlobs } from './blobs.ts'
import {
  assertSpace,
  CHECK_SPACE_EVERY_BYTES,
  ignoreMissing,
  listFolder,
  makeFolder,
  moveDurably,
  rethrow,
  type StoreFolder,
} from './folder.ts'
import {
  findResumableFile,
  listResumableFiles,
  RESUMABLE_FOLDER,
  toBlobName,
  toCopyName,
  toResumableName,
} from './resumable-files.ts'

/**
 * Each writer's file name contains its fence. If the previous writer may still run, the next one copies the
 * recorded bytes to a new file. See docs/adr/0045.
 */
export class LocalResumableBlobs implements ResumableBlobs {
  /** False, because fsync can be turned off and a disk may be restored from a copy. */
  readonly survivesCrashes = false
  readonly syncEveryMs = 1_000
  private readonly folder: StoreFolder
  private readonly isSynced: boolean
  private making: Promise<string> | undefined

  constructor(folder: StoreFolder, isSynced: boolean) {
    this.folder = folder
    this.isSynced = isSynced
  }

  async extend(
    name: string,
    offset: number,
    fence: number,
    isPreviousDone = false,
  ): Promise<ResumableBlob | undefined> {
    const folder = await this.resumableFolder()
    const path = join(folder, toResumableName(name, fence))
    if (offset > 0 && !(await this.claim(name, offset, fence, isPreviousDone))) return undefined
    const file = await (offset === 0 ? open(path, 'w', 0o600).catch(rethrow) : open(path, 'r+'))
    try {
      const { size } = await file.stat()
      if (size < offset) {
        await file.close()
        return undefined
      }
      if (size > offset) await file.truncate(offset)
      if (offset === 0 && fence > 1) await this.deleteOlder(name, fence)
    } catch (error) {
      await file.close()
      throw error
    }
    const checkSpace = () => this.assertSpace(0)
    const { isSynced } = this
    return new LocalResumableBlob(file, { folder, offset, isSynced, checkSpace })
  }

  async assertSpace(plannedBytes: number): Promise<void> {
    assertSpace(await this.folder.readSpace(await this.folder.root()), plannedBytes)
  }

  async findSize(name: string, lastFence?: number): Promise<number | undefined> {
    const active = await findResumableFile(await this.resumableFolder(), name, lastFence)
    if (active !== undefined) return active.sizeBytes
    return (await stat(join(await this.folder.root(), name)).catch(ignoreMissing))?.size
  }

  async commit(name: string, sizeBytes: number, lastFence?: number): Promise<void> {
    const [folder, root] = [await this.resumableFolder(), await this.folder.root()]
    try {
      const file = await findResumableFile(folder, name, lastFence)
      // Without a file, an earlier attempt probably moved the blob but crashed before the database update.
      const foundBytes = file?.sizeBytes ?? (await stat(join(root, name))).size
      if (foundBytes !== sizeBytes)
        throw new Error(`the blob ${name} has ${foundBytes} bytes instead of ${sizeBytes}`)
      if (file === undefined) return
      await moveDurably(file.path, root, name)
      await syncFolder(folder)
    } catch (error) {
      // Another writer may already have moved the complete blob.
      ignoreMissing(error)
      await stat(join(root, name))
    }
  }

  async delete(name: string): Promise<void> {
    const folder = await this.resumableFolder()
    for (const file of await readdir(folder))
      if (toBlobName(file) === name) await rm(join(folder, file), { force: true })
  }

  async *list(): AsyncIterable<BlobEntry> {
    yield* listFolder(await this.resumableFolder(), toBlobName)
  }

  /**
   * Renames or copies an earlier writer's file to this writer's name. Returns false if no earlier file
   * exists.
   */
  private async claim(
    name: string,
    offset: number,
    fence: number,
    isPreviousDone: boolean,
  ): Promise<boolean> {
    const folder = await this.resumableFolder()
    const path = join(folder, toResumableName(name, fence))
    if (
      isPreviousDone &&
      fence > 1 &&
      (await tryRename(join(folder, toResumableName(name, fence - 1)), path))
    )
      return true
    for (;;) {
      const source = (await listResumableFiles(folder, name)).find((file) => file.fence < fence)
      if (source === undefined) return false
      const isUnused = source.fence === 0 || (isPreviousDone && source.fence === fence - 1)
      // Another writer may have renamed or deleted the file since it was listed.
      if (await (isUnused ? tryRename(source.path, path) : this.copy(source.path, name, offset, fence)))
        return true
    }
  }

  /** Returns false if the source was deleted. Copies only recorded bytes, which no writer changes. */
  private async copy(source: string, name: string, offset: number, fence: number): Promise<boolean> {
    const folder = await this.resumableFolder()
    const draft = join(folder, toCopyName(name, fence))
    await this.assertSpace(offset)
    try {
      await copyFile(source, draft, constants.COPYFILE_FICLONE)
      if (this.isSynced) {
        await using file = await open(draft, 'r+')
        await file.datasync()
      }
      await rename(draft, join(folder, toResumableName(name, fence)))
      if (this.isSynced) await syncFolder(folder)
    } catch (error) {
      await rm(draft, { force: true })
      ignoreMissingOrRethrow(error)
      return false
    }
    await this.deleteOlder(name, fence)
    return true
  }

  private async deleteOlder(name: string, fence: number): Promise<void> {
    for (const file of await listResumableFiles(await this.resumableFolder(), name))
      if (file.fence < fence) await rm(file.path, { force: true })
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

async function tryRename(from: string, to: string): Promise<boolean> {
  return rename(from, to).then(
    () => true,
    (error) => ignoreMissing(error) ?? false,
  )
}

function ignoreMissingOrRethrow(error: unknown): void {
  try {
    ignoreMissing(error)
  } catch {
    rethrow(error)
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
    // With an offset above 0, the folder already contains the file and needs no sync.
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

/** Drops the bytes that `writev` has already written, because it may write only some of them. */
function dropBytes(chunks: readonly Uint8Array[], sizeBytes: number): readonly Uint8Array[] {
  let dropped = 0
  for (const [index, chunk] of chunks.entries()) {
    if (dropped + chunk.length > sizeBytes)
      return [chunk.subarray(sizeBytes - dropped), ...chunks.slice(index + 1)]
    dropped += chunk.length
  }
  return []
}
