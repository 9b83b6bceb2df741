/** Brings a database to the newest schema, or says why it cannot be used as it is. */
import type { Database as SqliteDatabase } from 'better-sqlite3'
import { DEFAULT_MIGRATION_TABLE, type Kysely, type Migration, sql, type Transaction } from 'kysely'
import { StartupError } from '../lib/errors.ts'

/**
 * The migrations this version knows and the database has not had, oldest first.
 * @throws StartupError for a database from a newer version: nobody knows here what its tables mean.
 */
export async function listPendingMigrations<T>(
  db: Kysely<T>,
  migrations: Readonly<Record<string, Migration>>,
): Promise<string[]> {
  const applied = await listApplied(db)
  const unknown = applied.find((name) => !Object.hasOwn(migrations, name))
  if (unknown !== undefined) {
    throw new StartupError(
      `The database was written by another version of Parley (its migration ${unknown} is not known here); start that version again, or a newer one.`,
    )
  }
  return Object.keys(migrations)
    .sort()
    .filter((name) => !applied.includes(name))
}

/** @throws StartupError that names what the database lacks: only a server may add it. */
export function assertNonePending(pending: readonly string[]): void {
  if (pending.length === 0) return
  throw new StartupError(
    `The database is older than this version of Parley (it lacks ${pending.join(', ')}); start this version's server once.`,
  )
}

/**
 * Applies every pending migration to SQLite in one transaction: after a failure or a crash the database is as it was. `connection` is the
 * one under `db`, and nobody else uses it meanwhile.
 * @throws StartupError naming the migration that failed.
 */
export async function applyMigrations<T>(
  connection: SqliteDatabase,
  db: Kysely<T>,
  migrations: Readonly<Record<string, Migration>>,
): Promise<void> {
  // A migration that rebuilds a table drops the old one, which must not delete what refers to it; checked below instead.
  connection.pragma('foreign_keys = OFF')
  try {
    connection.exec('BEGIN IMMEDIATE')
    await applyPending(db, migrations)
    const [orphan] = connection.pragma('foreign_key_check') as unknown[]
    if (orphan !== undefined)
      throw failed(undefined, new Error(`broken reference: ${JSON.stringify(orphan)}`))
    connection.exec('COMMIT')
  } catch (error) {
    if (connection.inTransaction) connection.exec('ROLLBACK')
    throw error
  } finally {
    connection.pragma('foreign_keys = ON')
  }
}

/** The number of the lock under which one process at a time migrates a PostgreSQL database. */
const MIGRATION_LOCK = 5_707_240_193_113_601n

/**
 * Applies every pending migration to PostgreSQL in one transaction. Others who start meanwhile wait for its end, and find nothing left
 * to do. Design: 5.
 * @throws StartupError naming the migration that failed, or as `listPendingMigrations` does.
 */
export async function applyPostgresMigrations<T>(
  db: Kysely<T>,
  migrations: Readonly<Record<string, Migration>>,
): Promise<void> {
  await db.transaction().execute((trx) => applyWithin(trx, migrations))
}

/** As `applyPostgresMigrations`, as a part of a transaction that goes on: until its end nobody sees anything of it. */
export async function applyWithin<T>(
  trx: Transaction<T>,
  migrations: Readonly<Record<string, Migration>>,
): Promise<void> {
  await sql`select pg_advisory_xact_lock(${sql.lit(MIGRATION_LOCK)})`.execute(trx)
  await applyPending(trx, migrations)
}

/** Within a transaction. The table is Kysely's, which made the first ones; its own migrator looks through all tables several times. */
async function applyPending<T>(
  trx: Kysely<T>,
  migrations: Readonly<Record<string, Migration>>,
): Promise<void> {
  await trx.schema
    .createTable(DEFAULT_MIGRATION_TABLE)
    .ifNotExists()
    .addColumn('name', 'varchar(255)', (column) => column.primaryKey())
    .addColumn('timestamp', 'varchar(255)', (column) => column.notNull())
    .execute()
  for (const name of await listPendingMigrations(trx, migrations)) {
    await migrations[name]?.up(trx).catch((error: unknown) => {
      throw failed(name, error)
    })
    const table = sql.table(DEFAULT_MIGRATION_TABLE)
    const now = sql`cast(current_timestamp as varchar(255))`
    await sql`insert into ${table} (name, timestamp) values (${name}, ${now})`.execute(trx)
  }
}

function failed(name: string | undefined, cause: unknown): StartupError {
  const reason = cause instanceof Error ? cause.message : String(cause)
  const which = name === undefined ? 'The migrations' : `The migration ${name}`
  return new StartupError(`${which} failed, and the database is as it was before (${reason}).`, { cause })
}

async function listApplied<T>(db: Kysely<T>): Promise<string[]> {
  try {
    const { rows } = await sql<{
      name: string
    }>`select name from ${sql.table(DEFAULT_MIGRATION_TABLE)}`.execute(db)
    return rows.map((row) => row.name)
  } catch (error) {
    // To look through all tables takes longer than the rest of a start; only a new database lacks this one.
    const tables = await db.introspection.getTables({ withInternalKyselyTables: true })
    if (tables.some((table) => table.name === DEFAULT_MIGRATION_TABLE)) throw error
    return []
  }
}

export { migrations } from './migrations/index.ts'
