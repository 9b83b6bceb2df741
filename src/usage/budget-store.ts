/** Reads and writes budgets, their counters for each period, and the tokens reserved for active calls. */
import type { Selectable } from 'kysely'
import type { Database } from '../db/database.ts'
import type { BudgetReservationTable, BudgetTable } from '../db/tables.ts'

export type BudgetRow = Selectable<BudgetTable>
export type ReservationRow = Selectable<BudgetReservationTable>

export type BudgetKey = Pick<BudgetRow, 'owner_kind' | 'owner_id' | 'period'>

export type CounterKey = Pick<ReservationRow, 'owner_kind' | 'owner_id' | 'period' | 'starts_on'>

type Owner = Pick<BudgetRow, 'owner_kind' | 'owner_id'>

export async function listBudgets(db: Database, owners: readonly Owner[]): Promise<BudgetRow[]> {
  return db
    .selectFrom('budgets')
    .selectAll()
    .where(({ or, and }) => or(owners.map(({ owner_kind, owner_id }) => and({ owner_kind, owner_id }))))
    .orderBy('owner_kind')
    .orderBy('period')
    .execute()
}

export async function upsertBudget(db: Database, row: BudgetRow): Promise<void> {
  await db
    .insertInto('budgets')
    .values(row)
    .onConflict((conflict) =>
      conflict
        .columns(['owner_kind', 'owner_id', 'period'])
        .doUpdateSet({ token_limit: (row) => row.ref('excluded.token_limit') }),
    )
    .execute()
}

export async function deleteBudget(db: Database, key: BudgetKey): Promise<void> {
  await db
    .deleteFrom('budgets')
    .where(({ and }) => and({ ...key }))
    .execute()
}

/** Inserts a counter at zero, unless it exists. */
export async function insertCounter(db: Database, key: CounterKey): Promise<void> {
  await db
    .insertInto('budget_counters')
    .values({ ...key, used: 0, reserved: 0 })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
}

export async function listCounters(db: Database, { owner_kind, owner_id }: Owner): Promise<CounterKey[]> {
  return db
    .selectFrom('budget_counters')
    .select(['owner_kind', 'owner_id', 'period', 'starts_on'])
    .where(({ and }) => and({ owner_kind, owner_id }))
    .execute()
}

export async function findUsed(db: Database, key: CounterKey): Promise<number | undefined> {
  const row = await db
    .selectFrom('budget_counters')
    .select('used')
    .where(({ and }) => and({ ...key }))
    .executeTakeFirst()
  return row?.used
}

export async function setUsed(db: Database, key: CounterKey, used: number): Promise<void> {
  await db
    .updateTable('budget_counters')
    .set({ used })
    .where(({ and }) => and({ ...key }))
    .execute()
}

/** Locks a counter until the end of the transaction, and returns its used and reserved tokens. */
export async function readLocked(
  trx: Database,
  key: CounterKey,
): Promise<{ readonly used: number; readonly reserved: number }> {
  return trx
    .updateTable('budget_counters')
    .set((row) => ({ reserved: row.ref('reserved') }))
    .where(({ and }) => and({ ...key }))
    .returning(['used', 'reserved'])
    .executeTakeFirstOrThrow()
}

export function lockCounter(trx: Database, key: CounterKey): Promise<void> {
  return addToCounter(trx, key, { used: 0, reserved: 0 })
}

/**
 * Deletes a reservation if it still exists. The caller must lock the counter first, to prevent a deadlock.
 */
export async function releaseReservation(db: Database, id: string, key: CounterKey): Promise<void> {
  const deleted = await db
    .deleteFrom('budget_reservations')
    .where(({ and }) => and({ id, ...key }))
    .returning('tokens')
    .executeTakeFirst()
  if (deleted !== undefined) await addToCounter(db, key, { used: 0, reserved: -deleted.tokens })
}

export async function addToCounter(
  db: Database,
  key: CounterKey,
  change: { readonly used: number; readonly reserved: number },
): Promise<void> {
  await db
    .updateTable('budget_counters')
    .set((row) => ({
      used: row('used', '+', change.used),
      reserved: row('reserved', '+', change.reserved),
    }))
    .where(({ and }) => and({ ...key }))
    .execute()
}

export async function listExpired(db: Database, now: number, limit: number): Promise<ReservationRow[]> {
  return db
    .selectFrom('budget_reservations')
    .selectAll()
    .where('expires_at', '<=', now)
    .orderBy('expires_at')
    .limit(limit)
    .execute()
}
