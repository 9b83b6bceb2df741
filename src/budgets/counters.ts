/** Starts the counters of new budgets, and keeps counters when usage and agents move to another key. */
import type { Database } from '../db/database.ts'
import {
  type BudgetRow,
  type CounterRow,
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
