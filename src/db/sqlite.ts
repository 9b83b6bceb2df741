/** One SQLite connection with the settings every one of ours has, and Kysely over it. */

import { statSync } from 'node:fs'
import Sqlite, { type Database as SqliteDatabase, type Statement } from 'better-sqlite3'
import { Kysely, SqliteDialect } from 'kysely'
import { LRUCache } from 'lru-cache'
import { StartupError } from '../lib/errors.ts'
import type { Tables } from './tables.ts'

const OLDEST_SQLITE = '3.51.3'
const BUSY_TIMEOUT_MS = 5_000
/** Pages kept in memory once they were read: those of 100,000 agents, which are a file of 100 MB. */
const CACHE_KIB = 128 * 1024
const JOURNAL_SIZE_LIMIT_BYTES = 67_108_864
/** Statements kept prepared; lists of many lengths (`in (?, ?, …)`) would fill any cache without an end. */
const STATEMENTS_KEPT = 500

/**
 * Opens a connection; `:memory:` is a database of its own. Security: 2.12.
 * @throws StartupError when SQLite is too old, or the file lies where its journal cannot be used.
 */
export function openSqlite(path: string): SqliteDatabase {
  const connection = new Sqlite(path, { timeout: BUSY_TIMEOUT_MS, fileMustExist: path !== ':memory:' })
  try {
    assertSqliteVersion(String(connection.prepare('select sqlite_version()').pluck().get()))
    const journalMode = connection.pragma('journal_mode = WAL', { simple: true })
    if (path !== ':memory:' && journalMode !== 'wal') {
      throw new StartupError(
        `The database ${path} must lie on a local disk: SQLite cannot keep its log there.`,
      )
    }
    connection.pragma('synchronous = FULL')
    connection.pragma(`busy_timeout = ${BUSY_TIMEOUT_MS}`)
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

/** @throws StartupError for a SQLite older than the ones our log mode is safe with. Security: 2.12. */
export function assertSqliteVersion(version: string): void {
  if (rankOf(version) >= rankOf(OLDEST_SQLITE)) return
  throw new StartupError(`SQLite ${version} is too old: ${OLDEST_SQLITE} is needed.`)
}

/** As SQLite counts: 3.51.3 is 3051003. Comparing texts would load a collation, which takes longer than to open a database. */
function rankOf(version: string): number {
  return version.split('.').reduce((rank, part) => rank * 1000 + Number(part), 0)
}

/** Whether the last process left without closing the database: then its log still lies beside it. */
export function hasLeftoverLog(path: string): boolean {
  const log = statSync(`${path}-wal`, { throwIfNoEntry: false })
  return log !== undefined && log.size > 0
}

/** @throws StartupError when the database's pages do not fit together. */
export function assertSound(connection: SqliteDatabase, path: string): void {
  const finding = connection.pragma('quick_check(1)', { simple: true })
  if (finding !== 'ok') throw damaged(path, String(finding).replace(/\s+/g, ' '))
}

export function damaged(path: string, finding: string): StartupError {
  return new StartupError(`The database ${path} is damaged (${finding}); restore it from a backup.`)
}

/** Kysely over the connection; statements stay prepared, which halves the cost of a look-up. */
export function toKysely(connection: SqliteDatabase): Kysely<Tables> {
  const statements = new LRUCache<string, Statement<unknown[]>>({ max: STATEMENTS_KEPT })
  const prepare = (text: string) => {
    // After a full disk, say, SQLite has rolled back by itself: to do it again would fail, and hide why.
    const isOver = text === 'rollback' && !connection.inTransaction
    // A transaction that starts by reading could fail at its first write, without waiting for its turn. Security: 2.12.
    const sql = isOver ? 'select null where false' : text === 'begin' ? 'begin immediate' : text
    let statement = statements.get(sql)
    if (statement === undefined) {
      statement = connection.prepare<unknown[]>(sql)
      statements.set(sql, statement)
    }
    return statement
  }
  const database = { prepare, close: () => connection.close() }
  return new Kysely({ dialect: new SqliteDialect({ database }) })
}
