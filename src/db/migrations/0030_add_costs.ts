/**
 * Adds columns for the costs of calls and days, and for the prices used to compute them; earlier calls have
 * none.
 */
import type { Kysely } from 'kysely'

const callTokens = ['cached_tokens', 'cache_write_tokens', 'reasoning_tokens', 'audio_tokens', 'image_tokens']
const dayCounts = ['cost', 'unpriced', 'cached_tokens', 'cache_write_tokens', 'reasoning_tokens']

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('usage_calls').addColumn('cost', 'bigint').execute()
  await db.schema.alterTable('usage_calls').addColumn('price_id', 'text').execute()
  await db.schema.alterTable('usage_calls').addColumn('rounds', 'bigint').execute()
  for (const [table, names] of [
    ['usage_calls', callTokens],
    ['usage_days', dayCounts],
  ] as const)
    for (const name of names)
      await db.schema
        .alterTable(table)
        .addColumn(name, 'bigint', (column) => column.notNull().defaultTo(0))
        .execute()
  await db.schema
    .createTable('price_snapshots')
    .addColumn('id', 'text', (column) => column.primaryKey().notNull())
    .addColumn('entry', 'text', (column) => column.notNull())
    .addColumn('first_used_at', 'bigint', (column) => column.notNull())
    .execute()
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await db.schema.dropTable('price_snapshots').execute()
  for (const name of dayCounts) await db.schema.alterTable('usage_days').dropColumn(name).execute()
  for (const name of [...callTokens, 'rounds', 'price_id', 'cost'])
    await db.schema.alterTable('usage_calls').dropColumn(name).execute()
}
