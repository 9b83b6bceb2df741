/** Adds an index that finds the last day on which an agent was called. */
import type { Kysely } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createIndex('usage_days_by_agent')
    .on('usage_days')
    .columns(['parent_key_id', 'agent_id', 'day'])
    .execute()
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await db.schema.dropIndex('usage_days_by_agent').execute()
}
