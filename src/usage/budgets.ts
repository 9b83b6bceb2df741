/** Sets and reads the token budgets of parent keys and agents. */
import { type Actor, type AuditDeps, recordAudit } from '../identity/audit.ts'
import { lockTenant } from '../identity/keys.ts'
import type { Caller } from '../operations/operation.ts'
import {
  type BudgetKey,
  type BudgetRow,
  type CounterKey,
  deleteBudget,
  findUsed,
  insertCounter,
  listBudgets,
  lockCounter,
  setUsed,
  upsertBudget,
} from './budget-store.ts'
import { type Period, startOf } from './days.ts'
import type { Dependencies } from './dependencies.ts'
import { sumTokensSince } from './store.ts'

/** Tokens per period (UTC); an absent period has no limit. A parent key's budget also limits its agents. */
export interface Budget {
  readonly day?: number
  readonly month?: number
}

const periods = ['day', 'month'] as const satisfies readonly Period[]

/**
 * Replaces a budget. Absent periods become unlimited. Tokens already used in the current period count towards
 * the new limits.
 */
export async function setBudget(
  deps: AuditDeps &
    Pick<Dependencies, 'clock'> & { readonly usage: { flush(): Promise<void>; invalidate(): void } },
  actor: Actor,
  owner: Caller,
  budget: Budget,
): Promise<void> {
  await deps.usage.flush()
  await deps.db.transaction().execute((trx) => writeBudget({ ...deps, db: trx }, actor, owner, budget))
  deps.usage.invalidate()
}

/**
 * Like `setBudget`, in the caller's transaction. The caller must flush the usage tracker first and invalidate
 * it afterwards.
 */
export async function writeBudget(
  deps: AuditDeps & Pick<Dependencies, 'clock'>,
  actor: Actor,
  owner: Caller,
  budget: Budget,
): Promise<void> {
  const key = toOwnerKey(owner)
  await lockTenant(deps, owner.tenantId)
  const known = await listBudgets(deps.db, [key])
  for (const period of periods) {
    const limit = budget[period]
    if (limit === undefined) await deleteBudget(deps.db, { ...key, period })
    else await upsertBudget(deps.db, { ...key, period, token_limit: limit })
    const isNew = !known.some((row) => row.period === period)
    if (limit !== undefined && isNew) await startCounter(deps, owner, period)
  }
  await recordAudit(deps, actor, {
    action: 'budget.set',
    target: { kind: owner.kind === 'agent' ? 'agent' : 'key', id: key.owner_id },
    tenantId: owner.tenantId,
    details: { before: toDetails(toBudget(known)), after: toDetails(budget) },
  })
}

async function startCounter(
  { db, clock }: Pick<Dependencies, 'db' | 'clock'>,
  owner: Caller,
  period: Period,
): Promise<void> {
  const key = { ...toOwnerKey(owner), period }
  const counter = counterOf(key, clock.now())
  const target = { kind: key.owner_kind, id: key.owner_id }
  await insertCounter(db, counter)
  await lockCounter(db, counter)
  await setUsed(db, counter, await sumTokensSince(db, target, owner.tenantId, counter.starts_on))
}

function toBudget(rows: readonly BudgetRow[]): Budget {
  return Object.fromEntries(rows.map(({ period, token_limit }) => [period, token_limit]))
}

function toDetails({ day = null, month = null }: { day?: number | null; month?: number | null }) {
  return { day, month }
}

/** Limits, and tokens used in the current period; periods without a limit are absent. */
export type BudgetState = Partial<Record<Period, { readonly limit: number; readonly used: number }>>

/** Returns parent keys' budgets by id; keys without a budget have no entry. */
export async function readBudgets(
  deps: Pick<Dependencies, 'db' | 'clock'>,
  tenantIds: readonly string[],
): Promise<Map<string, BudgetState>> {
  if (tenantIds.length === 0) return new Map()
  const owners = tenantIds.map((tenantId) => toOwnerKey({ kind: 'parent', tenantId }))
  return readStates(deps, await listBudgets(deps.db, owners))
}

export async function getBudget(
  deps: Pick<Dependencies, 'db' | 'clock'>,
  owner: Caller,
): Promise<BudgetState> {
  const key = toOwnerKey(owner)
  const states = await readStates(deps, await listBudgets(deps.db, [key]))
  return states.get(key.owner_id) ?? {}
}

async function readStates(
  { db, clock }: Pick<Dependencies, 'db' | 'clock'>,
  rows: readonly BudgetRow[],
): Promise<Map<string, BudgetState>> {
  const states = new Map<string, BudgetState>()
  for (const row of rows) {
    const used = (await findUsed(db, counterOf(row, clock.now()))) ?? 0
    states.set(row.owner_id, {
      ...states.get(row.owner_id),
      [row.period]: { limit: row.token_limit, used },
    })
  }
  return states
}

export function toOwnerKey(owner: Caller): Pick<BudgetKey, 'owner_kind' | 'owner_id'> {
  return { owner_kind: owner.kind, owner_id: owner.kind === 'agent' ? owner.agentId : owner.tenantId }
}

export function counterOf({ owner_kind, owner_id, period }: BudgetKey, ms: number): CounterKey {
  return { owner_kind, owner_id, period, starts_on: startOf(period, ms) }
}
