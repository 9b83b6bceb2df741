/** Opens the SQLite or PostgreSQL database that the configuration selects. */
import { StartupError } from '../lib/errors.ts'
import type { OpenedDatabase, OpenOptions } from './database.ts'

export {
  type ConversationStorage,
  conversationsFile,
  createConversationStorage,
} from './conversations/open.ts'
export { insertRow, prepare } from './conversations/prepared.ts'
export type {
  ConversationDatabase,
  ConversationDb,
  ConversationNoteTable,
  ConversationTable,
  ConversationTables,
  ErasureTable,
  ItemDataTable,
  ItemTable,
  Procedure,
  RatingTable,
  TurnStatus,
  TurnTable,
  VisitorTable,
  WebhookDeliveryTable,
} from './conversations/tables.ts'
export { conversationTableNames } from './conversations/tables.ts'

/** @throws StartupError if the database is not usable. */
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
 * Opens the database for a command that may run before the first server start, and creates it if needed.
 * @throws StartupError
 */
export async function openOrCreateDatabase(
  options: Pick<OpenOptions, 'dataDir' | 'databaseUrl'>,
): Promise<OpenedDatabase> {
  // Uses the server role, which applies migrations. With PostgreSQL, this role takes no lock.
  if (options.databaseUrl !== undefined) return openDatabase({ ...options, role: 'server' })
  try {
    return await openDatabase({ ...options, role: 'command' })
  } catch (error) {
    if (!(error instanceof StartupError)) throw error
    return openDatabase({ ...options, role: 'server' })
  }
}

export function mapConstraintError(error: unknown): 'unique' | 'foreign_key' | undefined {
  if (!(error instanceof Error) || !('code' in error)) return undefined
  return constraintCodes[String(error.code)]
}

const constraintCodes: Readonly<Record<string, 'unique' | 'foreign_key' | undefined>> = {
  SQLITE_CONSTRAINT_UNIQUE: 'unique',
  SQLITE_CONSTRAINT_PRIMARYKEY: 'unique',
  SQLITE_CONSTRAINT_ROWID: 'unique',
  SQLITE_CONSTRAINT_FOREIGNKEY: 'foreign_key',
  '23505': 'unique',
  '23503': 'foreign_key',
}
