/** Lets parent keys expire, be disabled, have their own limits and manage other keys. */
import type { Kysely } from 'kysely'

const columns = {
  disabled_at: 'bigint',
  expires_at: 'bigint',
  requests_per_minute: 'integer',
  max_streams: 'integer',
} as const

export async function up(db: Kysely<unknown>): Promise<void> {
  const table = () => db.schema.alterTable('parent_keys')
  for (const [name, type] of Object.entries(columns)) await table().addColumn(name, type).execute()
  await table()
    .addColumn('can_manage_keys', 'integer', (column) => column.notNull().defaultTo(0))
    .execute()
  await table()
    .addColumn('managed_by', 'text', (column) => column.references('parent_keys.id'))
    .execute()
  await db.schema.createIndex('parent_keys_by_manager').on('parent_keys').column('managed_by').execute()
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await db.schema.dropIndex('parent_keys_by_manager').execute()
  for (const name of ['managed_by', 'can_manage_keys', ...Object.keys(columns)]) {
    await db.schema.alterTable('parent_keys').dropColumn(name).execute()
  }
}
