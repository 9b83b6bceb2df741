/** Opens the database: for a server, or for a command beside it. */
import type { Kysely } from 'kysely'
import type { Logger } from 'pino'
import { StartupError } from '../startup-error.ts'
import type { PostgresAccess } from './postgres.ts'
import type { Tables } from './tables.ts'

/**
 * What the database is opened for. A `server` creates it if there is none and migrates it; with SQLite it takes the directory's lock.
 * A `command` works beside a server on a database that is there and up to date.
 */
export type Role = 'server' | 'command'

/** Where the database is, and what it is opened for. */
export interface OpenOptions {
  /** The data directory, or `:memory:` for one that ends with its process; without `databaseUrl` the database lies there. */
  readonly dataDir: string
  /** A PostgreSQL database; undefined = SQLite. */
  readonly databaseUrl?: string | undefined
  readonly role: Role
  /** Told of connections that are lost. */
  readonly log?: Pick<Logger, 'warn'>
}

/** An open database. */
export interface OpenedDatabase {
  readonly db: Kysely<Tables>
  /** Whether no other server can be at work on it: then whatever a former one has left under way is nobody's. */
  readonly isOnlyServer: boolean
  /** Undefined where the rows lie in SQLite. */
  readonly postgres: PostgresAccess | undefined
  /** Writes everything down, closes the database and gives the directory back; safe to call twice. */
  close(): Promise<void>
}

/**
 * Opens the database. Decision: 2. Security: 2.12.
 * @throws StartupError, in a sentence for the operator, when it cannot be used as it is.
 */
export async function openDatabase(options: OpenOptions): Promise<OpenedDatabase> {
  const { dataDir, databaseUrl, role } = options
  if (databaseUrl === undefined) {
    const { openSqliteDatabase } = await import('./open-sqlite.ts')
    return openSqliteDatabase(dataDir, role)
  }
  const { openPostgresDatabase } = await import('./open-postgres.ts')
  return openPostgresDatabase({ ...options, databaseUrl })
}

/**
 * Opens the database for a command that may be the first to use it: beside a server, else alone, and then it is made and migrated.
 * @throws StartupError
 */
export async function openOrCreateDatabase(
  options: Pick<OpenOptions, 'dataDir' | 'databaseUrl'>,
): Promise<OpenedDatabase> {
  // Any number of servers may be at work on PostgreSQL.
  if (options.databaseUrl !== undefined) return openDatabase({ ...options, role: 'server' })
  try {
    return await openDatabase({ ...options, role: 'command' })
  } catch (error) {
    if (!(error instanceof StartupError)) throw error
    return openDatabase({ ...options, role: 'server' })
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
