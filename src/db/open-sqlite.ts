/** Opens a data directory's SQLite database. */
import { accessSync, constants } from 'node:fs'
import { dirname, join } from 'node:path'
import Sqlite, { type Database as SqliteDatabase } from 'better-sqlite3'
import { systemClock } from '../lib/clock.ts'
import { StartupError } from '../lib/errors.ts'
import { createPrivateFile } from '../lib/files.ts'
import {
  assertDatabaseExists,
  assertDatabaseNotEmptied,
  assertNoFilesBesideEmptyDatabase,
  cannotUse,
  databaseName,
  prepareDataDirectory,
} from './data-directory.ts'
import type { Database, OpenedDatabase, Role } from './database.ts'
import { acquireLock } from './lock.ts'
import { applyMigrations, assertNonePending, listPendingMigrations } from './migrate.ts'
import { migrations } from './migrations/index.ts'
import { assertSound, damaged, disableBlockingWaits, hasLeftoverLog, openSqlite, toKysely } from './sqlite.ts'

/**
 * Opens the database; `:memory:` opens one that exists only in this process.
 * @throws StartupError if the database is not usable.
 */
export async function openSqliteDatabase(dataDir: string, role: Role): Promise<OpenedDatabase> {
  if (dataDir === ':memory:') return openChecked(dataDir, 'server', () => {})
  if (role === 'command') {
    await assertDatabaseExists(dataDir)
    return openChecked(join(dataDir, databaseName), role, () => {})
  }
  await prepareDataDirectory(dataDir)
  const lock = acquireLock(dataDir)
  await assertDatabaseNotEmptied(dataDir).catch((error) => {
    lock.release()
    throw error
  })
  return openChecked(join(dataDir, databaseName), role, () => lock.release())
}

async function openChecked(path: string, role: Role, release: () => void): Promise<OpenedDatabase> {
  let connection: SqliteDatabase | undefined
  try {
    if (path !== ':memory:') assertUsable(path, role)
    const wasLeftOpen = role === 'server' && hasLeftoverLog(path)
    connection = openSqlite(path)
    if (wasLeftOpen) assertSound(connection, path)
    const db = toKysely(connection)
    await bringUpToDate(connection, db, path, role)
    disableBlockingWaits(connection)
    return {
      db,
      backgroundDb: db,
      dbFor: undefined,
      isOnlyServer: true,
      postgres: undefined,
      clock: systemClock,
      close: closeOnce(connection, db, release),
    }
  } catch (error) {
    connection?.close()
    release()
    throw toStartupError(error, path)
  }
}

/** Checks up front, because SQLite opens a read-only file and fails only at the first write. */
function assertUsable(path: string, role: Role): void {
  try {
    if (role === 'server') createPrivateFile(path)
    accessSync(path, constants.R_OK | constants.W_OK)
  } catch (cause) {
    throw cannotUse('database', path, cause)
  }
}

async function bringUpToDate(
  connection: SqliteDatabase,
  db: Database,
  path: string,
  role: Role,
): Promise<void> {
  const pending = await listPendingMigrations(db, migrations)
  if (pending.length === 0) return
  if (role === 'command') assertNonePending(pending)
  const isNew = pending.length === Object.keys(migrations).length
  if (isNew && path !== ':memory:') await assertNoFilesBesideEmptyDatabase(dirname(path))
  return applyMigrations(connection, db, migrations)
}

/**
 * Returns a function that closes the database once. Closing the last connection merges the log into the
 * database.
 */
function closeOnce(connection: SqliteDatabase, db: Database, release: () => void) {
  let closing: Promise<void> | undefined
  const close = async () => {
    await db.destroy()
    connection.close()
    release()
  }
  return () => {
    closing ??= close()
    return closing
  }
}

function toStartupError(error: unknown, path: string): unknown {
  if (!(error instanceof Sqlite.SqliteError)) return error
  if (/^SQLITE_(NOTADB|CORRUPT)/.test(error.code)) return damaged(path, error.message)
  if (/^SQLITE_(CANTOPEN|READONLY|PERM)/.test(error.code)) return cannotUse('database', path, error)
  return new StartupError(`The database ${path} cannot be opened (${error.message}).`, { cause: error })
}
