/** Reads and writes budgets, their counters for each period, and the reservations of calls under way. */
import { PostgresAdapter, type Selectable } from 'kysely'
import type { Database } from '../db/database.ts'
import type {
  BudgetCounterTable,
  BudgetEntryTable,
  BudgetReservationTable,
  BudgetTable,
} from '../db/tables.ts'

export type BudgetRow = Selectable<BudgetTable>
export type CounterRow = Selectable<BudgetCounterTable>
export type ReservationRow = Selectable<BudgetReservationTable>
export type CounterKey = Pick<CounterRow, 'budget_id' | 'subject' | 'starts_at'>

/** Lists the budgets that may apply to calls of a key or, with `agentId`, of one of its agents. */
export function listApplying(
  db: Database,
  tenantId: string,
  agentId: string | undefined,
): Promise<BudgetRow[]> {
  return db
    .selectFrom('budgets')
    .selectAll()
    .where('parent_key_id', '=', tenantId)
    .where(({ or, and }) =>
      or([
        and({ scope_kind: 'key', scope_id: tenantId }),
        ...(agentId === undefined ? [] : [and({ scope_id: agentId })]),
      ]),
    )
    .orderBy('created_at')
    .orderBy('id')
    .execute()
}

/** Lists the budgets in US dollars that refuse calls, of all tenants. */
export function listEnforcingUsd(db: Database): Promise<BudgetRow[]> {
  return db
    .selectFrom('budgets')
    .selectAll()
    .where('unit', '=', 'usd')
    .where('mode', '=', 'enforce')
    .orderBy('created_at')
    .orderBy('id')
    .execute()
}

export function listByIds(db: Database, ids: readonly string[]): Promise<BudgetRow[]> {
  return db.selectFrom('budgets').selectAll().where('id', 'in', ids).execute()
}

/** Inserts counters at zero, unless they exist. */
export async function insertCounters(
  db: Database,
  counters: readonly (CounterKey & Pick<CounterRow, 'ends_at'>)[],
): Promise<void> {
  const rows = counters.map(({ budget_id, subject, starts_at, ends_at }) => ({
    ...{ budget_id, subject, starts_at, ends_at },
    ...{ booked: 0, reserved: 0, refused: 0, warned: '' },
  }))
  await db
    .insertInto('budget_counters')
    .values(rows)
    .onConflict((conflict) => conflict.doNothing())
    .execute()
}

/**
 * Locks counters until the end of the transaction, in the order of their keys, which prevents deadlocks.
 * May lock others of the same budgets. Missing counters are omitted.
 */
export function lockCounters(trx: Database, keys: readonly CounterKey[]): Promise<CounterRow[]> {
  const query = trx
    .selectFrom('budget_counters')
    .selectAll()
    .where('budget_id', 'in', distinct(keys.map(({ budget_id }) => budget_id)))
    .where('subject', 'in', distinct(keys.map(({ subject }) => subject)))
    .where('starts_at', 'in', distinct(keys.map(({ starts_at }) => starts_at)))
    .orderBy('budget_id')
    .orderBy('subject')
    .orderBy('starts_at')
  // SQLite's transactions already exclude each other.
  const isPostgres = trx.getExecutor().adapter instanceof PostgresAdapter
  return (isPostgres ? query.forUpdate() : query).execute()
}

export function distinct<T>(values: readonly T[]): T[] {
  return [...new Set(values)]
}

export async function updateCounter(
  trx: Database,
  { budget_id, subject, starts_at, booked, reserved, refused, warned }: CounterRow,
): Promise<void> {
  await trx
    .updateTable('budget_counters')
    .set({ booked, reserved, refused, warned })
    .where('budget_id', '=', budget_id)
    .where('subject', '=', subject)
    .where('starts_at', '=', starts_at)
    .execute()
}

/** Sums the grants of budgets that have not expired, by budget, subject and period. */
export function sumGrants(
  trx: Database,
  budgetIds: readonly string[],
  nowSeconds: number,
): Promise<(CounterKey & { amount: number })[]> {
  return trx
    .selectFrom('budget_entries')
    .select(['budget_id', 'subject', 'starts_at'])
    .select(({ fn }) => fn.sum<number>('amount').as('amount'))
    .where('budget_id', 'in', budgetIds)
    .where('kind', '=', 'grant')
    .where(({ or, eb }) => or([eb('expires_at', 'is', null), eb('expires_at', '>', nowSeconds)]))
    .groupBy(['budget_id', 'subject', 'starts_at'])
    .execute()
}

export async function insertReservations(trx: Database, rows: readonly ReservationRow[]): Promise<void> {
  if (rows.length > 0) await trx.insertInto('budget_reservations').values(rows).execute()
}

export async function listReservations(db: Database, ids: readonly string[]): Promise<ReservationRow[]> {
  if (ids.length === 0) return []
  return db.selectFrom('budget_reservations').selectAll().where('id', 'in', ids).execute()
}

export async function deleteReservations(trx: Database, ids: readonly string[]): Promise<void> {
  if (ids.length > 0) await trx.deleteFrom('budget_reservations').where('id', 'in', ids).execute()
}

/** Marks reservations as booked; their calls may still settle them. */
export async function markBooked(trx: Database, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return
  await trx.updateTable('budget_reservations').set({ process_id: '' }).where('id', 'in', ids).execute()
}

export async function renewReservations(db: Database, processId: string, expiresAt: number): Promise<void> {
  await db
    .updateTable('budget_reservations')
    .set({ expires_at: expiresAt })
    .where('process_id', '=', processId)
    .execute()
}

/** Lists reservations whose processes did not renew them, oldest first. */
export function listExpired(db: Database, nowSeconds: number, limit: number): Promise<ReservationRow[]> {
  return db
    .selectFrom('budget_reservations')
    .selectAll()
    .where('expires_at', '<=', nowSeconds)
    .where('process_id', '!=', '')
    .orderBy('expires_at')
    .orderBy('id')
    .limit(limit)
    .execute()
}

/** Makes the reservations of all other processes expire; call it only if no other process can exist. */
export async function expireOthers(db: Database, processId: string): Promise<void> {
  await db
    .updateTable('budget_reservations')
    .set({ expires_at: 0 })
    .where('process_id', 'not in', ['', processId])
    .execute()
}

/** Deletes booked reservations whose calls can no longer settle them. */
export async function deleteBookedBefore(db: Database, expiresBefore: number): Promise<void> {
  await db
    .deleteFrom('budget_reservations')
    .where('process_id', '=', '')
    .where('expires_at', '<', expiresBefore)
    .execute()
}

/** Deletes up to `limit` counters of visitors and conversations, or of keys and agents, that ended before. */
export async function deleteCountersBefore(
  db: Database,
  of: 'subjects' | 'scopes',
  endsBefore: number,
  limit: number,
): Promise<number> {
  const old = await db
    .selectFrom('budget_counters')
    .select(['budget_id', 'subject', 'starts_at'])
    .where('ends_at', '<', endsBefore)
    .where('subject', of === 'subjects' ? '!=' : '=', '')
    .where('reserved', '=', 0)
    .orderBy('ends_at')
    .limit(limit)
    .execute()
  for (const { budget_id, subject, starts_at } of old)
    await db
      .deleteFrom('budget_counters')
      .where(({ and }) => and({ budget_id, subject, starts_at }))
      .where('reserved', '=', 0)
      .execute()
  return old.length
}

export function listOfScopes(db: Database, scopeIds: readonly string[]): Promise<BudgetRow[]> {
  return db
    .selectFrom('budgets')
    .selectAll()
    .where('scope_id', 'in', scopeIds)
    .orderBy('created_at')
    .orderBy('id')
    .execute()
}

export async function insertBudget(db: Database, row: BudgetRow): Promise<void> {
  await db.insertInto('budgets').values(row).execute()
}

/** Deletes a budget with its counters, reservations, grants and adjustments. */
export async function deleteBudget(db: Database, id: string): Promise<void> {
  await db.deleteFrom('budgets').where('id', '=', id).execute()
}

export async function deleteBudgetsOfAgent(db: Database, agentId: string): Promise<void> {
  await db.deleteFrom('budgets').where('scope_kind', '!=', 'key').where('scope_id', '=', agentId).execute()
}

/**
 * Moves the budgets of all agents of a key to another key. Deletes the budgets of the key itself, because the
 * other key has its own.
 */
export async function moveBudgets(trx: Database, fromTenantId: string, toTenantId: string): Promise<void> {
  await trx
    .deleteFrom('budgets')
    .where('parent_key_id', '=', fromTenantId)
    .where('scope_kind', '=', 'key')
    .execute()
  await trx
    .updateTable('budgets')
    .set({ parent_key_id: toTenantId })
    .where('parent_key_id', '=', fromTenantId)
    .execute()
  // The webhooks that wait for these events move too.
  await trx
    .updateTable('budget_events')
    .set({ parent_key_id: toTenantId })
    .where('parent_key_id', '=', fromTenantId)
    .execute()
}

export function findCounter(db: Database, key: CounterKey): Promise<CounterRow | undefined> {
  return db
    .selectFrom('budget_counters')
    .selectAll()
    .where('budget_id', '=', key.budget_id)
    .where('subject', '=', key.subject)
    .where('starts_at', '=', key.starts_at)
    .executeTakeFirst()
}

/** Lists the counters of a key's own budgets. */
export function listKeyCounters(
  db: Database,
  tenantId: string,
): Promise<(CounterRow & Pick<BudgetRow, 'unit'>)[]> {
  return db
    .selectFrom('budget_counters')
    .innerJoin('budgets', 'budgets.id', 'budget_counters.budget_id')
    .selectAll('budget_counters')
    .select('unit')
    .where('scope_kind', '=', 'key')
    .where('scope_id', '=', tenantId)
    .execute()
}

export type EntryRow = Selectable<BudgetEntryTable>

/** Finds a budget of a tenant. */
export function findBudget(db: Database, tenantId: string, id: string): Promise<BudgetRow | undefined> {
  return db
    .selectFrom('budgets')
    .selectAll()
    .where('id', '=', id)
    .where('parent_key_id', '=', tenantId)
    .executeTakeFirst()
}

export function listOfTenant(db: Database, tenantId: string): Promise<BudgetRow[]> {
  return db
    .selectFrom('budgets')
    .selectAll()
    .where('parent_key_id', '=', tenantId)
    .orderBy('created_at')
    .orderBy('id')
    .execute()
}

/** Lists budgets of a tenant after `last`, oldest first. */
export function listBudgetPage(
  db: Database,
  tenantId: string,
  {
    scope,
    agent,
  }: { readonly scope?: BudgetRow['scope_kind'] | undefined; readonly agent?: string | undefined },
  limit: number,
  last: BudgetRow | undefined,
): Promise<BudgetRow[]> {
  let query = db
    .selectFrom('budgets')
    .selectAll()
    .where('parent_key_id', '=', tenantId)
    .orderBy('created_at')
    .orderBy('id')
    .limit(limit)
  if (scope !== undefined) query = query.where('scope_kind', '=', scope)
  if (agent !== undefined) query = query.where('scope_kind', '!=', 'key').where('scope_id', '=', agent)
  if (last !== undefined)
    query = query.where(({ eb, or, and }) =>
      or([
        eb('created_at', '>', last.created_at),
        and([eb('created_at', '=', last.created_at), eb('id', '>', last.id)]),
      ]),
    )
  return query.execute()
}

export async function updateBudget(
  db: Database,
  { id, amount, warn_at, mode, managed_by }: BudgetRow,
): Promise<void> {
  await db.updateTable('budgets').set({ amount, warn_at, mode, managed_by }).where('id', '=', id).execute()
}

/** Makes concurrent grants wait for each other. */
export async function lockBudget(trx: Database, id: string): Promise<void> {
  await trx
    .updateTable('budgets')
    .set((row) => ({ id: row.ref('id') }))
    .where('id', '=', id)
    .execute()
}

export async function insertEntry(trx: Database, row: EntryRow): Promise<void> {
  await trx.insertInto('budget_entries').values(row).execute()
}

export async function countGrants(
  trx: Database,
  { budget_id, subject, starts_at }: CounterKey,
): Promise<number> {
  const { count } = await trx
    .selectFrom('budget_entries')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('budget_id', '=', budget_id)
    .where('subject', '=', subject)
    .where('starts_at', '=', starts_at)
    .where('kind', '=', 'grant')
    .executeTakeFirstOrThrow()
  return Number(count)
}

export function listSubjectCounters(
  db: Database,
  budgetId: string,
  startsAt: number,
  order: 'asc' | 'desc',
  limit: number,
): Promise<CounterRow[]> {
  return db
    .selectFrom('budget_counters')
    .selectAll()
    .where('budget_id', '=', budgetId)
    .where('starts_at', '=', startsAt)
    .where('subject', '!=', '')
    .orderBy('booked', order)
    .orderBy('subject')
    .limit(limit)
    .execute()
}
