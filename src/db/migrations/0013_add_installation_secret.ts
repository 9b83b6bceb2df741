/** Adds a column for the id of the key that is derived from the servers' shared secret. */
import type { Kysely } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('installation').addColumn('secret_key_id', 'text').execute()
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('installation').dropColumn('secret_key_id').execute()
}
