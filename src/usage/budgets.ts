/** Bounds the tokens of a parent key or an agent: held back before a call, settled after it, safe across processes. */
import type { Actor } from '../audit/actor.ts'
import { type AuditDeps, recordAudit } from '../audit/audit.ts'
import { createRemembered } from '../db/remembered.ts'
import { type Deps, unixSeconds } from '../deps.ts'
import { ServiceError } from '../errors.ts'
import { newId } from '../keys/format.ts'
import type { Caller } from '../keys/schema.ts'
import {
  addToCounter,
  type BudgetKey,
  type BudgetRow,
  type CounterKey,
  deleteBudget,
  findUsed,
  giveBack,
  holdBack,
  insertCounter,
  insertReservations,
  listBudgets,
  listExpired,
  setUsed,
  upsertBudget,
} from './budget-store.ts'
import { type Period, secondsLeft, startOf } from './days.ts'
import { sumTokensSince } from './store.ts'

/** Whose budget: a parent key's, which bounds its agents too, or one agent's. */
export type BudgetOwner = Caller

/** Tokens per period, in UTC; a period that is left out has no bound. */
export interface Budget {
  readonly day?: number
  readonly month?: number
}

/** Tokens held back for one call. */
export interface Reservation {
  /** Counts what the call used instead of what was held back; to be called once. */
  settle(tokens: number): Promise<void>
}

/** Keeps the calls of a service within their budgets. */
export interface BudgetKeeper {
  /**
   * Holds tokens back in every budget that bounds the call; undefined when none does, which costs no query for two seconds.
   * @throws ServiceError `insufficient_quota`
   */
  reserve(
    call: { readonly tenantId: string; readonly agentId: string | undefined },
    estimateTokens: () => number,
  ): Promise<Reservation | undefined>
  forget(): void
}

type KeeperDeps = Pick<Deps, 'config' | 'db' | 'clock' | 'random'>

const periods = ['day', 'month'] as const satisfies readonly Period[]
const memory = { max: 20_000, keepMs: () => 2_000 }
/** A call may last as long as its deadlines allow, and a little more. */
const GRACE_MS = 60_000
/** Expired reservations that one transaction sweeps. */
const SWEPT_AT_ONCE = 500
/** A longer wait is not told: nobody holds a request back for days. */
const LONGEST_RETRY_AFTER_SECONDS = 86_400

/**
 * Sets the owner's budget as a whole: a period that is left out is unbounded from then on. A new bound counts what the period has
 * used already. Decision: 6 (Model policy, `budget`), 10 (`PUT …/keys/{id}/budget`).
 */
export async function setBudget(
  deps: AuditDeps & Pick<Deps, 'clock' | 'usage'>,
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
  deps: AuditDeps & Pick<Deps, 'clock'>,
  actor: Actor,
  owner: BudgetOwner,
  budget: Budget,
): Promise<void> {
  const key = toOwnerKey(owner)
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
  { db, clock }: Pick<Deps, 'db' | 'clock'>,
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
  deps: Pick<Deps, 'db' | 'clock'>,
  tenantIds: readonly string[],
): Promise<Map<string, BudgetState>> {
  if (tenantIds.length === 0) return new Map()
  const owners = tenantIds.map((tenantId) => toOwnerKey({ kind: 'parent', tenantId }))
  return readStates(deps, await listBudgets(deps.db, owners))
}

/** The owner's budget as it stands. */
export async function getBudget(deps: Pick<Deps, 'db' | 'clock'>, owner: BudgetOwner): Promise<BudgetState> {
  const key = toOwnerKey(owner)
  const states = await readStates(deps, await listBudgets(deps.db, [key]))
  return states.get(key.owner_id) ?? {}
}

async function readStates(
  { db, clock }: Pick<Deps, 'db' | 'clock'>,
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

/** Gives back what calls that never ended held; answers how many reservations those were. */
export async function sweepReservations({ db, clock }: Pick<Deps, 'db' | 'clock'>): Promise<number> {
  return db.transaction().execute(async (trx) => {
    const expired = await listExpired(trx, unixSeconds(clock), SWEPT_AT_ONCE)
    for (const row of expired) await giveBack(trx, row.id, toCounterKey(row))
    return expired.length
  })
}

/** A keeper over one database; other processes' budgets count two seconds later. */
export function createBudgetKeeper(deps: KeeperDeps): BudgetKeeper {
  const { db, clock, random, config } = deps
  const remembered = createRemembered<readonly BudgetRow[]>(clock, memory)
  const { backendFirstEventMs, streamMaxMs, backendTotalMs } = config.timings
  const longestMs = backendFirstEventMs + Math.max(streamMaxMs, backendTotalMs) + GRACE_MS

  async function hold(budgets: readonly BudgetRow[], tokens: number): Promise<Reservation> {
    const now = clock.now()
    const id = newId('', 20, random)
    const counters = budgets.map((budget) => counterOf(toBudgetKey(budget), now))
    await db.transaction().execute(async (trx) => {
      for (const counter of counters) {
        await insertCounter(trx, counter)
        if (await holdBack(trx, counter, tokens)) continue
        throw await spent(trx, counter, budgets, now)
      }
      const expires_at = Math.ceil((now + longestMs) / 1000)
      await insertReservations(
        trx,
        counters.map((counter) => ({ ...counter, id, tokens, expires_at })),
      )
    })
    return { settle: (used) => settle(id, counters, used) }
  }

  async function settle(id: string, counters: readonly CounterKey[], used: number): Promise<void> {
    await db.transaction().execute(async (trx) => {
      for (const counter of counters) {
        await giveBack(trx, id, counter)
        await addToCounter(trx, counter, { used, reserved: 0 })
      }
    })
  }

  return {
    async reserve({ tenantId, agentId }, estimateTokens) {
      const budgets = await remembered.get(`${tenantId}/${agentId ?? ''}`, () =>
        listBudgets(db, ownersOf(tenantId, agentId)),
      )
      if (budgets.length === 0) return undefined
      const tokens = estimateTokens()
      try {
        return await hold(budgets, tokens)
      } catch (thrown) {
        // What dead calls hold must not stand in the way of living ones.
        if (!(thrown instanceof ServiceError) || (await sweepReservations(deps)) === 0) throw thrown
        return hold(budgets, tokens)
      }
    },
    forget: () => remembered.forget(),
  }
}

/** Says when the budget is there again, where that is known: what only calls under way hold may be back any moment. */
async function spent(
  db: Deps['db'],
  counter: CounterKey,
  budgets: readonly BudgetRow[],
  now: number,
): Promise<ServiceError> {
  const { owner_kind, owner_id, period } = counter
  const whose = owner_kind === 'agent' ? 'this agent' : 'this key'
  const message = `The token budget of ${whose} for the ${period} is spent.`
  const isSame = (row: BudgetRow) =>
    row.owner_kind === owner_kind && row.owner_id === owner_id && row.period === period
  const limit = budgets.find(isSame)?.token_limit ?? 0
  const waitSeconds = secondsLeft(period, now)
  const isUsedUp = ((await findUsed(db, counter)) ?? 0) >= limit
  const isTellable = isUsedUp && waitSeconds <= LONGEST_RETRY_AFTER_SECONDS
  return new ServiceError('insufficient_quota', message, isTellable ? { retryAfterSeconds: waitSeconds } : {})
}

function ownersOf(tenantId: string, agentId: string | undefined) {
  const parent = toOwnerKey({ kind: 'parent', tenantId })
  return agentId === undefined ? [parent] : [parent, toOwnerKey({ kind: 'agent', tenantId, agentId })]
}

function toOwnerKey(owner: BudgetOwner): Pick<BudgetKey, 'owner_kind' | 'owner_id'> {
  return { owner_kind: owner.kind, owner_id: owner.kind === 'agent' ? owner.agentId : owner.tenantId }
}

function toBudgetKey({ owner_kind, owner_id, period }: BudgetKey): BudgetKey {
  return { owner_kind, owner_id, period }
}

function counterOf(key: BudgetKey, ms: number): CounterKey {
  return { ...key, starts_on: startOf(key.period, ms) }
}

function toCounterKey({ owner_kind, owner_id, period, starts_on }: CounterKey): CounterKey {
  return { owner_kind, owner_id, period, starts_on }
}
