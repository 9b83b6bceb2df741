/** Opens the database of stored conversations. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { sql } from 'kysely'
import { type Clock, systemClock } from '../../lib/clock.ts'
import type { Database } from '../database.ts'
import type { OpenedFile } from './file.ts'
import { runDirectly } from './procedure.ts'
import type { ConversationDatabase, ConversationDb, ConversationTables } from './tables.ts'

export const conversationsFile = 'conversations.db'

export interface ConversationStorage {
  /** Returns the database if it exists; with SQLite, only `open` creates the file. */
  find(): Promise<ConversationDatabase | undefined>
  /** Returns the database, and creates it if needed. */
  open(): Promise<ConversationDatabase>
  close(): Promise<void>
}

export function createConversationStorage(
  { db, databaseUrl }: { readonly db: Database; readonly databaseUrl: string | undefined },
  dataDir: string,
  clock: Pick<Clock, 'monotonic'> = systemClock,
): ConversationStorage {
  if (databaseUrl !== undefined) {
    const shared = withConversations(db)
    const opened: ConversationDatabase = {
      ...{ read: shared, write: shared, run: runDirectly(shared), scrub: async () => true },
      lockMaintenance: lockShared,
      vacuum: async (...args) => (await import('./vacuum.ts')).vacuumConversations(databaseUrl, ...args),
    }
    return { find: async () => opened, open: async () => opened, async close() {} }
  }
  const path = dataDir === ':memory:' ? dataDir : join(dataDir, conversationsFile)
  let opening: Promise<OpenedFile> | undefined
  const open = () => {
    opening ??= openLazily(path, clock).catch((error) => {
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

const MAINTENANCE_LOCK = 5_707_240_193_113_602n

async function lockShared(trx: ConversationDb): Promise<void> {
  await sql`select pg_advisory_xact_lock(${sql.lit(MAINTENANCE_LOCK)})`.execute(trx)
}

/** With PostgreSQL, all tables are in one database. */
function withConversations(db: Database): ConversationDb {
  return db.withTables<ConversationTables>()
}

/** Loads SQLite on first use, because servers on PostgreSQL do not need it. */
async function openLazily(path: string, clock: Pick<Clock, 'monotonic'>): Promise<OpenedFile> {
  const { openFile } = await import('./file.ts')
  return openFile(path, clock)
}
