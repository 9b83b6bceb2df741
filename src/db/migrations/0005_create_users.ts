/** Creates the table for users that a proxy signs in, and links parent keys to them. */
import type { Kysely } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('users')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('email', 'text', (column) => column.notNull().unique())
    .addColumn('name', 'text', (column) => column.notNull())
    .addColumn('username', 'text')
    .addColumn('groups', 'text', (column) => column.notNull())
    .addColumn('active_key_id', 'text', (column) => column.references('parent_keys.id'))
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .addColumn('last_seen_at', 'bigint', (column) => column.notNull())
    .execute()
  await db.schema
    .alterTable('parent_keys')
    .addColumn('user_id', 'text', (column) => column.references('users.id'))
    .execute()
  await db.schema
    .alterTable('parent_keys')
    .addColumn('is_automatic', 'integer', (column) => column.notNull().defaultTo(0))
    .execute()
  await db.schema.createIndex('parent_keys_by_user').on('parent_keys').column('user_id').execute()
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await db.schema.dropIndex('parent_keys_by_user').execute()
  for (const column of ['is_automatic', 'user_id']) {
    await db.schema.alterTable('parent_keys').dropColumn(column).execute()
  }
  await db.schema.dropTable('users').execute()
}
