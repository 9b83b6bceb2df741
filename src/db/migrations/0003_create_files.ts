/** Creates the `files` table. */
import type { Kysely } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('files')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('parent_key_id', 'text', (column) => column.notNull().references('parent_keys.id'))
    .addColumn('blob', 'text', (column) => column.notNull().unique())
    .addColumn('size_bytes', 'bigint', (column) => column.notNull())
    .addColumn('filename', 'text', (column) => column.notNull())
    .addColumn('purpose', 'text', (column) => column.notNull())
    .addColumn('media_type', 'text', (column) => column.notNull())
    .addColumn('position', 'bigint', (column) => column.notNull())
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .addColumn('expires_at', 'bigint')
    .execute()
  await db.schema.createIndex('files_by_owner').on('files').columns(['parent_key_id', 'position']).execute()
  await db.schema.createIndex('files_by_expiry').on('files').column('expires_at').execute()
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await db.schema.dropTable('files').execute()
}
