/** Defines the tables of the budgets module. Amounts are whole tokens or nano-dollars. */
import type { Generated } from 'kysely'

export interface BudgetTable {
  id: string
  parent_key_id: string
  scope_kind: 'key' | 'agent' | 'visitor' | 'conversation'
  /** The parent key's public id, or an agent id. */
  scope_id: string
  unit: 'tokens' | 'usd'
  period: 'day' | 'week' | 'month' | 'total'
  amount: number
  /** JSON: the percentages at which an event is sent. */
  warn_at: Generated<string>
  mode: 'enforce' | 'observe'
  managed_by: 'tenant' | 'operator'
  created_at: number
}

/** The amounts that a budget's subject has spent, and that its running calls have reserved, in one period. */
export interface BudgetCounterTable {
  budget_id: string
  /** Pseudonym of a visitor or conversation; empty for budgets of keys and agents. */
  subject: string
  starts_at: number
  /** Null for the period `total`. */
  ends_at: number | null
  booked: number
  reserved: number
  /** Number of rejected calls; in `observe` mode, the number of calls that would have been rejected. */
  refused: number
  /** JSON: the reported thresholds and the limit at that time; empty before the first one. */
  warned: Generated<string>
}

/** The maximum amount that a running call may spend; one row for each budget of the call. */
export interface BudgetReservationTable {
  id: string
  budget_id: string
  subject: string
  starts_at: number
  amount: number
  /** Empty once the reservation has expired and its amount has been booked. */
  process_id: string
  expires_at: number
}

/** Grants, which raise one period's limit, and adjustments, which correct the booked amount. */
export interface BudgetEntryTable {
  id: string
  budget_id: string
  subject: string
  starts_at: number
  kind: 'grant' | 'adjustment'
  amount: number
  reason: string
  actor: string
  created_at: number
  /** Only grants can expire. */
  expires_at: number | null
}

/** Webhook events from the last 8 days. */
export interface BudgetEventTable {
  id: string
  /** Null for an event that only the operator's webhooks receive. */
  parent_key_id: string | null
  /** Empty for an event that does not concern one agent. */
  agent_id: string
  type: string
  /** JSON: the data of the event. */
  body: string
  created_at: number
  /** Null until its deliveries are stored. */
  handed_at: number | null
}
