/** Budgets of tokens, of a parent key or an agent: how they are set, and what is used of them. */
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

/** Whose budget: a parent key's, which bounds its agents too, or one agent's. */
export type BudgetOwner = Caller

/** Tokens per period, in UTC; a period that is left out has no bound. */
export interface Budget {
  readonly day?: number
  readonly month?: number
}

const periods = ['day', 'month'] as const satisfies readonly Period[]

/**
 * Sets the owner's budget as a whole: a period that is left out is unbounded from then on. A new bound counts what the period has
 * used already. Decision: 6 (Model policy, `budget`), 10 (`PUT …/keys/{id}/budget`).
 */
export async function setBudget(
  deps: AuditDeps &
    Pick<Dependencies, 'clock'> & { readonly usage: { flush(): Promise<void>; forget(): void } },
  actor: Actor,
  owner: BudgetOwner,
  budget: Budget,
): Promise<void> {
  await deps.usage.flush()
  await deps.db.transaction().execute((trx) => writeBudget({ ...deps, db: trx }, actor, owner, budget))
  deps.usage.forget()
}

/** The part of `setBudget` in the caller's transaction; the books are flushed before it, and forget after it. */
export async function writeBudget(
  deps: AuditDeps & Pick<Dependencies, 'clock'>,
  actor: Actor,
  owner: BudgetOwner,
  budget: Budget,
): Promise<void> {
  const key = toOwnerKey(owner)
  await lockTenant(deps, owner.tenantId)
  const known = await listBudgets(deps.db, [key])
  for (const period of periods) {
    const isNew = !known.some((row) => row.period === period)
    await writeBound(deps, owner, period, { limit: budget[period], isNew })
  }
  await recordAudit(deps, actor, {
    action: 'budget.set',
    target: { kind: owner.kind === 'agent' ? 'agent' : 'key', id: key.owner_id },
    tenantId: owner.tenantId,
    details: { before: toDetails(toBudget(known)), after: toDetails(budget) },
  })
}

/** One period's bound, or none; a new one starts with what its period has used. */
async function writeBound(
  { db, clock }: Pick<Dependencies, 'db' | 'clock'>,
  owner: BudgetOwner,
  period: Period,
  { limit, isNew }: { readonly limit: number | undefined; readonly isNew: boolean },
): Promise<void> {
  const key = { ...toOwnerKey(owner), period }
  if (limit === undefined) return deleteBudget(db, key)
  await upsertBudget(db, { ...key, token_limit: limit })
  if (!isNew) return
  const counter = counterOf(key, clock.now())
  const target = { kind: key.owner_kind, id: key.owner_id }
  await insertCounter(db, counter)
  await lockCounter(db, counter)
  await setUsed(db, counter, await sumTokensSince(db, target, owner.tenantId, counter.starts_on))
}

function toBudget(rows: readonly BudgetRow[]): Budget {
  return Object.fromEntries(rows.map(({ period, token_limit }) => [period, token_limit]))
}

/** A period without a bound is told too. */
function toDetails({ day = null, month = null }: { day?: number | null; month?: number | null }) {
  return { day, month }
}

/** Bounds, each with what the running period has used; a period without a bound is absent. */
export type BudgetState = Partial<Record<Period, { readonly limit: number; readonly used: number }>>

/** The budgets of parent keys, by their ids; a key without any bound is absent. */
export async function readBudgets(
  deps: Pick<Dependencies, 'db' | 'clock'>,
  tenantIds: readonly string[],
): Promise<Map<string, BudgetState>> {
  if (tenantIds.length === 0) return new Map()
  const owners = tenantIds.map((tenantId) => toOwnerKey({ kind: 'parent', tenantId }))
  return readStates(deps, await listBudgets(deps.db, owners))
}

/** The owner's budget as it stands. */
export async function getBudget(
  deps: Pick<Dependencies, 'db' | 'clock'>,
  owner: BudgetOwner,
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
    const used = (await findUsed(db, counterOf(toBudgetKey(row), clock.now()))) ?? 0
    states.set(row.owner_id, {
      ...states.get(row.owner_id),
      [row.period]: { limit: row.token_limit, used },
    })
  }
  return states
}

/** How an owner is named in the tables. */
export function toOwnerKey(owner: BudgetOwner): Pick<BudgetKey, 'owner_kind' | 'owner_id'> {
  return { owner_kind: owner.kind, owner_id: owner.kind === 'agent' ? owner.agentId : owner.tenantId }
}

/** Which budget a row is of, or belongs to. */
export function toBudgetKey({ owner_kind, owner_id, period }: BudgetKey): BudgetKey {
  return { owner_kind, owner_id, period }
}

/** The counter of the period that moment lies in. */
export function counterOf(key: BudgetKey, ms: number): CounterKey {
  return { ...key, starts_on: startOf(key.period, ms) }
}
