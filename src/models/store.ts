/** Reads and writes the providers and prices that administrators have set. */
import type { Selectable } from 'kysely'
import type { Database } from '../db/database.ts'
import type { PriceOverrideTable, ProviderTable } from '../db/tables.ts'

export type ProviderRow = Selectable<ProviderTable>

/** Lists the stored providers, oldest first. */
export function listProviderRows(db: Database): Promise<ProviderRow[]> {
  return db.selectFrom('providers').selectAll().orderBy('created_at').orderBy('name').execute()
}

export function findProviderRow(db: Database, name: string): Promise<ProviderRow | undefined> {
  return db.selectFrom('providers').selectAll().where('name', '=', name).executeTakeFirst()
}

/** Inserts a provider; returns false if a provider with this name exists. */
export async function insertProviderRow(db: Database, row: ProviderRow): Promise<boolean> {
  const { numInsertedOrUpdatedRows: count } = await db
    .insertInto('providers')
    .values(row)
    .onConflict((conflict) => conflict.doNothing())
    .executeTakeFirstOrThrow()
  return count === 1n
}

/** Writes a provider unless it was changed after `revision`, and returns whether it was written. */
export async function updateProviderRow(
  db: Database,
  revision: string,
  { name, ...row }: Omit<ProviderRow, 'created_at'>,
): Promise<boolean> {
  const { numUpdatedRows: count } = await db
    .updateTable('providers')
    .set(row)
    .where('name', '=', name)
    .where('revision', '=', revision)
    .executeTakeFirstOrThrow()
  return count === 1n
}

export function deleteProviderRow(db: Database, name: string): Promise<ProviderRow | undefined> {
  return db.deleteFrom('providers').where('name', '=', name).returningAll().executeTakeFirst()
}

export type PriceOverrideRow = Selectable<PriceOverrideTable>

/** Lists the overrides of all models, sorted by provider and model. */
export function listOverrideRows(db: Database): Promise<PriceOverrideRow[]> {
  return db.selectFrom('price_overrides').selectAll().orderBy('provider').orderBy('model').execute()
}

export function findOverrideRow(
  db: Database,
  provider: string,
  model: string,
): Promise<PriceOverrideRow | undefined> {
  return db
    .selectFrom('price_overrides')
    .selectAll()
    .where('provider', '=', provider)
    .where('model', '=', model)
    .executeTakeFirst()
}

export async function countOverrideRows(db: Database): Promise<number> {
  const { count } = await db
    .selectFrom('price_overrides')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .executeTakeFirstOrThrow()
  return Number(count)
}

/** Inserts or replaces a model's override. */
export async function writeOverrideRow(
  db: Database,
  { provider, model, ...row }: PriceOverrideRow,
): Promise<void> {
  await db
    .insertInto('price_overrides')
    .values({ provider, model, ...row })
    .onConflict((conflict) => conflict.columns(['provider', 'model']).doUpdateSet(row))
    .execute()
}

export function deleteOverrideRow(
  db: Database,
  provider: string,
  model: string,
): Promise<PriceOverrideRow | undefined> {
  return db
    .deleteFrom('price_overrides')
    .where('provider', '=', provider)
    .where('model', '=', model)
    .returningAll()
    .executeTakeFirst()
}
