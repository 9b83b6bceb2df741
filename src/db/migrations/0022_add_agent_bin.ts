/** Adds the bin for agents. The keys of an agent in the bin are rejected. */
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('agents').addColumn('binned_at', 'bigint').execute()
  await db.schema.alterTable('credentials').addColumn('suspended_at', 'bigint').execute()
  await sql`create index agents_in_bin on agents (binned_at) where binned_at is not null`.execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await db.schema.dropIndex('agents_in_bin').execute()
  await db.schema.alterTable('credentials').dropColumn('suspended_at').execute()
  await db.schema.alterTable('agents').dropColumn('binned_at').execute()
}
