/** Creates the tables for call records, daily usage totals and token budgets. */
import type { Kysely } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('usage_calls')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('request_id', 'text', (column) => column.notNull())
    .addColumn('parent_key_id', 'text', (column) => column.notNull())
    .addColumn('agent_id', 'text', (column) => column.notNull())
    .addColumn('model', 'text', (column) => column.notNull())
    .addColumn('provider', 'text', (column) => column.notNull())
    .addColumn('status', 'text', (column) => column.notNull())
    .addColumn('prompt_tokens', 'bigint', (column) => column.notNull())
    .addColumn('completion_tokens', 'bigint', (column) => column.notNull())
    .addColumn('is_estimated', 'integer', (column) => column.notNull())
    .addColumn('is_streamed', 'integer', (column) => column.notNull())
    .addColumn('latency_ms', 'bigint', (column) => column.notNull())
    .addColumn('first_byte_ms', 'bigint')
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .execute()

  await db.schema
    .createTable('usage_days')
    .addColumn('parent_key_id', 'text', (column) => column.notNull())
    .addColumn('day', 'text', (column) => column.notNull())
    .addColumn('agent_id', 'text', (column) => column.notNull())
    .addColumn('model', 'text', (column) => column.notNull())
    .addColumn('provider', 'text', (column) => column.notNull())
    .addColumn('requests', 'bigint', (column) => column.notNull())
    .addColumn('errors', 'bigint', (column) => column.notNull())
    .addColumn('prompt_tokens', 'bigint', (column) => column.notNull())
    .addColumn('completion_tokens', 'bigint', (column) => column.notNull())
    .addColumn('estimated', 'bigint', (column) => column.notNull())
    .addColumn('latency_histogram', 'text', (column) => column.notNull())
    .addColumn('first_byte_histogram', 'text', (column) => column.notNull())
    .addPrimaryKeyConstraint('usage_days_key', ['parent_key_id', 'day', 'agent_id', 'model', 'provider'])
    .execute()

  await db.schema
    .createTable('budgets')
    .addColumn('owner_kind', 'text', (column) => column.notNull())
    .addColumn('owner_id', 'text', (column) => column.notNull())
    .addColumn('period', 'text', (column) => column.notNull())
    .addColumn('token_limit', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint('budgets_key', ['owner_kind', 'owner_id', 'period'])
    .execute()

  await db.schema
    .createTable('budget_counters')
    .addColumn('owner_kind', 'text', (column) => column.notNull())
    .addColumn('owner_id', 'text', (column) => column.notNull())
    .addColumn('period', 'text', (column) => column.notNull())
    .addColumn('starts_on', 'text', (column) => column.notNull())
    .addColumn('used', 'bigint', (column) => column.notNull())
    .addColumn('reserved', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint('budget_counters_key', ['owner_kind', 'owner_id', 'period', 'starts_on'])
    .execute()

  await db.schema
    .createTable('budget_reservations')
    .addColumn('id', 'text', (column) => column.notNull())
    .addColumn('owner_kind', 'text', (column) => column.notNull())
    .addColumn('owner_id', 'text', (column) => column.notNull())
    .addColumn('period', 'text', (column) => column.notNull())
    .addColumn('starts_on', 'text', (column) => column.notNull())
    .addColumn('tokens', 'bigint', (column) => column.notNull())
    .addColumn('expires_at', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint('budget_reservations_key', ['id', 'owner_kind', 'owner_id', 'period'])
    .execute()
  await db.schema
    .createIndex('budget_reservations_by_expiry')
    .on('budget_reservations')
    .column('expires_at')
    .execute()
}

export async function down(db: Kysely<unknown>): Promise<void> {
  const tables = ['budget_reservations', 'budget_counters', 'budgets', 'usage_days', 'usage_calls']
  for (const table of tables) await db.schema.dropTable(table).execute()
}
