/** Creates the table for artifacts: reserved ids, active uploads and their results. */
import type { Kysely } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('artifacts')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('parent_key_id', 'text', (column) => column.notNull().references('parent_keys.id'))
    .addColumn('segment', 'text', (column) => column.unique())
    .addColumn('state', 'text', (column) => column.notNull())
    .addColumn('kind', 'text')
    .addColumn('related_to', 'text')
    .addColumn('name', 'text')
    .addColumn('filename', 'text')
    .addColumn('filetype', 'text')
    .addColumn('checksum', 'text')
    .addColumn('metadata', 'text')
    .addColumn('size_bytes', 'bigint')
    .addColumn('received_bytes', 'bigint', (column) => column.notNull().defaultTo(0))
    .addColumn('kept_bytes', 'bigint', (column) => column.notNull().defaultTo(0))
    .addColumn('blob', 'text', (column) => column.unique())
    .addColumn('fence', 'bigint', (column) => column.notNull().defaultTo(0))
    .addColumn('lease_until', 'bigint')
    .addColumn('served_blob', 'text')
    .addColumn('served_bytes', 'bigint')
    .addColumn('media_type', 'text')
    .addColumn('sniffed_type', 'text')
    .addColumn('poster_blob', 'text')
    .addColumn('poster_bytes', 'bigint')
    .addColumn('progress_permille', 'integer', (column) => column.notNull().defaultTo(0))
    .addColumn('conversion_result', 'text')
    .addColumn('conversion_reason', 'text')
    .addColumn('acknowledged', 'integer', (column) => column.notNull().defaultTo(0))
    .addColumn('outcome', 'text')
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .addColumn('finished_at', 'bigint')
    .addColumn('expires_at', 'bigint')
    .execute()
  await db.schema
    .createIndex('artifacts_by_owner_size')
    .on('artifacts')
    .columns(['parent_key_id', 'expires_at', 'kept_bytes'])
    .execute()
  await db.schema.createIndex('artifacts_by_expiry').on('artifacts').column('expires_at').execute()
  await db.schema.createIndex('artifacts_by_state').on('artifacts').columns(['state', 'id']).execute()
  for (const column of ['served_blob', 'poster_blob']) {
    await db.schema.createIndex(`artifacts_by_${column}`).on('artifacts').column(column).execute()
  }
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await db.schema.dropTable('artifacts').execute()
}
