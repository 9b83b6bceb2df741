import { StartupError } from '../lib/errors.ts'
import type { OpenedDatabase, OpenOptions } from './database.ts'

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
