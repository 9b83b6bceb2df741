/** Keeps a data directory to one server at a time. */

import { join } from 'node:path'
import Sqlite, { type Database as SqliteDatabase } from 'better-sqlite3'
import { StartupError } from '../lib/errors.ts'
import { createPrivateFile } from './data-directory.ts'

export const lockName = '.lock'
/** For those who start in the same moment, one of them perhaps a command that holds the lock only while it runs. */
const PATIENCE_MS = 1_000

/** A held lock; it ends with `release` or with the process, however that ends. */
export interface DirectoryLock {
  release(): void
}

/**
 * Takes the directory for this process. The lock is SQLite's own on an open transaction, so the operating system drops it when
 * the process dies, and two starters cannot both get it. The file stays, and holds the owner's process id for the message. The
 * owner must not open it in any other way: POSIX drops all locks on a file when its process closes it once. Security: 2.12.
 * @throws StartupError when another server has it, or the file cannot be used.
 */
export function acquireLock(dataDir: string): DirectoryLock {
  const path = join(dataDir, lockName)
  let connection: SqliteDatabase | undefined
  try {
    createPrivateFile(path)
    connection = new Sqlite(path, { timeout: PATIENCE_MS })
    connection.exec('BEGIN IMMEDIATE')
    // Readable only once committed. Whoever slips in before the second BEGIN is the owner first, and writes its own.
    while (ownerOf(connection) !== process.pid) {
      connection.pragma(`user_version = ${process.pid}`)
      connection.exec('COMMIT; BEGIN IMMEDIATE')
    }
  } catch (error) {
    const refusal = toRejection(error, connection, dataDir)
    connection?.close()
    throw refusal
  }
  const held = connection
  return { release: () => held.close() }
}

function toRejection(cause: unknown, connection: SqliteDatabase | undefined, dataDir: string): StartupError {
  const isTaken = cause instanceof Sqlite.SqliteError && cause.code.startsWith('SQLITE_BUSY')
  if (isTaken && connection !== undefined) {
    const pid = ownerOf(connection)
    const owner = pid === undefined ? '' : ` (process ${pid})`
    return new StartupError(
      `Another Parley server${owner} is using the data directory ${dataDir}; stop it, or give this one its own PARLEY_DATA_DIR.`,
      { cause },
    )
  }
  const reason = cause instanceof Error ? cause.message : String(cause)
  return new StartupError(
    `The lock ${join(dataDir, lockName)} cannot be used (${reason}); if no Parley server is running there, delete that file.`,
    { cause },
  )
}

/** Whether `acquireLock` has thrown that because somebody else has the lock. */
export function isLockTaken(error: unknown): boolean {
  const cause = error instanceof Error ? error.cause : undefined
  return cause instanceof Error && 'code' in cause && String(cause.code).startsWith('SQLITE_BUSY')
}

/** The process that wrote itself down last; undefined before the first, and while that cannot be read. */
function ownerOf(connection: SqliteDatabase): number | undefined {
  try {
    const pid = connection.pragma('user_version', { simple: true })
    return typeof pid === 'number' && pid > 0 ? pid : undefined
  } catch {
    return undefined
  }
}
