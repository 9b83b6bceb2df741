/** Adds an index that lists a tenant's calls newest first without sorting all of them. */
import type { Kysely } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createIndex('usage_calls_by_owner')
    .on('usage_calls')
    .columns(['parent_key_id', 'id'])
    .execute()
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await db.schema.dropIndex('usage_calls_by_owner').execute()
}
