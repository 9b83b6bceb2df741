/** Adds the bin for finished uploads. */
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('artifacts').addColumn('binned_at', 'bigint').execute()
  await sql`create index artifacts_in_bin on artifacts (parent_key_id, binned_at) where binned_at is not null`.execute(
    db,
  )
  await sql`create index artifacts_by_binned_at on artifacts (binned_at) where binned_at is not null`.execute(
    db,
  )
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await db.schema.dropIndex('artifacts_by_binned_at').execute()
  await db.schema.dropIndex('artifacts_in_bin').execute()
  await db.schema.alterTable('artifacts').dropColumn('binned_at').execute()
}
