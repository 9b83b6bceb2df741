/** PostgreSQL as what all replicas count in and talk through, where there is no Redis. */
import type { Database } from '../../db/database.ts'
import type { PostgresAccess } from '../../db/postgres.ts'
import { within } from '../../lib/timeout.ts'
import type { CommonStore } from '../coordination-store.ts'
import type { Quota, WindowCount } from '../rate-limiter.ts'
import { Listener } from './listener.ts'
import {
  addSlots,
  countHits,
  countReplicas,
  deleteReplica,
  deleteUnused,
  insertOwners,
  insertReplica,
  insertWindows,
  notify,
  renewReplica,
  takeSlot,
} from './store.ts'

/** The longest that anybody waits for an answer, as for a connection: the database has more to do than this. */
const ANSWER_WITHIN_MS = 2_000
const CHANNEL = 'parley'
const SWEEP_EVERY_BEATS = 60
/** Rows that are missing are made; they may be swept before they are used. */
const TRIES = 5

/** The counts are rows of `db`; what is told needs a connection of its own. */
export function openPostgresStore(db: Database, postgres: PostgresAccess): CommonStore {
  const listener = new Listener(postgres, CHANNEL)
  const hit = gatherHits(async (quotas, hits) => {
    const count = () => countHits(db, quotas, hits)
    const windows = await inRows(quotas, count, (missing) => insertWindows(db, missing))
    return { windows, counted: windows[0]?.counted ?? 0 }
  })
  let beats = 0

  function sweepNowAndThen(): void {
    beats += 1
    if (beats % SWEEP_EVERY_BEATS === 0) deleteUnused(db).catch(() => {})
  }

  return {
    name: 'replicas',
    hit: (quotas) => within(ANSWER_WITHIN_MS, hit(quotas)),
    async takeSlots(replica, owners) {
      const take = () => takeSlot(db, replica, owners)
      const counts = await within(
        ANSWER_WITHIN_MS,
        inRows(owners, take, (missing) => insertOwners(db, missing)),
      )
      return owners.find(({ limit }, at) => (counts[at]?.open ?? 0) >= limit)
    },
    addSlots: (replica, key, by) => within(ANSWER_WITHIN_MS, addSlots(db, replica, key, by)),
    register: ({ replica, former, open }) =>
      within(
        ANSWER_WITHIN_MS,
        db.transaction().execute(async (trx) => {
          for (const key of [...open.keys()].sort()) await addSlots(trx, replica, key, open.get(key) ?? 0)
          await insertReplica(trx, replica, former)
          return countReplicas(trx)
        }),
      ),
    async beat(replica) {
      listener.check()
      sweepNowAndThen()
      const isKnown = await within(ANSWER_WITHIN_MS, renewReplica(db, replica))
      return isKnown ? within(ANSWER_WITHIN_MS, countReplicas(db)) : undefined
    },
    leave: (replica) => within(ANSWER_WITHIN_MS, deleteReplica(db, replica)),
    send: (text) => within(ANSWER_WITHIN_MS, notify(db, CHANNEL, text)),
    listen: (hearing) => listener.open(hearing),
    isListening: () => listener.isOpen,
    close: () => listener.close(),
  }
}

/** Runs a statement over one row for each key, making those that are not there; answers in the order of the keys. */
async function inRows<K extends { readonly key: string }, R extends { readonly key: string }>(
  keys: readonly K[],
  run: () => Promise<readonly R[]>,
  insert: (missing: readonly K[]) => Promise<void>,
): Promise<readonly R[]> {
  for (let tries = 0; tries < TRIES; tries++) {
    const rows = new Map((await run()).map((row) => [row.key, row]))
    const missing = keys.filter(({ key }) => !rows.has(key))
    if (missing.length === 0) return keys.map(({ key }) => rows.get(key) as R)
    await insert(missing)
  }
  throw new Error('rows go as soon as they are made')
}

/** What many hits came to: each window as it was, and how many of the hits it and all others had room for. */
export interface CountedHits {
  readonly windows: readonly { readonly before: number; readonly leftMs: number }[]
  readonly counted: number
}

interface Waiting {
  resolve(counts: readonly WindowCount[]): void
  reject(error: unknown): void
}

/** Counts one hit in each window, or in none; `count` does that for many at once, and is called for one crowd at a time. */
export function gatherHits(
  count: (quotas: readonly Quota[], hits: number) => Promise<CountedHits>,
): (quotas: readonly Quota[]) => Promise<readonly WindowCount[]> {
  const crowds = new Map<string, Waiting[]>()

  async function send(name: string, quotas: readonly Quota[], waiting: Waiting[]): Promise<void> {
    while (waiting.length > 0) {
      const crowd = waiting.splice(0)
      try {
        const { windows, counted } = await count(quotas, crowd.length)
        for (const [place, { resolve }] of crowd.entries()) {
          // Those for whom there was no room are told what the windows would have been with them.
          const hits = Math.min(place, counted) + 1
          resolve(windows.map(({ before, leftMs }) => ({ count: before + hits, leftMs })))
        }
      } catch (error) {
        for (const { reject } of crowd) reject(error)
      }
    }
    crowds.delete(name)
  }

  return (quotas) =>
    new Promise((resolve, reject) => {
      const name = JSON.stringify(quotas)
      const waiting = crowds.get(name)
      if (waiting !== undefined) return void waiting.push({ resolve, reject })
      const first = [{ resolve, reject }]
      crowds.set(name, first)
      void send(name, quotas, first)
    })
}
