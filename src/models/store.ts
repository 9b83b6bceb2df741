/** Reads and writes the providers that administrators have added. */
import type { Selectable } from 'kysely'
import type { Database } from '../db/database.ts'
import type { ProviderTable } from '../db/tables.ts'

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
