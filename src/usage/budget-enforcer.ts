/**
 * Enforces token budgets across processes: reserves tokens before each request to a provider, and settles
 * them after it.
 */

import { unixSeconds } from '../lib/clock.ts'
import { ServiceError } from '../lib/errors.ts'
import { newId } from '../lib/ids.ts'
import { createTtlCache } from '../lib/ttl-cache.ts'
import {
  addToCounter,
  type BudgetRow,
  type CounterKey,
  insertCounter,
  listBudgets,
  listExpired,
  lockCounter,
  readLocked,
  releaseReservation,
} from './budget-store.ts'
import { counterOf, toOwnerKey } from './budgets.ts'
import { secondsLeft } from './days.ts'
import type { Dependencies } from './dependencies.ts'
import { fewestTokens, type Grant, grantTokens, reservedTokens } from './grants.ts'
import { boundTokens, type Promptlike, type TokenNeed } from './token-bounds.ts'

export interface Reservation {
  readonly grant: Grant
  /** Replaces the reserved tokens with the used tokens; must be called once. */
  settle(tokens: number): Promise<void>
}

/** Limit of a counter whose budget has just been deleted. */
const NO_LIMIT = Number.MAX_SAFE_INTEGER
/** Milliseconds that a reservation outlives the longest possible call. */
const GRACE_MS = 60_000
const SWEEP_BATCH = 500
/** Errors with a longer wait have no `Retry-After`, because such a wait is not useful to clients. */
const LONGEST_RETRY_AFTER_SECONDS = 86_400

/** Releases up to 500 expired reservations, whose calls ended without settling them; returns their number. */
export async function sweepReservations({ db, clock }: Pick<Dependencies, 'db' | 'clock'>): Promise<number> {
  return db.transaction().execute(async (trx) => {
    const expired = await listExpired(trx, unixSeconds(clock), SWEEP_BATCH)
    // Locks counters in the same order as calls, which prevents deadlocks.
    const nameOf = (row: CounterKey) => Object.values(toCounterKey(row)).join(' ')
    for (const row of expired.toSorted((one, other) => (nameOf(one) < nameOf(other) ? -1 : 1))) {
      await lockCounter(trx, toCounterKey(row))
      await releaseReservation(trx, row.id, toCounterKey(row))
    }
    return expired.length
  })
}

/** Budget changes by other processes take effect within two seconds. */
export function createBudgetEnforcer(deps: Pick<Dependencies, 'config' | 'db' | 'clock' | 'random'>) {
  const { db, clock, random, config } = deps
  const remembered = createTtlCache<readonly BudgetRow[]>(clock, { max: 20_000, keepMs: () => 2_000 })
  const { backendFirstEventMs, streamMaxMs, backendTotalMs } = config.timings
  const { budgetOutputTokens } = config.limits
  const longestMs = backendFirstEventMs + Math.max(streamMaxMs, backendTotalMs) + GRACE_MS

  async function reserveIn(
    budgets: readonly BudgetRow[],
    owner: Owner,
    need: TokenNeed,
  ): Promise<Reservation> {
    const now = clock.now()
    const id = newId('', 20, random)
    const counters = budgets.map((budget) => counterOf(budget, now))
    const grant = await db.transaction().execute(async (trx) => {
      const states: CounterState[] = []
      for (const counter of counters) {
        await insertCounter(trx, counter)
        states.push({ counter, limit: NO_LIMIT, ...(await readLocked(trx, counter)) })
      }
      const current = await listBudgets(trx, ownersOf(owner))
      const limited = states.map((state) => ({ ...state, limit: findLimit(current, state.counter) }))
      const granted = grantFrom(limited, need, now)
      const tokens = reservedTokens(granted)
      for (const counter of counters) await addToCounter(trx, counter, { used: 0, reserved: tokens })
      const expires_at = Math.ceil((now + longestMs) / 1000)
      const rows = counters.map((counter) => ({ ...counter, id, tokens, expires_at }))
      await trx.insertInto('budget_reservations').values(rows).execute()
      return granted
    })
    return { grant, settle: (used) => settle(id, counters, used) }
  }

  /** @throws ServiceError `insufficient_quota` */
  function grantFrom(states: readonly CounterState[], need: TokenNeed, now: number): Grant {
    for (const state of states) {
      if (grantTokens(need, leftIn(state), budgetOutputTokens) === undefined)
        throw budgetSpent(state, need, now)
    }
    const left = Math.min(...states.map(leftIn))
    return grantTokens(need, left, budgetOutputTokens) as Grant
  }

  async function settle(id: string, counters: readonly CounterKey[], used: number): Promise<void> {
    await db.transaction().execute(async (trx) => {
      for (const counter of counters) {
        await addToCounter(trx, counter, { used, reserved: 0 })
        await releaseReservation(trx, id, counter)
      }
    })
  }

  return {
    /**
     * Reserves tokens for one request to a provider. Returns undefined if no budget applies; this result is
     * cached for two seconds. @throws ServiceError `insufficient_quota`
     */
    async reserve(owner: Owner, request: Promptlike): Promise<Reservation | undefined> {
      const budgets = await remembered.get(`${owner.tenantId}/${owner.agentId ?? ''}`, () =>
        listBudgets(db, ownersOf(owner)),
      )
      if (budgets.length === 0) return undefined
      const need = boundTokens(request, budgetOutputTokens)
      try {
        return await reserveIn(budgets, owner, need)
      } catch (thrown) {
        // Tries again if the sweep has released expired reservations.
        if (!(thrown instanceof ServiceError) || (await sweepReservations(deps)) === 0) throw thrown
        return reserveIn(budgets, owner, need)
      }
    },
    invalidate: () => remembered.invalidate(),
  }
}

interface Owner {
  readonly tenantId: string
  readonly agentId: string | undefined
}

interface CounterState {
  readonly counter: CounterKey
  readonly limit: number
  readonly used: number
  readonly reserved: number
}

function leftIn({ limit, used, reserved }: CounterState): number {
  return limit - used - reserved
}

function findLimit(budgets: readonly BudgetRow[], { owner_kind, owner_id, period }: CounterKey): number {
  const isSame = (row: BudgetRow) =>
    row.owner_kind === owner_kind && row.owner_id === owner_id && row.period === period
  return budgets.find(isSame)?.token_limit ?? NO_LIMIT
}

/**
 * Sets `Retry-After` only if waiting for the next period helps. Waiting does not help if other calls have
 * reserved the tokens, because they may release them at any time, or if the request needs more than the whole
 * budget.
 */
function budgetSpent({ counter, limit, used }: CounterState, need: TokenNeed, now: number): ServiceError {
  const { owner_kind, period } = counter
  const budget = `token budget of ${owner_kind === 'agent' ? 'this agent' : 'this key'} for this ${period}`
  const fewest = fewestTokens(need)
  if (used + fewest <= limit)
    return new ServiceError('insufficient_quota', `The rest of the ${budget} is reserved by other calls.`)
  if (used < limit && fewest > limit)
    return new ServiceError(
      'insufficient_quota',
      `The request may need more tokens than the whole ${budget}.`,
    )
  const waitSeconds = secondsLeft(period, now)
  const hasRetryTime = waitSeconds <= LONGEST_RETRY_AFTER_SECONDS
  return new ServiceError(
    'insufficient_quota',
    `The ${budget} is used up.`,
    hasRetryTime ? { retryAfterSeconds: waitSeconds } : {},
  )
}

function ownersOf({ tenantId, agentId }: Owner) {
  const parent = toOwnerKey({ kind: 'parent', tenantId })
  return agentId === undefined ? [parent] : [parent, toOwnerKey({ kind: 'agent', tenantId, agentId })]
}

function toCounterKey({ owner_kind, owner_id, period, starts_on }: CounterKey): CounterKey {
  return { owner_kind, owner_id, period, starts_on }
}
