/** Creates the events of the thresholds that a counter crosses. */
import { newId, type Random } from '../../lib/ids.ts'
import type { BudgetRow, CounterRow } from '../budget-store.ts'
import { renderAmount } from '../schema.ts'
import { EVENT_ID_LENGTH, EVENT_PREFIX, type EventRow } from './outbox.ts'
import { crossThresholds, EXHAUSTED } from './thresholds.ts'

interface CounterChange {
  readonly budget: BudgetRow
  /** The counter before the change. */
  readonly row: CounterRow
  /** The limit with the grants. */
  readonly limit: bigint
  readonly booked: bigint
  /** Whether the budget has rejected a call in this transaction because it is used up. */
  readonly isExhausted: boolean
}

/** Returns the counter's new value of `warned` and the events to store in the same transaction. */
export function reportThresholds(
  { budget, row, limit, booked, isExhausted }: CounterChange,
  { random, nowSeconds }: { readonly random: Random; readonly nowSeconds: number },
): { readonly warned: string; readonly events: EventRow[] } {
  const { warned, crossed } = crossThresholds({
    ...{ warnAt: budget.warn_at, warned: row.warned, limit },
    ...{ bookedBefore: BigInt(row.booked), booked, isExhausted },
  })
  const events = crossed.map((threshold) => ({
    id: newId(EVENT_PREFIX, EVENT_ID_LENGTH, random),
    parent_key_id: budget.parent_key_id,
    agent_id: budget.scope_kind === 'key' ? '' : budget.scope_id,
    type: threshold === EXHAUSTED ? 'budget.exhausted' : 'budget.threshold_reached',
    body: JSON.stringify({
      budget_id: budget.id,
      scope: { type: budget.scope_kind, id: budget.scope_id },
      subject: row.subject || null,
      unit: budget.unit,
      period: budget.period,
      period_start: row.starts_at,
      limit: renderAmount(budget.amount, budget.unit),
      granted: renderAmount(Number(limit) - budget.amount, budget.unit),
      booked: renderAmount(Number(booked), budget.unit),
      threshold,
    }),
    created_at: nowSeconds,
    handed_at: null,
  }))
  return { warned, events }
}
