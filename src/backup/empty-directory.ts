/** Makes sure that a restore finds an empty data directory, and leaves one when it fails. */
import { readdir, rm, rmdir } from 'node:fs/promises'
import { join } from 'node:path'
import { databaseName, listForeign, makeDataDirectory } from '../db/data-directory.ts'
import { acquireLock, type DirectoryLock, isLockTaken, lockName } from '../db/lock.ts'
import { StartupError } from '../lib/errors.ts'
import { makeFolder } from '../storage/folder.ts'

/**
 * The folder, inside the data directory, in which a restore is prepared: one beside the directory could not be moved onto a mounted
 * volume. As long as it is there, a restore has not come to its end.
 */
export const RESTORE_FOLDER = '.restore'

/** What a restore that was killed may have moved into place already. */
const movedBefore = ['files', 'artifacts']

/** A directory that was empty, and that nobody else uses. */
export interface ClaimedDirectory {
  /** Where to prepare what is moved into the directory. */
  readonly folder: string
  /** Makes it as it was, unless the database is in place. */
  giveUp(): Promise<void>
  release(): void
}

/**
 * Makes the directory if it is not there, and in it the folder to restore into. What a restore that was killed has left goes.
 * @throws StartupError when it pins anything else, or somebody uses it. Security: 2.12.
 */
export async function claimEmptyDirectory(dataDir: string): Promise<ClaimedDirectory> {
  const wasThere = await isThere(dataDir)
  await makeDataDirectory(dataDir)
  await assertEmpty(dataDir)
  const lock = takeLock(dataDir)
  try {
    await clearKilled(dataDir)
    // Until the lock was ours a server may have begun here.
    await assertEmpty(dataDir)
    const folder = join(dataDir, RESTORE_FOLDER)
    await makeFolder(folder)
    const giveUp = async () => {
      await clearKilled(dataDir)
      if (!wasThere) await removeIfEmpty(dataDir)
    }
    return { folder, giveUp, release: () => lock.release() }
  } catch (error) {
    lock.release()
    throw error
  }
}

async function assertEmpty(dataDir: string): Promise<void> {
  const names = await listForeign(dataDir)
  const foreign = isKilledRestore(names) ? names.find((name) => !isLeftByKilled(name)) : names[0]
  if (foreign === undefined) return
  const what = names.includes(databaseName) ? 'a Parley database' : `other files (such as ${foreign})`
  throw new StartupError(
    `The data directory ${dataDir} pins ${what}, and a backup is restored into an empty one only; set PARLEY_DATA_DIR to another directory, or move what is there away.`,
  )
}

function takeLock(dataDir: string): DirectoryLock {
  try {
    return acquireLock(dataDir)
  } catch (error) {
    if (!isLockTaken(error)) throw error
    const message = `Somebody else is using the data directory ${dataDir}, so nothing is restored there.`
    throw new StartupError(message, { cause: error })
  }
}

/** It had begun with an empty directory, and what comes last is the database. */
function isKilledRestore(names: readonly string[]): boolean {
  return names.includes(RESTORE_FOLDER) && !names.includes(databaseName)
}

function isLeftByKilled(name: string): boolean {
  return name === RESTORE_FOLDER || movedBefore.includes(name)
}

async function clearKilled(dataDir: string): Promise<void> {
  if (!isKilledRestore(await readdir(dataDir))) return
  // The mark goes last: until then the rest is known for what it is.
  for (const name of [...movedBefore, RESTORE_FOLDER])
    await rm(join(dataDir, name), { recursive: true, force: true })
}

async function removeIfEmpty(dataDir: string): Promise<void> {
  for (const name of [lockName, `${lockName}-journal`]) await rm(join(dataDir, name), { force: true })
  await rmdir(dataDir).catch(() => {})
}

function isThere(path: string): Promise<boolean> {
  return readdir(path).then(
    () => true,
    () => false,
  )
}
