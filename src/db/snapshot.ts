/** Copies a consistent snapshot of the SQLite databases while a server writes to them. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import Sqlite, { type Database as SqliteDatabase } from 'better-sqlite3'
import { type Kysely, type Migration, sql } from 'kysely'
import { StartupError } from '../lib/errors.ts'
import { createPrivateFile } from '../lib/files.ts'
import { conversationMigrations } from './conversations/migrations.ts'
import { conversationsFile } from './conversations/open.ts'
import type { ConversationTables } from './conversations/tables.ts'
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
  /** The file of stored conversations; undefined if it does not exist or must not be copied. */
  readonly conversations:
    | (Pick<SnapshotSource, 'schema' | 'copyTo'> & { readonly db: Kysely<ConversationTables> })
    | undefined
  /** Starts a read transaction. Writers continue, and the log grows until `release`. */
  pin(): void
  release(): void
  /** Like `pin`, but also blocks all writers of `db` until `run` settles. */
  pinAlone(run: () => Promise<void>): Promise<void>
  copyTo(path: string): Promise<void>
  close(): void
}

/**
 * Opens a database to copy. A server may be running, and the schema may be older than this version.
 * @throws StartupError if the database is missing or from a newer version.
 */
export async function openSnapshotSource(
  dataDir: string,
  { withConversations = true }: { readonly withConversations?: boolean } = {},
): Promise<SnapshotSource> {
  await assertDatabaseExists(dataDir)
  const path = join(dataDir, databaseName)
  const main = await openPinnable<Tables>(path, migrations)
  try {
    if (main.schema === undefined) throw noTables(path)
    const conversations = withConversations ? await openConversations(dataDir) : undefined
    // Pins the conversations first, so that each of their agents is in `db` or its deletion is in the audit
    // log.
    const pin = () => {
      conversations?.pin()
      main.pin()
    }
    return {
      db: main.db,
      schema: main.schema,
      conversations,
      pin,
      release() {
        main.release()
        conversations?.release()
      },
      async pinAlone(run) {
        const holder = openSqlite(path)
        try {
          holder.exec('BEGIN IMMEDIATE')
          pin()
          await run()
        } finally {
          holder.close()
        }
      },
      copyTo: main.copyTo,
      close() {
        conversations?.close()
        main.close()
      },
    }
  } catch (error) {
    main.close()
    throw error
  }
}

/**
 * Opens the file of stored conversations. The file has no tables if a server was killed while creating it.
 */
async function openConversations(dataDir: string) {
  const path = join(dataDir, conversationsFile)
  if (!existsSync(path)) return undefined
  const opened = await openPinnable<ConversationTables>(path, conversationMigrations)
  const { schema } = opened
  if (schema !== undefined) return { ...opened, schema }
  opened.close()
  return undefined
}

async function openPinnable<T>(path: string, known: Migrations) {
  const { connection, db, schema } = await openAny<T>(path, known)
  return {
    db,
    schema,
    pin: () => void connection.exec('BEGIN; SELECT count(*) FROM sqlite_schema'),
    release: () => void connection.exec('COMMIT'),
    async copyTo(target: string) {
      createPrivateFile(target)
      await connection.backup(target, { progress: () => PAGES_PER_STEP })
    },
    close: () => void connection.close(),
  }
}

export interface CheckedCopy<T> {
  readonly db: Kysely<T>
  readonly schema: string
  close(): void
}

/**
 * Opens a copied database and checks all its pages and references.
 * @throws StartupError if it is damaged or from a newer version.
 */
export function openCheckedCopy(path: string): Promise<CheckedCopy<Tables>> {
  return openChecked(path, migrations)
}

/** Like `openCheckedCopy`, for the file of stored conversations. @throws StartupError */
export function openCheckedConversations(path: string): Promise<CheckedCopy<ConversationTables>> {
  return openChecked(path, conversationMigrations)
}

async function openChecked<T>(path: string, known: Migrations): Promise<CheckedCopy<T>> {
  const { connection, db, schema } = await openAny<T>(path, known)
  try {
    if (schema === undefined) throw noTables(path)
    assertSound(connection, path)
    const [orphan] = connection.pragma('foreign_key_check') as unknown[]
    if (orphan !== undefined) throw damaged(path, `a broken reference: ${JSON.stringify(orphan)}`)
    return { db, schema, close: () => void connection.close() }
  } catch (error) {
    connection.close()
    throw error
  }
}

type Migrations = Readonly<Record<string, Migration>>

/** `schema` is the newest applied migration; undefined for a database without tables. */
async function openAny<T>(path: string, known: Migrations) {
  let connection: SqliteDatabase | undefined
  try {
    connection = openSqlite(path)
    const db = toKysely<T>(connection)
    const pending = await listPendingMigrations(db, known)
    const applied = Object.keys(known).filter((name) => !pending.includes(name))
    return { connection, db, schema: applied.sort().at(-1) }
  } catch (error) {
    connection?.close()
    const isDamage = error instanceof Sqlite.SqliteError && /^SQLITE_(NOTADB|CORRUPT)/.test(error.code)
    throw isDamage ? damaged(path, error.message) : error
  }
}

function noTables(path: string): StartupError {
  return new StartupError(`The database ${path} contains no Parley tables.`)
}

export async function countRows<T>(db: Kysely<T>): Promise<Record<string, number>> {
  const counts: Record<string, number> = {}
  for (const { name } of await db.introspection.getTables()) {
    const query = sql<{ count: number }>`select count(*) as count from ${sql.table(name)}`
    counts[name] = Number((await query.execute(db)).rows[0]?.count)
  }
  return counts
}
