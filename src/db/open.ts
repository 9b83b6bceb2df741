/** Opens the database: for the server, which owns its directory, or for a command beside it. */
import { accessSync, constants } from 'node:fs'
import { join } from 'node:path'
import Sqlite, { type Database as SqliteDatabase } from 'better-sqlite3'
import type { Kysely } from 'kysely'
import { StartupError } from '../startup-error.ts'
import {
  assertDatabaseExists,
  cannotUse,
  createPrivateFile,
  databaseName,
  prepareDataDirectory,
} from './data-directory.ts'
import { acquireLock } from './lock.ts'
import { applyMigrations, listPendingMigrations } from './migrate.ts'
import { migrations } from './migrations/index.ts'
import { assertSound, damaged, hasLeftoverLog, openSqlite, toKysely } from './sqlite.ts'
import type { Tables } from './tables.ts'

/** Where the database is, and what it is opened for. */
export interface OpenOptions {
  /** The data directory, or `:memory:` for a database that ends with its process. */
  readonly dataDir: string
  /**
   * `server` takes the directory's lock, creates the database if there is none and migrates it; `command` works beside a server on
   * a database that is there and up to date.
   */
  readonly role: 'server' | 'command'
}

/** An open database. */
export interface OpenedDatabase {
  readonly db: Kysely<Tables>
  /** Writes everything into the database file, closes it and gives the directory back; safe to call twice. */
  close(): Promise<void>
}

/**
 * Opens the database of a data directory. Decision: 2. Security: 2.12.
 * @throws StartupError, in a sentence for the operator, when it cannot be used as it is.
 */
export async function openDatabase({ dataDir, role }: OpenOptions): Promise<OpenedDatabase> {
  if (dataDir === ':memory:') return openChecked(dataDir, 'server', () => {})
  if (role === 'command') {
    await assertDatabaseExists(dataDir)
    return openChecked(join(dataDir, databaseName), role, () => {})
  }
  await prepareDataDirectory(dataDir)
  const lock = acquireLock(dataDir)
  return openChecked(join(dataDir, databaseName), role, () => lock.release())
}

/**
 * Opens the database for a command that may be the first to use it: beside a server, else alone, and then it is made and migrated.
 * @throws StartupError
 */
export async function openOrCreateDatabase(dataDir: string): Promise<OpenedDatabase> {
  try {
    return await openDatabase({ dataDir, role: 'command' })
  } catch (error) {
    if (!(error instanceof StartupError)) throw error
    return openDatabase({ dataDir, role: 'server' })
  }
}

/** Which promise of the schema a statement would have broken, on either dialect; undefined for any other error. */
export function mapConstraintError(error: unknown): 'unique' | 'foreign_key' | undefined {
  if (!(error instanceof Error) || !('code' in error)) return undefined
  return constraintCodes[String(error.code)]
}

/** SQLite's names and PostgreSQL's numbers. */
const constraintCodes: Readonly<Record<string, 'unique' | 'foreign_key' | undefined>> = {
  SQLITE_CONSTRAINT_UNIQUE: 'unique',
  SQLITE_CONSTRAINT_PRIMARYKEY: 'unique',
  SQLITE_CONSTRAINT_ROWID: 'unique',
  SQLITE_CONSTRAINT_FOREIGNKEY: 'foreign_key',
  '23505': 'unique',
  '23503': 'foreign_key',
}

async function openChecked(
  path: string,
  role: OpenOptions['role'],
  release: () => void,
): Promise<OpenedDatabase> {
  let connection: SqliteDatabase | undefined
  try {
    if (path !== ':memory:') assertUsable(path, role)
    const wasLeftOpen = role === 'server' && hasLeftoverLog(path)
    connection = openSqlite(path)
    if (wasLeftOpen) assertSound(connection, path)
    const db = toKysely(connection)
    await bringUpToDate(connection, db, role)
    return { db, close: closeOnce(connection, db, release) }
  } catch (error) {
    connection?.close()
    release()
    throw toStartupError(error, path)
  }
}

/** SQLite would open a file it may not write all the same, and fail at the first change. */
function assertUsable(path: string, role: OpenOptions['role']): void {
  try {
    if (role === 'server') createPrivateFile(path)
    accessSync(path, constants.R_OK | constants.W_OK)
  } catch (cause) {
    throw cannotUse('database', path, cause)
  }
}

async function bringUpToDate(
  connection: SqliteDatabase,
  db: Kysely<Tables>,
  role: OpenOptions['role'],
): Promise<void> {
  const pending = await listPendingMigrations(db, migrations)
  if (pending.length === 0) return
  if (role === 'server') return applyMigrations(connection, db, migrations)
  throw new StartupError(
    `The database is older than this version of Parley (it lacks ${pending.join(', ')}); start this version's server once.`,
  )
}

/** Closing the last connection moves the log into the database file. */
function closeOnce(connection: SqliteDatabase, db: Kysely<Tables>, release: () => void) {
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
