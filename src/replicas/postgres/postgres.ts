/** Implements the coordination store on PostgreSQL, for installations without Redis. */
import type { Database, PostgresAccess } from '../../db/database.ts'
import { within } from '../../lib/timeout.ts'
import type { CoordinationStore } from '../coordination-store.ts'
import type { Quota, WindowCount } from '../limits.ts'
import { Listener } from './listener.ts'
import {
  acquireStream,
  adjustStreams,
  type CountedWindow,
  countHits,
  countReplicas,
  deleteReplica,
  deleteUnused,
  insertReplica,
  insertStreamCounts,
  insertWindows,
  notify,
  renewReplica,
} from './store.ts'

/** Longer than Redis's timeout, because the database also has other work. */
const QUERY_TIMEOUT_MS = 2_000
const CHANNEL = 'parley'
const SWEEP_EVERY_BEATS = 60
/** A sweep may delete inserted rows before they are used, so the statement is repeated. */
const MAX_ATTEMPTS = 5

/** Opens the store. It counts in `db`, and uses a separate connection for messages. */
export function openPostgresStore(db: Database, postgres: PostgresAccess): CoordinationStore {
  const listener = new Listener(postgres, CHANNEL)
  const hit = coalesceHits((quotas, hits, cost) => {
    const count = () => countHits(db, quotas, hits, cost)
    return withRows(quotas, count, (missing) => insertWindows(db, missing))
  })
  let beats = 0

  return {
    name: 'replicas',
    hit: (quotas, cost) => within(QUERY_TIMEOUT_MS, hit(quotas, cost)),
    async acquireStream(replica, quotas) {
      const acquire = () => acquireStream(db, replica, quotas)
      const counts = await within(
        QUERY_TIMEOUT_MS,
        withRows(quotas, acquire, (missing) => insertStreamCounts(db, missing)),
      )
      return quotas.find(({ limit }, at) => (counts[at]?.open ?? 0) >= limit)
    },
    adjustStreams: (replica, key, by) => within(QUERY_TIMEOUT_MS, adjustStreams(db, replica, key, by)),
    register: ({ replica, former, open }) =>
      within(
        QUERY_TIMEOUT_MS,
        db.transaction().execute(async (trx) => {
          for (const key of [...open.keys()].sort())
            await adjustStreams(trx, replica, key, open.get(key) ?? 0)
          await insertReplica(trx, replica, former)
          return countReplicas(trx)
        }),
      ),
    async beat(replica) {
      listener.check()
      beats += 1
      if (beats % SWEEP_EVERY_BEATS === 0) deleteUnused(db).catch(() => {})
      const isKnown = await within(QUERY_TIMEOUT_MS, renewReplica(db, replica))
      return isKnown ? within(QUERY_TIMEOUT_MS, countReplicas(db)) : undefined
    },
    leave: (replica) => within(QUERY_TIMEOUT_MS, deleteReplica(db, replica)),
    send: (text) => within(QUERY_TIMEOUT_MS, notify(db, CHANNEL, text)),
    subscribe: (subscriber) => listener.open(subscriber),
    isSubscribed: () => listener.isOpen,
    close: () => listener.close(),
  }
}

/**
 * Runs a statement over one row per key, after inserting missing rows; returns the rows in the order of
 * `keys`.
 */
async function withRows<K extends { readonly key: string }, R extends { readonly key: string }>(
  keys: readonly K[],
  run: () => Promise<readonly R[]>,
  insert: (missing: readonly K[]) => Promise<void>,
): Promise<readonly R[]> {
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const rows = new Map((await run()).map((row) => [row.key, row]))
    const missing = keys.filter(({ key }) => !rows.has(key))
    if (missing.length === 0) return keys.map(({ key }) => rows.get(key) as R)
    await insert(missing)
  }
  throw new Error('coordination rows were deleted before they could be used')
}

type Waiting = PromiseWithResolvers<readonly WindowCount[]>

/**
 * Coalesces hits on the same quotas with the same cost. While one batch is counted, later hits wait and form
 * the next batch.
 */
function coalesceHits(
  count: (quotas: readonly Quota[], hits: number, cost: number) => Promise<readonly CountedWindow[]>,
): (quotas: readonly Quota[], cost: number) => Promise<readonly WindowCount[]> {
  const waitingByQuotas = new Map<string, Waiting[]>()

  async function run(
    name: string,
    quotas: readonly Quota[],
    cost: number,
    waiting: Waiting[],
  ): Promise<void> {
    while (waiting.length > 0) {
      const batch = waiting.splice(0)
      try {
        const windows = await count(quotas, batch.length, cost)
        const counted = windows[0]?.counted ?? 0
        for (const [position, { resolve }] of batch.entries()) {
          // For a rejected hit, reports the count that the window would have had if the hit had been counted.
          const hits = Math.min(position, counted) + 1
          resolve(windows.map(({ before, leftMs }) => ({ count: before + hits * cost, leftMs })))
        }
      } catch (error) {
        for (const { reject } of batch) reject(error)
      }
    }
    waitingByQuotas.delete(name)
  }

  return (quotas, cost) => {
    const hit: Waiting = Promise.withResolvers()
    const name = JSON.stringify([cost, quotas])
    const waiting = waitingByQuotas.get(name) ?? []
    waiting.push(hit)
    if (waitingByQuotas.has(name)) return hit.promise
    waitingByQuotas.set(name, waiting)
    void run(name, quotas, cost, waiting)
    return hit.promise
  }
}
