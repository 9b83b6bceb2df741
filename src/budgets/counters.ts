/** Starts and reads the counters of budgets, and keeps counters when usage and agents move to another key. */
import type { Database } from '../db/database.ts'
import {
  type BudgetRow,
  type CounterKey,
  type CounterRow,
  distinct,
  insertCounters,
  listKeyCounters,
  lockCounters,
  updateCounter,
} from './budget-store.ts'
import type { Dependencies, SpentBefore, UsedAmounts } from './dependencies.ts'
import type { FindPeriod } from './periods.ts'

const DAY_SECONDS = 86_400

/**
 * Counts what the budget's scope has used on all UTC days that overlap the current period. The usage of
 * single visitors and conversations is not known.
 */
export async function startCounter(
  deps: Pick<Dependencies, 'db' | 'clock'> & {
    readonly usage: Pick<SpentBefore, 'sumSpent'>
    readonly budgets: { readonly findPeriod: FindPeriod }
  },
  budget: BudgetRow,
): Promise<void> {
  const { db, clock, usage, budgets } = deps
  if (budget.scope_kind !== 'key' && budget.scope_kind !== 'agent') return
  const { startsAt: starts_at, endsAt: ends_at } = budgets.findPeriod(budget.period, clock.now())
  const key = { budget_id: budget.id, subject: '', starts_at }
  await insertCounters(db, [{ ...key, ends_at }])
  const [counter] = await lockCounters(db, [key])
  const agentId = budget.scope_kind === 'agent' ? budget.scope_id : undefined
  const used = await usage.sumSpent(db, { tenantId: budget.parent_key_id, agentId }, starts_at)
  await updateCounter(db, { ...(counter as CounterRow), booked: used[budget.unit] })
}

/** Books usage of other keys that has been moved to this key, in the caller's transaction. */
export async function bookMovedUsage(
  trx: Database,
  tenantId: string,
  days: readonly (UsedAmounts & { readonly day: string })[],
): Promise<void> {
  const counters = await listKeyCounters(trx, tenantId)
  if (counters.length === 0) return
  const unitOf = new Map(counters.map(({ budget_id, unit }) => [budget_id, unit]))
  for (const counter of await lockCounters(trx, counters)) {
    const unit = unitOf.get(counter.budget_id) ?? 'tokens'
    const isWithin = ({ day }: { readonly day: string }) => {
      const from = Date.parse(day) / 1000
      return from + DAY_SECONDS > counter.starts_at && from < (counter.ends_at ?? Number.POSITIVE_INFINITY)
    }
    const moved = days.filter(isWithin).reduce((sum, used) => sum + used[unit], 0)
    if (moved > 0) await updateCounter(trx, { ...counter, booked: counter.booked + moved })
  }
}

/** The booked and reserved amount of a budget for its subject in a period, and its current grants. */
interface CounterAmounts extends CounterKey {
  readonly used: bigint
  readonly granted: bigint
}

/** Reads counters without locking them. May return others of the same budgets; missing counters are omitted. */
export async function readCounters(
  db: Database,
  keys: readonly CounterKey[],
  nowSeconds: number,
): Promise<CounterAmounts[]> {
  const rows = await db
    .selectFrom('budget_counters')
    .select(['budget_id', 'subject', 'starts_at', 'booked', 'reserved'])
    .select(({ selectFrom }) =>
      selectFrom('budget_entries')
        .select(({ fn }) => fn.sum<number | string | null>('amount').as('sum'))
        .whereRef('budget_entries.budget_id', '=', 'budget_counters.budget_id')
        .whereRef('budget_entries.subject', '=', 'budget_counters.subject')
        .whereRef('budget_entries.starts_at', '=', 'budget_counters.starts_at')
        .where('kind', '=', 'grant')
        .where(({ or, eb }) => or([eb('expires_at', 'is', null), eb('expires_at', '>', nowSeconds)]))
        .as('granted'),
    )
    .where('budget_id', 'in', distinct(keys.map(({ budget_id }) => budget_id)))
    .where('subject', 'in', distinct(keys.map(({ subject }) => subject)))
    .where('starts_at', 'in', distinct(keys.map(({ starts_at }) => starts_at)))
    .execute()
  return rows.map(({ booked, reserved, granted, ...key }) => ({
    ...key,
    used: BigInt(booked) + BigInt(reserved),
    granted: BigInt(granted ?? 0),
  }))
}
