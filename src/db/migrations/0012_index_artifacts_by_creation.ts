/** Adds an index that lists a tenant's artifacts newest first without sorting all of them. */
import type { Kysely } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createIndex('artifacts_by_owner_creation')
    .on('artifacts')
    .columns(['parent_key_id', 'created_at', 'id'])
    .execute()
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await db.schema.dropIndex('artifacts_by_owner_creation').execute()
}
