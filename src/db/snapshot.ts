/** Copies a consistent snapshot of a SQLite database while a server writes to it. */
import { join } from 'node:path'
import Sqlite, { type Database as SqliteDatabase } from 'better-sqlite3'
import { type Kysely, sql } from 'kysely'
import { StartupError } from '../lib/errors.ts'
import { createPrivateFile } from '../lib/files.ts'
import { assertDatabaseExists, databaseName } from './data-directory.ts'
import { listPendingMigrations } from './migrate.ts'
import { migrations } from './migrations/index.ts'
import { assertSound, damaged, openSqlite, toKysely } from './sqlite.ts'
import type { Tables } from './tables.ts'

/** Number of pages per step (16 MiB). This process handles other tasks between steps. */
const PAGES_PER_STEP = 4_096

export interface SnapshotSource {
  readonly db: Kysely<Tables>
  readonly schema: string
  /** Starts a read transaction. Writers continue, and the log grows until `release`. */
  pin(): void
  release(): void
  /** Like `pin`, but also blocks all writers until `run` settles. */
  pinAlone(run: () => Promise<void>): Promise<void>
  copyTo(path: string): Promise<void>
  close(): void
}

/**
 * Opens a database to copy, even while a server is running or if the schema is older.
 * @throws StartupError if the database is missing or from a newer version.
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

export interface CheckedCopy {
  readonly db: Kysely<Tables>
  readonly schema: string
  close(): void
}

/**
 * Opens a database file and checks all its pages and references.
 * @throws StartupError if it is damaged or from a newer version.
 */
export async function openCheckedCopy(path: string): Promise<CheckedCopy> {
  const { connection, db, schema } = await openAny(path)
  try {
    assertSound(connection, path)
    const [orphan] = connection.pragma('foreign_key_check') as unknown[]
    if (orphan !== undefined) throw damaged(path, `a broken reference: ${JSON.stringify(orphan)}`)
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
    const applied = Object.keys(migrations).filter((name) => !pending.includes(name))
    const schema = applied.sort().at(-1)
    if (schema === undefined) throw new StartupError(`The database ${path} contains no Parley tables.`)
    return { connection, db, schema }
  } catch (error) {
    connection?.close()
    const isDamage = error instanceof Sqlite.SqliteError && /^SQLITE_(NOTADB|CORRUPT)/.test(error.code)
    throw isDamage ? damaged(path, error.message) : error
  }
}

export async function countRows(db: Kysely<Tables>): Promise<Record<string, number>> {
  const counts: Record<string, number> = {}
  for (const { name } of await db.introspection.getTables()) {
    const query = sql<{ count: number }>`select count(*) as count from ${sql.table(name)}`
    counts[name] = Number((await query.execute(db)).rows[0]?.count)
  }
  return counts
}
