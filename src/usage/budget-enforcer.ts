/** Keeps calls within their budgets: tokens are held back before a call and settled after it, safe across processes. */

import { unixSeconds } from '../lib/clock.ts'
import { ServiceError } from '../lib/errors.ts'
import { newId } from '../lib/ids.ts'
import { createTtlCache } from '../lib/ttl-cache.ts'
import {
  addToCounter,
  type BudgetRow,
  type CounterKey,
  findUsed,
  giveBack,
  holdBack,
  insertCounter,
  insertReservations,
  listBudgets,
  listExpired,
  lockCounter,
} from './budget-store.ts'
import { counterOf, toBudgetKey, toOwnerKey } from './budgets.ts'
import { secondsLeft } from './days.ts'
import type { Dependencies } from './dependencies.ts'

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

type KeeperDeps = Pick<Dependencies, 'config' | 'db' | 'clock' | 'random'>

const memory = { max: 20_000, keepMs: () => 2_000 }
/** A call may last as long as its deadlines allow, and a little more. */
const GRACE_MS = 60_000
/** Expired reservations that one transaction sweeps. */
const SWEPT_AT_ONCE = 500
/** A longer wait is not told: nobody holds a request back for days. */
const LONGEST_RETRY_AFTER_SECONDS = 86_400

/** Gives back what calls that never ended held; answers how many reservations those were. */
export async function sweepReservations({ db, clock }: Pick<Dependencies, 'db' | 'clock'>): Promise<number> {
  return db.transaction().execute(async (trx) => {
    const expired = await listExpired(trx, unixSeconds(clock), SWEPT_AT_ONCE)
    // In the order in which calls lock the same counters.
    for (const row of expired.toSorted(byCounter)) {
      await lockCounter(trx, toCounterKey(row))
      await giveBack(trx, row.id, toCounterKey(row))
    }
    return expired.length
  })
}

/** A keeper over one database; other processes' budgets count two seconds later. */
export function createBudgetKeeper(deps: KeeperDeps): BudgetKeeper {
  const { db, clock, random, config } = deps
  const remembered = createTtlCache<readonly BudgetRow[]>(clock, memory)
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
        await addToCounter(trx, counter, { used, reserved: 0 })
        await giveBack(trx, id, counter)
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
    forget: () => remembered.invalidate(),
  }
}

/** Says when the budget is there again, where that is known: what only calls under way hold may be back any moment. */
async function spent(
  db: Dependencies['db'],
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

function byCounter(one: CounterKey, other: CounterKey): number {
  const [first, second] = [one, other].map((key) => Object.values(toCounterKey(key)).join(' ')) as [
    string,
    string,
  ]
  return first < second ? -1 : 1
}

function toCounterKey({ owner_kind, owner_id, period, starts_on }: CounterKey): CounterKey {
  return { owner_kind, owner_id, period, starts_on }
}
