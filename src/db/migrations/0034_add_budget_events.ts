/**
 * Adds columns for the thresholds of budgets and for the thresholds already reported, and a table for the
 * events that report them.
 */
import type { Kysely } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .alterTable('budgets')
    .addColumn('warn_at', 'text', (column) => column.notNull().defaultTo('[50,80,100]'))
    .execute()
  await db.schema
    .alterTable('budget_counters')
    .addColumn('warned', 'text', (column) => column.notNull().defaultTo(''))
    .execute()
  await db.schema
    .createTable('budget_events')
    .addColumn('id', 'text', (column) => column.primaryKey().notNull())
    .addColumn('parent_key_id', 'text')
    .addColumn('agent_id', 'text', (column) => column.notNull())
    .addColumn('type', 'text', (column) => column.notNull())
    .addColumn('body', 'text', (column) => column.notNull())
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .addColumn('handed_at', 'bigint')
    .execute()
  for (const column of ['handed_at', 'created_at'])
    await db.schema.createIndex(`budget_events_by_${column}`).on('budget_events').column(column).execute()
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await db.schema.dropTable('budget_events').execute()
  await db.schema.alterTable('budget_counters').dropColumn('warned').execute()
  await db.schema.alterTable('budgets').dropColumn('warn_at').execute()
}
