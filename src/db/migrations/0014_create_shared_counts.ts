/** Creates the tables for counters that replicas share through PostgreSQL. */
import { type Kysely, PostgresAdapter, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await createCounts(db, 'rate_windows')
    .addColumn('key', 'text', (column) => column.primaryKey())
    .addColumn('count', 'integer', (column) => column.notNull())
    .addColumn('ends_at_ms', 'bigint', (column) => column.notNull())
    .execute()
  await createCounts(db, 'stream_slots')
    .addColumn('key', 'text', (column) => column.primaryKey())
    .addColumn('open', 'text', (column) => column.notNull())
    .execute()
  await createCounts(db, 'replicas')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('seen_at_ms', 'bigint', (column) => column.notNull())
    .execute()
}

/** The tables are unlogged, because counters change with every request and are worthless after a crash. */
function createCounts(db: Kysely<unknown>, table: string) {
  const builder = db.schema.createTable(table)
  return db.getExecutor().adapter instanceof PostgresAdapter ? builder.modifyFront(sql`unlogged`) : builder
}

export async function down(db: Kysely<unknown>): Promise<void> {
  for (const table of ['replicas', 'stream_slots', 'rate_windows']) await db.schema.dropTable(table).execute()
}
