/** Adds the notes of versions of agents, and an index that finds calls by the id of their request. */
import type { Kysely } from 'kysely'

const tables = ['agents', 'agent_versions'] as const

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const table of tables) await db.schema.alterTable(table).addColumn('note', 'text').execute()
  await db.schema.createIndex('usage_calls_by_request').on('usage_calls').column('request_id').execute()
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await db.schema.dropIndex('usage_calls_by_request').execute()
  for (const table of tables) await db.schema.alterTable(table).dropColumn('note').execute()
}
