/** Opens the database of stored conversations. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { Kysely } from 'kysely'
import { createPrivateFile } from '../../lib/files.ts'
import type { Database, OpenedDatabase } from '../database.ts'
import { applyMigrations, listPendingMigrations } from '../migrate.ts'
import { disableBlockingWaits, openSqlite, toKysely } from '../sqlite.ts'
import { conversationMigrations } from './migrations.ts'
import type { ConversationDb, ConversationTables } from './tables.ts'
import { ThreadDialect } from './thread-dialect.ts'

export const conversationsFile = 'conversations.db'

/** Reads and writes use different connections with SQLite, so that reads never wait for a commit. */
export interface ConversationDatabase {
  readonly read: ConversationDb
  readonly write: ConversationDb
}

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
    opening ??= openFile(path).catch((error) => {
      opening = undefined
      throw error
    })
    return opening
  }
  return {
    open,
    find: async () => (opening !== undefined || (path !== ':memory:' && existsSync(path)) ? open() : undefined),
    async close() {
      await (await opening?.catch(() => undefined))?.close()
    },
  }
}

/** PostgreSQL has all tables in one database. */
function withConversations(db: Database): ConversationDb {
  return db.withTables<ConversationTables>()
}

type OpenedFile = ConversationDatabase & { close(): Promise<void> }

async function openFile(path: string): Promise<OpenedFile> {
  if (path !== ':memory:') createPrivateFile(path)
  const connection = openSqlite(path)
  try {
    const db = toKysely<ConversationTables>(connection)
    connection.pragma('secure_delete = ON')
    if ((await listPendingMigrations(db, conversationMigrations)).length > 0)
      await applyMigrations(connection, db, conversationMigrations)
    disableBlockingWaits(connection)
    if (path === ':memory:') return { read: db, write: db, close: () => db.destroy() }
    const write = new Kysely<ConversationTables>({ dialect: new ThreadDialect(path) })
    return {
      read: db,
      write,
      async close() {
        await write.destroy()
        await db.destroy()
        connection.close()
      },
    }
  } catch (error) {
    connection.close()
    throw error
  }
}
