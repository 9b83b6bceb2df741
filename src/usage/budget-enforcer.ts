/** Enforces token budgets across processes: reserves tokens before a call, and settles them after it. */

import { unixSeconds } from '../lib/clock.ts'
import { ServiceError } from '../lib/errors.ts'
import { newId } from '../lib/ids.ts'
import { createTtlCache } from '../lib/ttl-cache.ts'
import {
  addToCounter,
  type BudgetRow,
  type CounterKey,
  findUsed,
  insertCounter,
  listBudgets,
  listExpired,
  lockCounter,
  releaseReservation,
  reserveTokens,
} from './budget-store.ts'
import { counterOf, toOwnerKey } from './budgets.ts'
import { secondsLeft } from './days.ts'
import type { Dependencies } from './dependencies.ts'

interface Reservation {
  /** Replaces the reserved tokens with the used tokens; must be called once. */
  settle(tokens: number): Promise<void>
}

/** Milliseconds for which a reservation remains after a call's longest deadline. */
const GRACE_MS = 60_000
const SWEEP_BATCH = 500
/** Maximum `Retry-After`, because longer waits are not useful to clients. */
const LONGEST_RETRY_AFTER_SECONDS = 86_400

/** Releases expired reservations, whose calls ended without settling them; returns their number. */
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

/** Creates the enforcer. Budget changes by other processes take effect within two seconds. */
export function createBudgetEnforcer(deps: Pick<Dependencies, 'config' | 'db' | 'clock' | 'random'>) {
  const { db, clock, random, config } = deps
  const remembered = createTtlCache<readonly BudgetRow[]>(clock, { max: 20_000, keepMs: () => 2_000 })
  const { backendFirstEventMs, streamMaxMs, backendTotalMs } = config.timings
  const longestMs = backendFirstEventMs + Math.max(streamMaxMs, backendTotalMs) + GRACE_MS

  async function reserveIn(budgets: readonly BudgetRow[], tokens: number): Promise<Reservation> {
    const now = clock.now()
    const id = newId('', 20, random)
    const counters = budgets.map((budget) => counterOf(budget, now))
    await db.transaction().execute(async (trx) => {
      for (const counter of counters) {
        await insertCounter(trx, counter)
        if (await reserveTokens(trx, counter, tokens)) continue
        throw await budgetSpent(trx, counter, budgets, now)
      }
      const expires_at = Math.ceil((now + longestMs) / 1000)
      const rows = counters.map((counter) => ({ ...counter, id, tokens, expires_at }))
      await trx.insertInto('budget_reservations').values(rows).execute()
    })
    return { settle: (used) => settle(id, counters, used) }
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
     * Returns undefined if no budget applies; this result is cached for two seconds. @throws ServiceError
     * `insufficient_quota`
     */
    async reserve(
      { tenantId, agentId }: { readonly tenantId: string; readonly agentId: string | undefined },
      estimateTokens: () => number,
    ): Promise<Reservation | undefined> {
      const budgets = await remembered.get(`${tenantId}/${agentId ?? ''}`, () =>
        listBudgets(db, ownersOf(tenantId, agentId)),
      )
      if (budgets.length === 0) return undefined
      const tokens = estimateTokens()
      try {
        return await reserveIn(budgets, tokens)
      } catch (thrown) {
        // Tries again if the sweep has released expired reservations.
        if (!(thrown instanceof ServiceError) || (await sweepReservations(deps)) === 0) throw thrown
        return reserveIn(budgets, tokens)
      }
    },
    invalidate: () => remembered.invalidate(),
  }
}

/**
 * Sets `Retry-After` only if used tokens alone exhaust the budget, because reserved tokens may be released at
 * any time.
 */
async function budgetSpent(
  db: Dependencies['db'],
  counter: CounterKey,
  budgets: readonly BudgetRow[],
  now: number,
): Promise<ServiceError> {
  const { owner_kind, owner_id, period } = counter
  const whose = owner_kind === 'agent' ? 'this agent' : 'this key'
  const message = `The token budget of ${whose} for this ${period} is used up.`
  const isSame = (row: BudgetRow) =>
    row.owner_kind === owner_kind && row.owner_id === owner_id && row.period === period
  const limit = budgets.find(isSame)?.token_limit ?? 0
  const waitSeconds = secondsLeft(period, now)
  const isUsedUp = ((await findUsed(db, counter)) ?? 0) >= limit
  const hasRetryTime = isUsedUp && waitSeconds <= LONGEST_RETRY_AFTER_SECONDS
  return new ServiceError(
    'insufficient_quota',
    message,
    hasRetryTime ? { retryAfterSeconds: waitSeconds } : {},
  )
}

function ownersOf(tenantId: string, agentId: string | undefined) {
  const parent = toOwnerKey({ kind: 'parent', tenantId })
  return agentId === undefined ? [parent] : [parent, toOwnerKey({ kind: 'agent', tenantId, agentId })]
}

function toCounterKey({ owner_kind, owner_id, period, starts_on }: CounterKey): CounterKey {
  return { owner_kind, owner_id, period, starts_on }
}
