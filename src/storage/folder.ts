/**
 * Manages the folders and files of a local store. Only the server's OS user can read them, and they survive
 * power failures.
 */
import { mkdir, mkdtemp, opendir, readdir, rename, rm, stat, statfs } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { cannotUse } from '../db/data-directory.ts'
import { ServiceError } from '../lib/errors.ts'
import { hasCode, syncFolder } from '../lib/files.ts'
import { type BlobEntry, isBlobName } from './blobs.ts'

export const INCOMING = 'incoming'
export const CHECK_SPACE_EVERY_BYTES = 64 * 1024 ** 2

export interface StoreFolder {
  /** Returns the folder's path; a temporary folder is created on first use. */
  root(): Promise<string>
  readonly readSpace: ReadSpace
  close(): Promise<void>
}

export async function openStoreFolder(
  dataDir: string,
  name: string,
  abandonedBeforeMs?: number,
): Promise<StoreFolder> {
  if (dataDir === ':memory:') return createTemporaryFolder()
  return openFolder(join(dataDir, name), readSpaceOf, abandonedBeforeMs)
}

/**
 * Opens a folder and deletes staged blobs untouched since `abandonedBeforeMs`. By default, deletes all of
 * them, so no other process may use the folder. @throws StartupError
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

export async function makeFolder(path: string): Promise<void> {
  await mkdir(path, { recursive: true, mode: 0o700 })
}

export async function moveDurably(path: string, root: string, name: string): Promise<void> {
  await rename(path, join(root, name))
  await syncFolder(root)
}

/** Yields the files that belong to blobs. A blob with several files appears several times. */
export async function* listFolder(
  folder: string,
  toBlobName: (file: string) => string,
): AsyncIterable<BlobEntry> {
  for await (const { name: file } of await opendir(folder)) {
    const name = toBlobName(file)
    if (!isBlobName(name)) continue
    // Uses the time of the rename (ctime), because the file may have been modified much earlier.
    const found = await stat(join(folder, file)).catch(ignoreMissing)
    if (found !== undefined) yield { name, storedAtMs: found.ctimeMs }
  }
}

export function ignoreMissing(error: unknown): undefined {
  if (hasCode(error, 'ENOENT')) return undefined
  throw error
}

/**
 * Minimum free space, in bytes and as a fraction of the volume. Writes that would leave less are rejected, so
 * that the database and the system can still write.
 */
const LEAST_FREE_BYTES = 2 * 1024 ** 3
const LEAST_FREE_SHARE = 0.05

export interface Space {
  readonly freeBytes: number
  readonly totalBytes: number
}

export type ReadSpace = (folder: string) => Promise<Space>

async function readSpaceOf(folder: string): Promise<Space> {
  const { bavail, blocks, bsize } = await statfs(folder)
  return { freeBytes: bavail * bsize, totalBytes: blocks * bsize }
}

/** @throws ServiceError `storage_full` if the planned bytes would leave too little free space. */
export function assertSpace(space: Space, plannedBytes: number): void {
  if (!hasSpace(space, plannedBytes)) throw storageFull()
}

export function hasSpace({ freeBytes, totalBytes }: Space, plannedBytes: number): boolean {
  return freeBytes - plannedBytes >= Math.max(LEAST_FREE_BYTES, totalBytes * LEAST_FREE_SHARE)
}

export function isFull(error: unknown): boolean {
  return hasCode(error, 'ENOSPC', 'EDQUOT')
}

export function rethrow(error: unknown): never {
  throw isFull(error) ? storageFull(error) : error
}

export function storageFull(cause?: unknown): ServiceError {
  return new ServiceError('storage_full', 'The storage is full; try again later.', { cause })
}
