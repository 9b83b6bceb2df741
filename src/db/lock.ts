/** Locks a data directory for one server. */
import { join } from 'node:path'
import Sqlite, { type Database as SqliteDatabase } from 'better-sqlite3'
import { StartupError } from '../lib/errors.ts'
import { createPrivateFile } from '../lib/files.ts'
import { isBusy } from './sqlite-driver.ts'

export const lockName = '.lock'
/** Milliseconds to wait for the lock, which commands and starting servers hold briefly. */
const PATIENCE_MS = 1_000

/**
 * Prevents garbage collection of connections that nothing else refers to, because it would release their
 * locks.
 */
const heldConnections = new Set<SqliteDatabase>()

export interface DirectoryLock {
  release(): void
}

/**
 * Holds the lock with an open SQLite transaction. Closing the file elsewhere in this process would drop the
 * lock.
 * @throws StartupError if the lock is held or unusable.
 */
export function acquireLock(dataDir: string): DirectoryLock {
  const path = join(dataDir, lockName)
  let connection: SqliteDatabase | undefined
  try {
    createPrivateFile(path)
    connection = new Sqlite(path, { timeout: PATIENCE_MS })
    connection.exec('BEGIN IMMEDIATE')
    // Other processes can read the process id only after a commit. A process that acquires the lock in
    // between writes its own id.
    while (ownerOf(connection) !== process.pid) {
      connection.pragma(`user_version = ${process.pid}`)
      connection.exec('COMMIT; BEGIN IMMEDIATE')
    }
  } catch (error) {
    const rejection = toRejection(error, connection, dataDir)
    connection?.close()
    throw rejection
  }
  const held = connection
  heldConnections.add(held)
  return {
    release() {
      heldConnections.delete(held)
      held.close()
    },
  }
}

function toRejection(cause: unknown, connection: SqliteDatabase | undefined, dataDir: string): StartupError {
  if (isBusy(cause) && connection !== undefined) {
    const pid = ownerOf(connection)
    const owner = pid === undefined ? '' : ` (process ${pid})`
    return new StartupError(
      `Another Parley server${owner} is using the data directory ${dataDir}; stop it, or give this one its own PARLEY_DATA_DIR.`,
      { cause },
    )
  }
  const reason = cause instanceof Error ? cause.message : String(cause)
  return new StartupError(
    `The lock ${join(dataDir, lockName)} is not usable (${reason}); if no Parley server is using the directory, delete that file.`,
    { cause },
  )
}

export function isLockTaken(error: unknown): boolean {
  return error instanceof Error && isBusy(error.cause)
}

function ownerOf(connection: SqliteDatabase): number | undefined {
  try {
    const pid = connection.pragma('user_version', { simple: true })
    return typeof pid === 'number' && pid > 0 ? pid : undefined
  } catch {
    return undefined
  }
}
