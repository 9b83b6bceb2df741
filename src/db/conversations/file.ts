/** Opens the SQLite file of stored conversations, with one connection to read and one to write. */
import { Kysely } from 'kysely'
import { createPrivateFile } from '../../lib/files.ts'
import { applyMigrations, listPendingMigrations } from '../migrate.ts'
import { disableBlockingWaits, openSqlite, toKysely } from '../sqlite.ts'
import { conversationMigrations } from './migrations.ts'
import type { ConversationDatabase, ConversationTables } from './tables.ts'
import { ThreadDialect } from './thread-dialect.ts'

export type OpenedFile = ConversationDatabase & { close(): Promise<void> }

export async function openFile(path: string): Promise<OpenedFile> {
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
