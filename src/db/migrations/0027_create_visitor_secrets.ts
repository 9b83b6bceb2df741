/** Creates the table for the secrets that owners use to sign visitors' identities. */
import type { Kysely } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('visitor_secrets')
    .addColumn('agent_id', 'text', (column) =>
      column.primaryKey().references('agents.id').onDelete('cascade'),
    )
    .addColumn('secret_sealed', 'text', (column) => column.notNull())
    .addColumn('previous_sealed', 'text')
    .addColumn('previous_until', 'bigint')
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .execute()
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await db.schema.dropTable('visitor_secrets').execute()
}
