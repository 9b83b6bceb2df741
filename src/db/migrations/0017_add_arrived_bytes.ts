/**
 * Adds a column for the number of bytes that have arrived for an upload, including those that are not durable
 * yet.
 */
import type { Kysely } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .alterTable('artifacts')
    .addColumn('arrived_bytes', 'bigint', (column) => column.notNull().defaultTo(0))
    .execute()
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('artifacts').dropColumn('arrived_bytes').execute()
}
