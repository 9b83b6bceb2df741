/** Opens the SQLite file of stored conversations, with one connection to read and one to write. */
import { Kysely, sql } from 'kysely'
import type { Clock } from '../../lib/clock.ts'
import { createPrivateFile } from '../../lib/files.ts'
import { applyMigrations, listPendingMigrations } from '../migrate.ts'
import { disableBlockingWaits, openSqlite, toKysely } from '../sqlite.ts'
import { conversationMigrations } from './migrations.ts'
import { runDirectly } from './procedure.ts'
import type { ConversationDatabase, ConversationDb, ConversationTables } from './tables.ts'
import { WriteThread } from './thread.ts'
import { ThreadDialect } from './thread-dialect.ts'

export type OpenedFile = ConversationDatabase & { close(): Promise<void> }

export async function openFile(path: string, clock: Pick<Clock, 'monotonic'>): Promise<OpenedFile> {
  if (path !== ':memory:') createPrivateFile(path)
  const connection = openSqlite(path)
  try {
    const db = toKysely<ConversationTables>(connection)
    connection.pragma('secure_delete = ON')
    if ((await listPendingMigrations(db, conversationMigrations)).length > 0)
      await applyMigrations(connection, db, conversationMigrations)
    disableBlockingWaits(connection)
    const [lockMaintenance, vacuum] = [async () => {}, async () => {}]
    if (path === ':memory:')
      return {
        ...{ read: db, write: db, run: runDirectly(db), scrub: async () => true, lockMaintenance, vacuum },
        close: () => db.destroy(),
      }
    const thread = new WriteThread(path, clock)
    const write = new Kysely<ConversationTables>({ dialect: new ThreadDialect(thread) })
    return {
      read: db,
      write,
      run: thread.run,
      scrub: () => truncateLog(write),
      lockMaintenance,
      vacuum,
      async close() {
        await thread.close()
        await db.destroy()
        connection.close()
      },
    }
  } catch (error) {
    connection.close()
    throw error
  }
}

/**
 * Copies the write-ahead log to the database and empties it. Does not wait for readers in other processes.
 */
async function truncateLog(write: ConversationDb): Promise<boolean> {
  return write.connection().execute(async (connection) => {
    const { rows: before } = await sql<{ timeout: number }>`pragma busy_timeout`.execute(connection)
    await sql`pragma busy_timeout = 0`.execute(connection)
    try {
      const { rows } = await sql<{ busy: number }>`pragma wal_checkpoint(truncate)`.execute(connection)
      return rows[0]?.busy === 0
    } finally {
      await sql`pragma busy_timeout = ${sql.lit(before[0]?.timeout ?? 0)}`.execute(connection)
    }
  })
}
