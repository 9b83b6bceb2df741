/** The folder of a store on this machine: made for this user alone, and changed so that a power failure loses nothing. */
import { mkdir, mkdtemp, open, opendir, readdir, rename, rm, stat, statfs } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { cannotUse } from '../db/data-directory.ts'
import { ServiceError } from '../lib/errors.ts'
import { type BlobEntry, isBlobName } from './blobs.ts'

/** The folder, inside the store's own, of what is still arriving. */
export const INCOMING = 'incoming'
/** While bytes come in, the space is looked at again after so many. */
export const CHECK_SPACE_EVERY_BYTES = 64 * 1024 ** 2

export interface StoreFolder {
  /** Its path; it is there once this resolves. */
  root(): Promise<string>
  readonly readSpace: ReadSpace
  /** Removes it where it was for this process only. */
  close(): Promise<void>
}

/** The folder of that name in a data directory; for `:memory:` one that goes with the process. */
export async function openStoreFolder(
  dataDir: string,
  name: string,
  abandonedBeforeMs?: number,
): Promise<StoreFolder> {
  if (dataDir === ':memory:') return createTemporaryFolder()
  return openFolder(join(dataDir, name), readSpaceOf, abandonedBeforeMs)
}

/**
 * Makes the folder if it is not there. What a process that was killed had not finished is removed, as far as nobody has touched it since
 * that moment (Unix milliseconds); without one nobody else may be using the folder. Security: 2.8.
 * @throws StartupError when the folder cannot be used.
 */
export async function openFolder(
  root: string,
  readSpace: ReadSpace = readSpaceOf,
  abandonedBeforeMs = Number.POSITIVE_INFINITY,
): Promise<StoreFolder> {
  try {
    await prepare(root, abandonedBeforeMs)
  } catch (cause) {
    throw cannotUse('folder', root, cause)
  }
  return { root: async () => root, readSpace, close: async () => {} }
}

/** In the system's folder for temporary files, made when something first comes in. */
function createTemporaryFolder(): StoreFolder {
  let making: Promise<string> | undefined
  const make = async () => {
    const root = await mkdtemp(join(tmpdir(), 'parley-files-'))
    await prepare(root, Number.POSITIVE_INFINITY)
    return root
  }
  return {
    root() {
      making ??= make()
      return making
    },
    readSpace: readSpaceOf,
    async close() {
      if (making !== undefined) await rm(await making, { recursive: true, force: true })
    },
  }
}

async function prepare(root: string, abandonedBeforeMs: number): Promise<void> {
  const incoming = join(root, INCOMING)
  await makeFolder(incoming)
  for (const name of await readdir(incoming)) {
    const path = join(incoming, name)
    const found = await stat(path).catch(ignoreMissing)
    if (found !== undefined && found.mtimeMs < abandonedBeforeMs)
      await rm(path, { recursive: true, force: true })
  }
  await syncFolder(dirname(root))
}

/** For this user alone. */
export async function makeFolder(path: string): Promise<void> {
  await mkdir(path, { recursive: true, mode: 0o700 })
}

/** Once the folder is synced the file is found under its name, whatever happens. */
export async function moveDurably(path: string, root: string, name: string): Promise<void> {
  await rename(path, join(root, name))
  await syncFolder(root)
}

export async function syncFolder(path: string): Promise<void> {
  await using folder = await open(path)
  await folder.sync()
}

/** Every blob in a folder. */
export async function* listBlobs(folder: string): AsyncIterable<BlobEntry> {
  for await (const { name } of await opendir(folder)) {
    if (!isBlobName(name)) continue
    // The time of the move: what was written before may have waited for the rest of its request.
    const found = await stat(join(folder, name)).catch(ignoreMissing)
    if (found !== undefined) yield { name, storedAtMs: found.ctimeMs }
  }
}

export function ignoreMissing(error: unknown): undefined {
  if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
  throw error
}

/** Below either, nothing more is taken in. Security: 2.5. */
const LEAST_FREE_BYTES = 2 * 1024 ** 3

const LEAST_FREE_SHARE = 0.05

/** The room on a disk. */
export interface Space {
  readonly freeBytes: number
  readonly totalBytes: number
}

/** Reads the room on the disk a folder lies on. */
export type ReadSpace = (folder: string) => Promise<Space>

export async function readSpaceOf(folder: string): Promise<Space> {
  const { bavail, blocks, bsize } = await statfs(folder)
  return { freeBytes: bavail * bsize, totalBytes: blocks * bsize }
}

/** @throws ServiceError `storage_full` when so many bytes more would take the room that is to stay. */
export function assertSpace(space: Space, plannedBytes: number): void {
  if (!hasSpace(space, plannedBytes)) throw storageFull()
}

/** Whether so many bytes more leave the room that is to stay. */
export function hasSpace({ freeBytes, totalBytes }: Space, plannedBytes: number): boolean {
  return freeBytes - plannedBytes >= Math.max(LEAST_FREE_BYTES, totalBytes * LEAST_FREE_SHARE)
}

/** What the system says when a disk or a quota is full. */
const fullCodes: readonly unknown[] = ['ENOSPC', 'EDQUOT']

/** Whether the system said that a disk is full. */
export function isFull(error: unknown): boolean {
  return error instanceof Error && 'code' in error && fullCodes.includes(error.code)
}

/** Throws what was thrown; a disk that is full becomes the `storage_full` that the uploader is told. */
export function rethrow(error: unknown): never {
  throw isFull(error) ? storageFull(error) : error
}

/** The failure of a store that has no room. */
export function storageFull(cause?: unknown): ServiceError {
  return new ServiceError('storage_full', 'There is no room for more bytes here at the moment.', { cause })
}
