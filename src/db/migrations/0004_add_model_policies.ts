/** Adds the model policy columns to agents. */
import type { Kysely } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('agents').addColumn('model_policy', 'text').execute()
  await db.schema.alterTable('agents').addColumn('model_policy_updated_at', 'bigint').execute()
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('agents').dropColumn('model_policy_updated_at').execute()
  await db.schema.alterTable('agents').dropColumn('model_policy').execute()
}
