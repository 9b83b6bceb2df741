/** Opens SQLite connections with durable settings, and creates Kysely instances that use them. */
import { statSync } from 'node:fs'
import Sqlite, { type Database as SqliteDatabase, type Statement } from 'better-sqlite3'
import { Kysely } from 'kysely'
import { LRUCache } from 'lru-cache'
import { StartupError } from '../lib/errors.ts'
import { LOCK_PATIENCE_MS, PatientSqliteDialect } from './sqlite-driver.ts'
import type { Tables } from './tables.ts'

const OLDEST_SQLITE = '3.51.3'
/** Page cache size; enough for 100,000 agents, which use 100 MB. */
const CACHE_KIB = 128 * 1024
const JOURNAL_SIZE_LIMIT_BYTES = 67_108_864
/** Limits the statement cache, because `in (?, ?, …)` creates a new statement for every list length. */
const STATEMENTS_KEPT = 500

/** @throws StartupError if SQLite is too old or the file system does not support its write-ahead log. */
export function openSqlite(path: string): SqliteDatabase {
  const connection = new Sqlite(path, { timeout: LOCK_PATIENCE_MS, fileMustExist: path !== ':memory:' })
  try {
    assertSqliteVersion(String(connection.prepare('select sqlite_version()').pluck().get()))
    const journalMode = connection.pragma('journal_mode = WAL', { simple: true })
    if (path !== ':memory:' && journalMode !== 'wal')
      throw new StartupError(
        `The database ${path} must be on a local disk: this file system does not support SQLite's write-ahead log.`,
      )
    connection.pragma('synchronous = FULL')
    connection.pragma(`busy_timeout = ${LOCK_PATIENCE_MS}`)
    connection.pragma('foreign_keys = ON')
    connection.pragma('trusted_schema = OFF')
    connection.pragma('wal_autocheckpoint = 1000')
    connection.pragma(`cache_size = -${CACHE_KIB}`)
    connection.pragma(`journal_size_limit = ${JOURNAL_SIZE_LIMIT_BYTES}`)
    return connection
  } catch (error) {
    connection.close()
    throw error
  }
}

/** @throws StartupError for versions with known write-ahead log bugs. */
export function assertSqliteVersion(version: string): void {
  if (rankOf(version) >= rankOf(OLDEST_SQLITE)) return
  throw new StartupError(`SQLite ${version} is too old: version ${OLDEST_SQLITE} or newer is required.`)
}

/**
 * Converts 3.51.3 to 3051003, as SQLite does. A locale-aware string comparison takes longer than opening a
 * database.
 */
function rankOf(version: string): number {
  return version.split('.').reduce((rank, part) => rank * 1000 + Number(part), 0)
}

export function hasLeftoverLog(path: string): boolean {
  const log = statSync(`${path}-wal`, { throwIfNoEntry: false })
  return log !== undefined && log.size > 0
}

/** @throws StartupError if the database is damaged. */
export function assertSound(connection: SqliteDatabase, path: string): void {
  const finding = connection.pragma('quick_check(1)', { simple: true })
  if (finding !== 'ok') throw damaged(path, String(finding).replace(/\s+/g, ' '))
}

export function damaged(path: string, finding: string): StartupError {
  return new StartupError(`The database ${path} is damaged (${finding}); restore it from a backup.`)
}

/**
 * Makes a busy statement fail immediately instead of blocking the process. Kysely's driver then waits for the
 * lock; direct use of the connection does not.
 */
export function disableBlockingWaits(connection: SqliteDatabase): void {
  connection.pragma('busy_timeout = 0')
}

/** Caches prepared statements to halve the cost of a lookup. */
export function toKysely<T = Tables>(connection: SqliteDatabase, patienceMs = LOCK_PATIENCE_MS): Kysely<T> {
  const statements = new LRUCache<string, Statement<unknown[]>>({ max: STATEMENTS_KEPT })
  const prepare = (text: string) => {
    // SQLite rolls back automatically after some errors, such as a full disk. A second rollback would fail
    // and hide the cause.
    const isOver = text === 'rollback' && !connection.inTransaction
    // A transaction that starts with a read could fail at its first write without waiting for the lock.
    const sql = isOver ? 'select null where false' : text === 'begin' ? 'begin immediate' : text
    let statement = statements.get(sql)
    if (statement === undefined) {
      statement = connection.prepare<unknown[]>(sql)
      statements.set(sql, statement)
    }
    return statement
  }
  const database = { prepare, close: () => connection.close() }
  return new Kysely({ dialect: new PatientSqliteDialect({ database }, connection, patienceMs) })
}
