/** Claims an empty data directory for a restore and empties it again if the restore fails. */
import { readdir, rm, rmdir } from 'node:fs/promises'
import { join } from 'node:path'
import { databaseName, listForeign, makeDataDirectory } from '../db/data-directory.ts'
import { acquireLock, type DirectoryLock, isLockTaken, lockName } from '../db/lock.ts'
import { StartupError } from '../lib/errors.ts'
import { makeFolder } from '../storage/folder.ts'
import { CONVERSATIONS } from './manifest.ts'

/**
 * Subfolder for the restored files until the restore is complete. It must be on the same volume, because
 * files are moved by renaming.
 */
const RESTORE_FOLDER = '.restore'

/** Entries that an interrupted restore may already have moved into place. */
const movedBefore = ['files', 'artifacts', CONVERSATIONS]

interface ClaimedDirectory {
  readonly folder: string
  /**
   * Deletes the restored files, unless the database has already been moved into place. Deletes the directory
   * if the restore created it.
   */
  giveUp(): Promise<void>
  release(): void
}

/**
 * Creates and locks the directory, and deletes the files of an interrupted restore.
 * @throws StartupError if the directory contains other files or is in use.
 */
export async function claimEmptyDirectory(dataDir: string): Promise<ClaimedDirectory> {
  const wasThere = (await readdir(dataDir).catch(() => undefined)) !== undefined
  await makeDataDirectory(dataDir)
  await assertEmpty(dataDir)
  const lock = takeLock(dataDir)
  try {
    await clearKilled(dataDir)
    // Checks again, because a server may have started before the lock was acquired.
    await assertEmpty(dataDir)
    const folder = join(dataDir, RESTORE_FOLDER)
    await makeFolder(folder)
    const giveUp = async () => {
      await clearKilled(dataDir)
      if (wasThere) return
      for (const name of [lockName, `${lockName}-journal`]) await rm(join(dataDir, name), { force: true })
      await rmdir(dataDir).catch(() => {})
    }
    return { folder, giveUp, release: () => lock.release() }
  } catch (error) {
    lock.release()
    throw error
  }
}

async function assertEmpty(dataDir: string): Promise<void> {
  const names = await listForeign(dataDir)
  const remains = isKilledRestore(names) ? [RESTORE_FOLDER, ...movedBefore] : []
  const foreign = names.find((name) => !remains.includes(name))
  if (foreign === undefined) return
  const what = names.includes(databaseName) ? 'a Parley database' : `other files (such as ${foreign})`
  throw new StartupError(
    `The data directory ${dataDir} contains ${what}, but a backup can be restored only into an empty directory. Set PARLEY_DATA_DIR to another directory, or move its contents elsewhere.`,
  )
}

function takeLock(dataDir: string): DirectoryLock {
  try {
    return acquireLock(dataDir)
  } catch (error) {
    if (!isLockTaken(error)) throw error
    const message = `Another process is using the data directory ${dataDir}. Nothing was restored.`
    throw new StartupError(message, { cause: error })
  }
}

/**
 * A restore moves the database last, so a restore folder without a database belongs to an interrupted
 * restore.
 */
function isKilledRestore(names: readonly string[]): boolean {
  return names.includes(RESTORE_FOLDER) && !names.includes(databaseName)
}

async function clearKilled(dataDir: string): Promise<void> {
  if (!isKilledRestore(await readdir(dataDir))) return
  // Deletes the restore folder last, because it identifies the rest as leftovers.
  for (const name of [...movedBefore, RESTORE_FOLDER])
    await rm(join(dataDir, name), { recursive: true, force: true })
}
