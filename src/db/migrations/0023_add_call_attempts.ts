/** Adds columns for a call's number of attempts and its failed attempts; both are null for existing calls. */
import type { Kysely } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('usage_calls').addColumn('attempts', 'integer').execute()
  await db.schema.alterTable('usage_calls').addColumn('failed_attempts', 'text').execute()
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('usage_calls').dropColumn('failed_attempts').execute()
  await db.schema.alterTable('usage_calls').dropColumn('attempts').execute()
}
