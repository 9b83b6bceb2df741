/** Creates the table for prices that administrators set, and an index of the days with unpriced calls. */
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('price_overrides')
    .addColumn('provider', 'text', (column) => column.notNull())
    .addColumn('model', 'text', (column) => column.notNull())
    .addColumn('entry', 'text', (column) => column.notNull())
    .addColumn('updated_by', 'text', (column) => column.notNull())
    .addColumn('updated_at', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint('price_overrides_key', ['provider', 'model'])
    .execute()
  await db.schema
    .createIndex('usage_days_unpriced')
    .on('usage_days')
    .columns(['day', 'provider', 'model', 'unpriced'])
    .where(sql.ref('unpriced'), '>', sql.lit(0))
    .execute()
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await db.schema.dropIndex('usage_days_unpriced').execute()
  await db.schema.dropTable('price_overrides').execute()
}
