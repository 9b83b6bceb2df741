/** Adds columns for the agent and the visitor of a visitor's upload (ADR 0079). */
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const column of ['agent_id', 'visitor_id'])
    await db.schema.alterTable('artifacts').addColumn(column, 'text').execute()
  await sql`create index artifacts_by_visitor on artifacts (visitor_id, created_at) where visitor_id is not null`.execute(
    db,
  )
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await db.schema.dropIndex('artifacts_by_visitor').execute()
  for (const column of ['agent_id', 'visitor_id'])
    await db.schema.alterTable('artifacts').dropColumn(column).execute()
}
