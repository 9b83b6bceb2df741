/** Sets and reads the daily and monthly token budgets of parent keys and agents. */
import type { Database } from '../db/database.ts'
import { type Actor, type AuditDeps, recordAudit } from '../identity/audit.ts'
import { lockTenant } from '../identity/keys.ts'
import { unixSeconds } from '../lib/clock.ts'
import { newId } from '../lib/ids.ts'
import type { Caller } from '../operations/operation.ts'
import {
  type BudgetRow,
  deleteBudget,
  findCounter,
  insertBudget,
  listOfScopes,
  updateBudget,
} from './budget-store.ts'
import { startCounter } from './counters.ts'
import type { Dependencies, SpentBefore } from './dependencies.ts'
import type { FindPeriod, Period } from './periods.ts'
import { DEFAULT_WARN_AT } from './schema.ts'

/** Tokens per period; an absent period has no limit. A parent key's budget also limits its agents. */
export interface Budget {
  readonly day?: number
  readonly month?: number
}

const periods = ['day', 'month'] as const satisfies readonly Period[]
type TokenPeriod = (typeof periods)[number]

type WriteDeps = AuditDeps &
  Pick<Dependencies, 'clock'> & {
    readonly usage: SpentBefore
    readonly budgets: { readonly findPeriod: FindPeriod }
  }

/**
 * Replaces a budget. Absent periods become unlimited. Tokens already used in the current period count towards
 * the new limits.
 */
export async function setBudget(deps: WriteDeps, actor: Actor, owner: Caller, budget: Budget): Promise<void> {
  await deps.usage.flush()
  await deps.db.transaction().execute((trx) => writeBudget({ ...deps, db: trx }, actor, owner, budget))
  deps.usage.invalidate()
}

/**
 * Like `setBudget`, in the caller's transaction. The caller must flush the usage tracker first and invalidate
 * it afterwards.
 */
export async function writeBudget(
  deps: WriteDeps,
  actor: Actor,
  owner: Caller,
  budget: Budget,
): Promise<void> {
  await lockTenant(deps, owner.tenantId)
  const scope = toScope(owner)
  const known = await listTokenBudgets(deps.db, [scope.scope_id])
  for (const period of periods) {
    const amount = budget[period]
    const before = known.find((row) => row.period === period)
    if (amount === undefined) {
      if (before?.managed_by === managerOf(owner)) await deleteBudget(deps.db, before.id)
    } else if (before !== undefined)
      await updateBudget(deps.db, { ...before, amount, managed_by: managerOf(owner) })
    else await create(deps, owner, period, amount)
  }
  await recordAudit(deps, actor, {
    action: 'budget.set',
    target: { kind: owner.kind === 'agent' ? 'agent' : 'key', id: scope.scope_id },
    tenantId: owner.tenantId,
    details: { before: toDetails(toBudget(known)), after: toDetails(budget) },
  })
}

async function create(deps: WriteDeps, owner: Caller, period: TokenPeriod, amount: number): Promise<void> {
  const row: BudgetRow = {
    id: newId('bud_', 24, deps.random),
    parent_key_id: owner.tenantId,
    ...toScope(owner),
    unit: 'tokens',
    period,
    amount,
    warn_at: DEFAULT_WARN_AT,
    mode: 'enforce',
    managed_by: managerOf(owner),
    created_at: unixSeconds(deps.clock),
  }
  await insertBudget(deps.db, row)
  await startCounter(deps, row)
}

/** Only administrators may set the budget of a key. */
function managerOf({ kind }: Caller): BudgetRow['managed_by'] {
  return kind === 'agent' ? 'tenant' : 'operator'
}

function toScope(owner: Caller) {
  return owner.kind === 'agent'
    ? ({ scope_kind: 'agent', scope_id: owner.agentId } as const)
    : ({ scope_kind: 'key', scope_id: owner.tenantId } as const)
}

async function listTokenBudgets(db: Database, scopeIds: readonly string[]): Promise<BudgetRow[]> {
  const rows = await listOfScopes(db, scopeIds)
  return rows.filter(
    ({ unit, period, scope_kind }) =>
      unit === 'tokens' &&
      (scope_kind === 'key' || scope_kind === 'agent') &&
      periods.some((known) => known === period),
  )
}

function toBudget(rows: readonly BudgetRow[]): Budget {
  return Object.fromEntries(rows.map(({ period, amount }) => [period, amount]))
}

function toDetails({ day = null, month = null }: { day?: number | null; month?: number | null }) {
  return { day, month }
}

/** Limits, and tokens used in the current period; periods without a limit are absent. */
export type BudgetState = Partial<Record<TokenPeriod, { readonly limit: number; readonly used: number }>>

type ReadDeps = Pick<Dependencies, 'db' | 'clock'> & {
  readonly budgets: { readonly findPeriod: FindPeriod }
}

/** Returns parent keys' budgets by id; keys without a budget have no entry. */
export async function readBudgets(
  deps: ReadDeps,
  tenantIds: readonly string[],
): Promise<Map<string, BudgetState>> {
  if (tenantIds.length === 0) return new Map()
  return readStates(deps, await listTokenBudgets(deps.db, tenantIds))
}

export async function getBudget(deps: ReadDeps, owner: Caller): Promise<BudgetState> {
  const { scope_id: id } = toScope(owner)
  const states = await readStates(deps, await listTokenBudgets(deps.db, [id]))
  return states.get(id) ?? {}
}

async function readStates(
  { db, clock, budgets }: ReadDeps,
  rows: readonly BudgetRow[],
): Promise<Map<string, BudgetState>> {
  const states = new Map<string, BudgetState>()
  for (const row of rows) {
    const { startsAt: starts_at } = budgets.findPeriod(row.period, clock.now())
    const counter = await findCounter(db, { budget_id: row.id, subject: '', starts_at })
    states.set(row.scope_id, {
      ...states.get(row.scope_id),
      [row.period]: { limit: row.amount, used: counter?.booked ?? 0 },
    })
  }
  return states
}
