/** Keeps bytes in a folder of this machine: written aside, synced, then moved to their name. */
import { randomUUID } from 'node:crypto'
import { open, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import type { ByteRange } from '../http/ranges.ts'
import { passing } from '../lib/external-memory.ts'
import { type BlobEntry, type Blobs, extendHead, type ResumableStore, type StagedBlob } from './blobs.ts'
import {
  assertSpace,
  CHECK_SPACE_EVERY_BYTES,
  hasSpace,
  INCOMING,
  isFull,
  listBlobs,
  moveDurably,
  openFolder,
  openStoreFolder,
  type ReadSpace,
  rethrow,
  type StoreFolder,
} from './folder.ts'
import { LocalResumableBlobs } from './local-resumable.ts'

/** Read at once: large enough that a read costs little, small enough that a thousand readers cost little. */
const READ_BYTES = 256 * 1024

/** Opens the store of that name in a data directory; for `:memory:` one that goes with the process. */
export async function openBlobsIn(dataDir: string, name: string, abandonedBeforeMs?: number): Promise<Blobs> {
  return new LocalBlobs(await openStoreFolder(dataDir, name, abandonedBeforeMs))
}

/**
 * Opens the store in a folder, which is made if it is not there.
 * @throws StartupError when the folder cannot be used.
 */
export async function openLocalBlobs(root: string, readSpace?: ReadSpace): Promise<Blobs> {
  return new LocalBlobs(await openFolder(root, readSpace))
}

/** Opens the store of that name with what grows beside it, which is synced to the disk unless `isSynced` is false. */
export async function openResumableStore(
  dataDir: string,
  name: string,
  isSynced: boolean,
  abandonedBeforeMs?: number,
): Promise<ResumableStore> {
  return toResumableStore(await openStoreFolder(dataDir, name, abandonedBeforeMs), isSynced)
}

/** A store in that folder, with what grows beside it. */
export function toResumableStore(folder: StoreFolder, isSynced: boolean): ResumableStore {
  return { blobs: new LocalBlobs(folder), resumable: new LocalResumableBlobs(folder, isSynced) }
}

class LocalBlobs implements Blobs {
  private readonly folder: StoreFolder

  constructor(folder: StoreFolder) {
    this.folder = folder
  }

  async stage(
    bytes: AsyncIterable<Uint8Array>,
    expectedBytes = 0,
    name: string = randomUUID(),
  ): Promise<StagedBlob> {
    const root = await this.folder.root()
    const path = join(root, INCOMING, name)
    const abort = () => rm(path, { force: true })
    const assertPlanned = async (plannedBytes: number) =>
      assertSpace(await this.folder.readSpace(root), plannedBytes)
    try {
      await assertPlanned(expectedBytes)
      const written = await writeDurably(path, bytes, () => assertPlanned(0))
      const commit = () => moveDurably(path, root, name).catch(rethrow)
      return { name, ...written, commit, abort }
    } catch (error) {
      await abort()
      return rethrow(error)
    }
  }

  async open(name: string, range?: ByteRange): Promise<Readable> {
    const file = await open(join(await this.folder.root(), name))
    try {
      const { size } = await file.stat()
      if (range !== undefined && range.end >= size)
        throw new Error(`the blob ${name} holds ${size} bytes, not the one at ${range.end}`)
      return file.createReadStream({ ...range, highWaterMark: READ_BYTES })
    } catch (error) {
      await file.close()
      throw error
    }
  }

  async findPath(name: string): Promise<string> {
    return join(await this.folder.root(), name)
  }

  async delete(name: string): Promise<void> {
    await rm(join(await this.folder.root(), name), { force: true })
  }

  async *list(): AsyncIterable<BlobEntry> {
    yield* listBlobs(await this.folder.root())
  }

  async check(): Promise<'up' | 'full'> {
    const root = await this.folder.root()
    const path = join(root, INCOMING, randomUUID())
    try {
      if (!hasSpace(await this.folder.readSpace(root), 0)) return 'full'
      await writeFile(path, '', { flag: 'wx' })
      await rm(path)
      return 'up'
    } catch (error) {
      if (isFull(error)) return 'full'
      throw error
    }
  }

  async abortAbandoned(): Promise<void> {
    // Opening the folder has done it.
  }

  close(): Promise<void> {
    return this.folder.close()
  }
}

/** Writes a new file and syncs it; `checkSpace` is called now and then on the way. */
async function writeDurably(
  path: string,
  bytes: AsyncIterable<Uint8Array>,
  checkSpace: () => Promise<void>,
): Promise<Pick<StagedBlob, 'sizeBytes' | 'head'>> {
  let sizeBytes = 0
  let head: Uint8Array = Buffer.alloc(0)
  async function* observe(): AsyncIterable<Uint8Array> {
    let uncheckedBytes = 0
    for await (const chunk of bytes) {
      head = extendHead(head, chunk)
      sizeBytes += chunk.length
      uncheckedBytes += chunk.length
      if (uncheckedBytes >= CHECK_SPACE_EVERY_BYTES) {
        uncheckedBytes = 0
        await checkSpace()
      }
      yield chunk
    }
  }
  await using file = await open(path, 'wx', 0o600)
  await file.writeFile(passing(observe()))
  await file.sync()
  return { sizeBytes, head }
}
