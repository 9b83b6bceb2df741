/** Keeps bytes in a folder of this machine: written aside, synced, then moved to their name. */
import { randomUUID } from 'node:crypto'
import { mkdir, mkdtemp, open, opendir, rename, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { Readable } from 'node:stream'
import { cannotUse } from '../db/data-directory.ts'
import { passing } from '../passing.ts'
import {
  type BlobEntry,
  type Blobs,
  type ByteRange,
  extendHead,
  isBlobName,
  type StagedBlob,
} from './blobs.ts'
import { assertRoom, hasRoom, isFull, type ReadSpace, readSpaceOf, rethrow } from './space.ts'

/** While bytes come in, the space is looked at again after so many. */
const CHECK_SPACE_EVERY_BYTES = 64 * 1024 ** 2
/** Read at once: large enough that a read costs little, small enough that a thousand readers cost little. */
const READ_BYTES = 256 * 1024
/** The folder, inside the store's own, of what is still arriving. */
const INCOMING = 'incoming'

/**
 * Opens the store in a folder, which is made if it is not there, for this user alone. What a process that was killed had not
 * finished is removed, so nobody else may be using it. Security: 2.8.
 * @throws StartupError when the folder cannot be used.
 */
export async function openLocalBlobs(root: string, readSpace: ReadSpace = readSpaceOf): Promise<Blobs> {
  try {
    await prepare(root)
  } catch (cause) {
    throw cannotUse('folder', root, cause)
  }
  return new LocalBlobs({ root: async () => root, readSpace, close: async () => {} })
}

/** A store that goes with the process, in the system's folder for temporary files; made when something first comes in. */
export function createTemporaryBlobs(): Blobs {
  let making: Promise<string> | undefined
  const make = async () => {
    const root = await mkdtemp(join(tmpdir(), 'parley-files-'))
    await prepare(root)
    return root
  }
  return new LocalBlobs({
    root() {
      making ??= make()
      return making
    },
    readSpace: readSpaceOf,
    async close() {
      if (making !== undefined) await rm(await making, { recursive: true, force: true })
    },
  })
}

async function prepare(root: string): Promise<void> {
  await rm(join(root, INCOMING), { recursive: true, force: true })
  await mkdir(join(root, INCOMING), { recursive: true, mode: 0o700 })
  await syncFolder(dirname(root))
}

interface LocalBlobsOptions {
  root(): Promise<string>
  readonly readSpace: ReadSpace
  close(): Promise<void>
}

class LocalBlobs implements Blobs {
  private readonly options: LocalBlobsOptions

  constructor(options: LocalBlobsOptions) {
    this.options = options
  }

  async stage(bytes: AsyncIterable<Uint8Array>, expectedBytes = 0): Promise<StagedBlob> {
    const root = await this.options.root()
    const name = randomUUID()
    const path = join(root, INCOMING, name)
    const discard = () => rm(path, { force: true })
    const assertSpace = async (plannedBytes: number) =>
      assertRoom(await this.options.readSpace(root), plannedBytes)
    try {
      await assertSpace(expectedBytes)
      const written = await writeDurably(path, bytes, () => assertSpace(0))
      const keep = () => moveDurably(path, root, name).catch(rethrow)
      return { name, ...written, keep, discard }
    } catch (error) {
      await discard()
      return rethrow(error)
    }
  }

  async open(name: string, range?: ByteRange): Promise<Readable> {
    const file = await open(join(await this.options.root(), name))
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

  async delete(name: string): Promise<void> {
    await rm(join(await this.options.root(), name), { force: true })
  }

  async *list(): AsyncIterable<BlobEntry> {
    const root = await this.options.root()
    for await (const { name } of await opendir(root)) {
      if (!isBlobName(name)) continue
      // The time of the move: what was written before may have waited for the rest of its request.
      const found = await stat(join(root, name)).catch(ignoreMissing)
      if (found !== undefined) yield { name, keptAtMs: found.ctimeMs }
    }
  }

  async check(): Promise<'up' | 'full'> {
    const root = await this.options.root()
    const path = join(root, INCOMING, randomUUID())
    try {
      if (!hasRoom(await this.options.readSpace(root), 0)) return 'full'
      await writeFile(path, '', { flag: 'wx' })
      await rm(path)
      return 'up'
    } catch (error) {
      if (isFull(error)) return 'full'
      throw error
    }
  }

  async discardAbandoned(): Promise<void> {
    // Opening the store has done it: no other process uses the folder.
  }

  close(): Promise<void> {
    return this.options.close()
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

/** Once the folder is synced the file is found under its name, whatever happens. */
async function moveDurably(path: string, root: string, name: string): Promise<void> {
  await rename(path, join(root, name))
  await syncFolder(root)
}

async function syncFolder(path: string): Promise<void> {
  await using folder = await open(path)
  await folder.sync()
}

function ignoreMissing(error: unknown): undefined {
  if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
  throw error
}
