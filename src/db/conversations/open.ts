/** Opens the database of stored conversations. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Database, OpenedDatabase } from '../database.ts'
import type { OpenedFile } from './file.ts'
import type { ConversationDatabase, ConversationDb, ConversationTables } from './tables.ts'

export const conversationsFile = 'conversations.db'

export interface ConversationStorage {
  /** The database if it exists; SQLite creates the file with the first stored turn. */
  find(): Promise<ConversationDatabase | undefined>
  /** The database, created if needed. */
  open(): Promise<ConversationDatabase>
  close(): Promise<void>
}

export function createConversationStorage(
  { db, postgres }: Pick<OpenedDatabase, 'db' | 'postgres'>,
  dataDir: string,
): ConversationStorage {
  if (postgres !== undefined) {
    const shared = withConversations(db)
    const opened = { read: shared, write: shared }
    return { find: async () => opened, open: async () => opened, async close() {} }
  }
  const path = dataDir === ':memory:' ? dataDir : join(dataDir, conversationsFile)
  let opening: Promise<OpenedFile> | undefined
  const open = () => {
    opening ??= openLazily(path).catch((error) => {
      opening = undefined
      throw error
    })
    return opening
  }
  return {
    open,
    find: async () =>
      opening !== undefined || (path !== ':memory:' && existsSync(path)) ? open() : undefined,
    async close() {
      await (await opening?.catch(() => undefined))?.close()
    },
  }
}

/** PostgreSQL has all tables in one database. */
function withConversations(db: Database): ConversationDb {
  return db.withTables<ConversationTables>()
}

/** PostgreSQL needs no SQLite, so it is loaded with the first file. */
async function openLazily(path: string): Promise<OpenedFile> {
  const { openFile } = await import('./file.ts')
  return openFile(path)
}
