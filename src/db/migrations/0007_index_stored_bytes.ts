/** Adds an index for summing a tenant's stored bytes. */
import type { Kysely } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createIndex('files_by_owner_size')
    .on('files')
    .columns(['parent_key_id', 'expires_at', 'size_bytes'])
    .execute()
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await db.schema.dropIndex('files_by_owner_size').execute()
}
