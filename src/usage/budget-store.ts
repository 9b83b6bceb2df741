/** Rows of budgets, of what was used of them, and of what is held back for calls under way. */
import type { Selectable } from 'kysely'
import type { Database } from '../db/database.ts'
import type { BudgetReservationTable, BudgetTable } from '../db/tables.ts'

export type BudgetRow = Selectable<BudgetTable>
export type ReservationRow = Selectable<BudgetReservationTable>

/** Which budget. */
export type BudgetKey = Pick<BudgetRow, 'owner_kind' | 'owner_id' | 'period'>

/** Which budget in which of its periods. */
export type CounterKey = Pick<ReservationRow, 'owner_kind' | 'owner_id' | 'period' | 'starts_on'>

type Owner = Pick<BudgetRow, 'owner_kind' | 'owner_id'>

/** More tokens than anybody uses: what a budget bounds once it is taken away. */
const NO_LIMIT = Number.MAX_SAFE_INTEGER

/** The budgets of all these owners. */
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

/** Makes sure the counter is there; one that is stays as it is. */
export async function insertCounter(db: Database, key: CounterKey): Promise<void> {
  await db
    .insertInto('budget_counters')
    .values({ ...key, used: 0, reserved: 0 })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
}

/** Every period of the owner's budgets that something was counted in. */
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

/** Holds tokens back if the budget is not used up; false when it is. One statement, so that calls side by side cannot both win. */
export async function holdBack(db: Database, key: CounterKey, tokens: number): Promise<boolean> {
  const { owner_kind, owner_id, period } = key
  const held = await db
    .updateTable('budget_counters')
    .set((row) => ({ reserved: row('reserved', '+', tokens) }))
    .where(({ and }) => and({ ...key }))
    .where((row) =>
      row(
        row('used', '+', row.ref('reserved')),
        '<',
        row.fn.coalesce(
          row
            .selectFrom('budgets')
            .select('token_limit')
            .where(({ and }) => and({ owner_kind, owner_id, period })),
          row.val(NO_LIMIT),
        ),
      ),
    )
    .returning('reserved')
    .executeTakeFirst()
  return held !== undefined
}

export async function insertReservations(db: Database, rows: readonly ReservationRow[]): Promise<void> {
  await db.insertInto('budget_reservations').values(rows).execute()
}

/** Nobody else changes the counter until the transaction is over. */
export function lockCounter(trx: Database, key: CounterKey): Promise<void> {
  return addToCounter(trx, key, { used: 0, reserved: 0 })
}

/**
 * Takes the call's reservation out of the counter; nothing happens when it has expired before. The counter is locked first: whoever
 * took the reservation first, and another the counter, would wait for each other.
 */
export async function giveBack(db: Database, id: string, key: CounterKey): Promise<void> {
  const gone = await db
    .deleteFrom('budget_reservations')
    .where(({ and }) => and({ id, ...key }))
    .returning('tokens')
    .executeTakeFirst()
  if (gone !== undefined) await addToCounter(db, key, { used: 0, reserved: -gone.tokens })
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

/** Reservations of calls that never ended. */
export async function listExpired(db: Database, now: number, limit: number): Promise<ReservationRow[]> {
  return db
    .selectFrom('budget_reservations')
    .selectAll()
    .where('expires_at', '<=', now)
    .orderBy('expires_at')
    .limit(limit)
    .execute()
}
