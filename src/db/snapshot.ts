/** Copies an SQLite database as it is at one moment, while a server goes on writing into it, and examines such a copy. */

import { join } from 'node:path'
import Sqlite, { type Database as SqliteDatabase } from 'better-sqlite3'
import { type Kysely, sql } from 'kysely'
import { StartupError } from '../lib/errors.ts'
import { assertDatabaseExists, createPrivateFile, databaseName } from './data-directory.ts'
import { listPendingMigrations } from './migrate.ts'
import { migrations } from './migrations/index.ts'
import { assertSound, damaged, openSqlite, toKysely } from './sqlite.ts'
import type { Tables } from './tables.ts'

/** Pages copied in one step: 16 MiB, after which others of this process have their turn. */
const PAGES_PER_STEP = 4_096

/** A database that is copied. */
export interface SnapshotSource {
  /** The rows as they are; between `pin` and `release` as they were at the pin, whoever writes meanwhile. */
  readonly db: Kysely<Tables>
  /** The newest migration it has had. */
  readonly schema: string
  /** Holds the rows still, for this reader alone: writers are not kept waiting, and the log grows until `release`. */
  pin(): void
  release(): void
  /** As `pin`, with every writer waiting until `run` is done. */
  pinAlone(run: () => Promise<void>): Promise<void>
  /** Writes the pinned rows to a new database at that path, which only this user can read. */
  copyTo(path: string): Promise<void>
  close(): void
}

/**
 * Opens the database of a data directory, beside a server or without one; its schema may be an older one.
 * @throws StartupError when there is none, or it is from a newer version.
 */
export async function openSnapshotSource(dataDir: string): Promise<SnapshotSource> {
  await assertDatabaseExists(dataDir)
  const path = join(dataDir, databaseName)
  const { connection, db, schema } = await openAny(path)
  const begin = () => void connection.exec('BEGIN; SELECT count(*) FROM sqlite_schema')
  return {
    db,
    schema,
    pin: begin,
    release: () => void connection.exec('COMMIT'),
    async pinAlone(run) {
      const holder = openSqlite(path)
      try {
        holder.exec('BEGIN IMMEDIATE')
        begin()
        await run()
      } finally {
        holder.close()
      }
    },
    async copyTo(target) {
      createPrivateFile(target)
      await connection.backup(target, { progress: () => PAGES_PER_STEP })
    },
    close: () => void connection.close(),
  }
}

/** A copy that nobody else uses. */
export interface CheckedCopy {
  readonly db: Kysely<Tables>
  /** The newest migration it has had. */
  readonly schema: string
  close(): void
}

/**
 * Opens a database file after looking at all of it: its pages fit together, and so do its references.
 * @throws StartupError when they do not, or when it is from a newer version.
 */
export async function openCheckedCopy(path: string): Promise<CheckedCopy> {
  const { connection, db, schema } = await openAny(path)
  try {
    assertSound(connection, path)
    const [orphan] = connection.pragma('foreign_key_check') as unknown[]
    if (orphan !== undefined) throw damaged(path, `a reference that leads nowhere: ${JSON.stringify(orphan)}`)
    return { db, schema, close: () => void connection.close() }
  } catch (error) {
    connection.close()
    throw error
  }
}

async function openAny(path: string) {
  let connection: SqliteDatabase | undefined
  try {
    connection = openSqlite(path)
    const db = toKysely(connection)
    const pending = await listPendingMigrations(db, migrations)
    const schema = Object.keys(migrations)
      .filter((name) => !pending.includes(name))
      .sort()
      .at(-1)
    if (schema === undefined) throw new StartupError(`The database ${path} has no tables of Parley's.`)
    return { connection, db, schema }
  } catch (error) {
    connection?.close()
    const isDamage = error instanceof Sqlite.SqliteError && /^SQLITE_(NOTADB|CORRUPT)/.test(error.code)
    throw isDamage ? damaged(path, error.message) : error
  }
}

/** How many rows each table has, by its name. */
export async function countRows(db: Kysely<Tables>): Promise<Record<string, number>> {
  const counts: Record<string, number> = {}
  for (const { name } of await db.introspection.getTables()) {
    const { rows } = await sql<{ count: number }>`select count(*) as count from ${sql.table(name)}`.execute(
      db,
    )
    counts[name] = Number(rows[0]?.count)
  }
  return counts
}
