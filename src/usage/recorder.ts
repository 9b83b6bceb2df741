/** Writes the records of calls, their daily totals and their prices in batches. */
import { LRUCache } from 'lru-cache'
import type { Database } from '../db/database.ts'
import { type Clock, unixSeconds } from '../lib/clock.ts'
import { renderEntry } from '../prices/lookup.ts'
import type { PriceInForce } from '../prices/rates.ts'
import type { Dependencies } from './dependencies.ts'
import { addDay, createCallWriter, sumByDay, type UsageCallRow } from './store.ts'

/** Maximum time between flushes; `FLUSH_AT` waiting calls trigger an earlier one. */
const FLUSH_EVERY_MS = 1_000
const FLUSH_AT = 500
/** Maximum number of calls per transaction. */
const BATCH = 1_000
/**
 * Maximum number of calls held in memory while the database is not writable. Further calls are lost, and the
 * server logs how many.
 */
const MOST_WAITING = 100_000

/** Writes calls in batches, usually within a second, independently of requests. */
export function createUsageRecorder({ db, log, clock }: Pick<Dependencies, 'db' | 'log' | 'clock'>) {
  const insertCalls = createCallWriter(db)
  const snapshots = createSnapshotWriter(clock)
  let waiting: UsageCallRow[] = []
  let lost = 0
  let timer: NodeJS.Timeout | undefined
  let flushing: Promise<void> | undefined

  async function write(calls: readonly UsageCallRow[]): Promise<void> {
    const added = await db.transaction().execute(async (trx) => {
      const written = await snapshots.write(trx)
      await insertCalls(trx, calls)
      for (const sums of sumByDay(calls)) await addDay(trx, sums)
      return written
    })
    snapshots.forget(added)
  }

  async function writeAll(): Promise<void> {
    clearTimeout(timer)
    timer = undefined
    while (waiting.length > 0) {
      const batch = waiting.slice(0, BATCH)
      waiting = waiting.slice(BATCH)
      try {
        await write(batch)
      } catch (error) {
        waiting = [...batch, ...waiting]
        throw error
      }
    }
    if (lost > 0) log.error({ calls: lost }, 'usage records lost: too many waiting calls')
    lost = 0
  }

  /**
   * Writes every call recorded so far. @throws the database's error; the calls are kept and written later.
   */
  async function flush(): Promise<void> {
    flushing ??= writeAll().finally(() => {
      flushing = undefined
    })
    return flushing
  }

  async function flushOrRetry(): Promise<void> {
    await flush().catch((error) => {
      log.warn({ err: error, waiting: waiting.length }, 'could not write usage; will retry')
      timer ??= startTimer()
    })
  }

  function startTimer(): NodeJS.Timeout {
    return setTimeout(() => void flushOrRetry(), FLUSH_EVERY_MS).unref()
  }

  return {
    record(call: UsageCallRow, price: PriceInForce | undefined): void {
      if (price !== undefined) snapshots.add(price)
      if (waiting.length >= MOST_WAITING) {
        lost += 1
        return
      }
      waiting.push(call)
      timer ??= startTimer()
      if (waiting.length === FLUSH_AT) void flushOrRetry()
    },
    flush,
  }
}

/** Maximum number of ids of stored prices to remember. */
const MOST_SNAPSHOTS = 10_000

/** Stores each price once, before the first call that names it. */
function createSnapshotWriter(clock: Pick<Clock, 'now'>) {
  const waiting = new Map<string, PriceInForce>()
  const stored = new LRUCache<string, true>({ max: MOST_SNAPSHOTS })
  return {
    add(price: PriceInForce): void {
      if (!stored.has(price.id)) waiting.set(price.id, price)
    },
    async write(trx: Database): Promise<readonly PriceInForce[]> {
      const prices = [...waiting.values()]
      if (prices.length === 0) return prices
      const first_used_at = unixSeconds(clock)
      // Uses the same order in all processes, which prevents deadlocks.
      const rows = prices
        .toSorted((one, other) => (one.id < other.id ? -1 : 1))
        .map(({ id, entry }) => ({ id, entry: renderEntry(entry), first_used_at }))
      await trx
        .insertInto('price_snapshots')
        .values(rows)
        .onConflict((conflict) => conflict.column('id').doNothing())
        .execute()
      return prices
    },
    forget(prices: readonly PriceInForce[]): void {
      for (const { id } of prices) {
        waiting.delete(id)
        stored.set(id, true)
      }
    },
  }
}
