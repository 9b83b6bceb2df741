/** Lets a tenant's artifacts be listed newest first without sorting them all. */
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
