/** The folder of a store on this machine: made for this user alone, and changed so that a power failure loses nothing. */
import { mkdir, mkdtemp, open, opendir, readdir, rename, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { cannotUse } from '../db/data-directory.ts'
import { type BlobEntry, isBlobName } from './blobs.ts'
import { type ReadSpace, readSpaceOf } from './space.ts'

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
    if (found !== undefined) yield { name, keptAtMs: found.ctimeMs }
  }
}

export function ignoreMissing(error: unknown): undefined {
  if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
  throw error
}
