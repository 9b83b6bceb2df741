/** Creates the audit log table. */
import type { Kysely } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('audit_events')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .addColumn('actor_kind', 'text', (column) => column.notNull())
    .addColumn('actor', 'text', (column) => column.notNull())
    .addColumn('action', 'text', (column) => column.notNull())
    .addColumn('target_kind', 'text', (column) => column.notNull())
    .addColumn('target_id', 'text', (column) => column.notNull())
    .addColumn('tenant', 'text')
    .addColumn('request_id', 'text')
    .addColumn('client_address', 'text')
    .addColumn('details', 'text', (column) => column.notNull())
    .execute()
  for (const column of ['actor', 'action', 'target_id']) {
    await db.schema
      .createIndex(`audit_events_by_${column}`)
      .on('audit_events')
      .columns([column, 'id'])
      .execute()
  }
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await db.schema.dropTable('audit_events').execute()
}
