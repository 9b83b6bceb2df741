/** Stores blobs as files in a local folder. Writes each file to a subfolder, syncs it, then renames it. */
import { randomUUID } from 'node:crypto'
import { open, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import type { ByteRange } from '../http/ranges.ts'
import { countingExternalBytes } from '../lib/external-memory.ts'
import { type BlobEntry, type Blobs, extendHead, type ResumableStore, type StagedBlob } from './blobs.ts'
import {
  assertSpace,
  CHECK_SPACE_EVERY_BYTES,
  hasSpace,
  INCOMING,
  isFull,
  listFolder,
  moveDurably,
  openStoreFolder,
  rethrow,
  type StoreFolder,
} from './folder.ts'
import { LocalResumableBlobs } from './local-resumable.ts'

/** Large enough for fast reads, small enough for a thousand concurrent readers. */
const READ_BYTES = 256 * 1024

/** Opens the store; `isSynced` enables fsync for active uploads. */
export async function openResumableStore(
  dataDir: string,
  name: string,
  isSynced: boolean,
  abandonedBeforeMs?: number,
): Promise<ResumableStore> {
  return toResumableStore(await openStoreFolder(dataDir, name, abandonedBeforeMs), isSynced)
}

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
        throw new Error(`the blob ${name} has only ${size} bytes, so byte ${range.end} is missing`)
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
    yield* listFolder(await this.folder.root(), (file) => file)
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
    // Opening the folder already deletes abandoned blobs.
  }

  close(): Promise<void> {
    return this.folder.close()
  }
}

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
  await file.writeFile(countingExternalBytes(observe()))
  await file.sync()
  return { sizeBytes, head }
}
