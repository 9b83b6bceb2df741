/** Migrates a database to the newest schema, or reports why it cannot. */
import type { Database as SqliteDatabase } from 'better-sqlite3'
import { DEFAULT_MIGRATION_TABLE, type Kysely, type Migration, sql, type Transaction } from 'kysely'
import { StartupError } from '../lib/errors.ts'

/** Returns the pending migrations, oldest first. @throws StartupError for a database from a newer version. */
export async function listPendingMigrations<T>(
  db: Kysely<T>,
  migrations: Readonly<Record<string, Migration>>,
): Promise<string[]> {
  const applied = await listApplied(db)
  const unknown = applied.find((name) => !Object.hasOwn(migrations, name))
  if (unknown !== undefined) {
    throw new StartupError(
      `The database was written by a different version of Parley (its migration ${unknown} is unknown to this version); start that version or a newer one.`,
    )
  }
  return Object.keys(migrations)
    .sort()
    .filter((name) => !applied.includes(name))
}

/** @throws StartupError that lists the pending migrations, which only a server may apply. */
export function assertNonePending(pending: readonly string[]): void {
  if (pending.length === 0) return
  throw new StartupError(
    `The database is older than this version of Parley (missing migrations: ${pending.join(', ')}); start a server with this version once to migrate it.`,
  )
}

/**
 * Applies the pending migrations to SQLite in one transaction. `connection` must be the connection that `db`
 * uses.
 * @throws StartupError with the name of the failed migration.
 */
export async function applyMigrations<T>(
  connection: SqliteDatabase,
  db: Kysely<T>,
  migrations: Readonly<Record<string, Migration>>,
): Promise<void> {
  // Lets migrations rebuild tables without deleting the rows that refer to them. References are checked
  // afterwards.
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

const MIGRATION_LOCK = 5_707_240_193_113_601n

/**
 * Applies the pending migrations while other servers wait.
 * @throws StartupError with the name of the failed migration.
 */
export async function applyPostgresMigrations<T>(
  db: Kysely<T>,
  migrations: Readonly<Record<string, Migration>>,
): Promise<void> {
  await db.transaction().execute((trx) => applyWithin(trx, migrations))
}

export async function applyWithin<T>(
  trx: Transaction<T>,
  migrations: Readonly<Record<string, Migration>>,
): Promise<void> {
  await sql`select pg_advisory_xact_lock(${sql.lit(MIGRATION_LOCK)})`.execute(trx)
  await applyPending(trx, migrations)
}

/** Must run in a transaction. Does not use Kysely's migrator, which reads all tables several times. */
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
  const which = name === undefined ? 'The migrations' : `Migration ${name}`
  return new StartupError(`${which} failed: ${reason}. The database is unchanged.`, { cause })
}

async function listApplied<T>(db: Kysely<T>): Promise<string[]> {
  try {
    const query = sql<{ name: string }>`select name from ${sql.table(DEFAULT_MIGRATION_TABLE)}`
    return (await query.execute(db)).rows.map(({ name }) => name)
  } catch (error) {
    // Checks for the table only after an error, because the check is slow and only a new database lacks the
    // table.
    const tables = await db.introspection.getTables({ withInternalKyselyTables: true })
    if (tables.some((table) => table.name === DEFAULT_MIGRATION_TABLE)) throw error
    return []
  }
}

export { conversationMigrations } from './conversations/migrations.ts'
export { migrations } from './migrations/index.ts'
