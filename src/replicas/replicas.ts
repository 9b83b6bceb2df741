/** What the replicas of an installation count together and tell each other. */

import type { Config } from '../config/config.ts'
import type { PostgresAccess } from '../db/postgres.ts'
import type { Clock } from '../lib/clock.ts'
import { newId } from '../lib/ids.ts'
import { type Bus, createStoreBus, loneBus } from './bus.ts'
import type { CommonStore, SharedStoreName } from './coordination-store.ts'
import type { Dependencies } from './dependencies.ts'
import { Presence } from './membership.ts'
import { createMemoryRateLimiter, type Quota, type RateLimiter, toHit } from './rate-limiter.ts'
import { createStreamSlots, listLimited, noneLeft, once, type StreamSlots } from './stream-limiter.ts'

export interface SharedState {
  readonly bus: Bus
  readonly limiter: RateLimiter
  readonly streams: StreamSlots
  /** How what replicas share is doing, for `/readyz`; nothing where there is only one. */
  health(): { readonly [Name in SharedStoreName]?: 'up' | 'down' }
  /** Tells the others that this replica is gone. */
  close(): Promise<void>
}

/** For the only replica there is. */
export function createLoneState(clock: Pick<Clock, 'now' | 'monotonic'>): SharedState {
  return {
    bus: loneBus,
    limiter: createMemoryRateLimiter(clock),
    streams: createStreamSlots(),
    health: () => ({}),
    async close() {},
  }
}

const NAME_LENGTH = 16

type ShareDeps = Pick<Dependencies, 'db' | 'clock' | 'random' | 'log'>

/**
 * Redis where there is one, else PostgreSQL where that is the database, else this process. It never fails: a store that is away is
 * gone without until it is there. Design: 5.
 */
export async function openSharedState(
  config: Pick<Config, 'redisUrl' | 'timings'>,
  postgres: PostgresAccess | undefined,
  deps: ShareDeps,
): Promise<SharedState> {
  const { redisUrl, timings } = config
  if (redisUrl !== undefined) {
    const { openRedisStore } = await import('./redis/redis.ts')
    const slotsKeptMs = 2 * (timings.streamMaxMs + timings.backendFirstEventMs)
    return shareThrough(await openRedisStore(redisUrl, slotsKeptMs), deps)
  }
  if (postgres === undefined) return createLoneState(deps.clock)
  const { openPostgresStore } = await import('./postgres/postgres.ts')
  return shareThrough(openPostgresStore(deps.db, postgres), deps)
}

async function shareThrough(store: CommonStore, deps: ShareDeps): Promise<SharedState> {
  const presence = new Presence(store, deps)
  const send = async (text: string) => (await presence.ask(() => store.send(text))) !== undefined
  const bus = createStoreBus(newId('', NAME_LENGTH, deps.random), send, deps.log)
  await Promise.all([presence.start(bus.makeUpForLost), store.listen(bus.hearing)])
  return {
    bus,
    limiter: createSharedLimiter(presence, deps.clock),
    streams: createSharedSlots(presence),
    health() {
      return { [store.name]: presence.isAway || !store.isListening() ? 'down' : 'up' }
    },
    async close() {
      await presence.close()
      await store.close()
    },
  }
}

/** A limiter over all replicas. */
export function createSharedLimiter(
  presence: Presence,
  clock: Pick<Clock, 'now' | 'monotonic'>,
): RateLimiter {
  const alone = createMemoryRateLimiter(clock)
  const toShare = ({ key, limit }: Quota): Quota => ({ key, limit: presence.shareOf(limit) })
  return {
    async hit(quotas) {
      const counted = await presence.ask((store) => store.hit(quotas))
      if (counted !== undefined) return toHit(quotas, counted.answer, clock.now())
      const [first, ...others] = quotas
      return alone.hit([toShare(first), ...others.map(toShare)])
    },
  }
}

/** Slots over all replicas. */
export function createSharedSlots(presence: Presence): StreamSlots {
  const { open } = presence

  function addTo(replica: string, keys: readonly string[], by: 1 | -1): void {
    for (const key of keys) void presence.ask((store) => store.addSlots(replica, key, by))
  }

  return {
    async take(owners) {
      const limited = listLimited(owners)
      if (limited.length === 0) return () => {}
      const { replica } = presence
      const taken = await presence.ask((store) => store.takeSlots(replica, limited))
      const full =
        taken === undefined
          ? limited.find(({ key, limit }) => open.countOf(key) >= presence.shareOf(limit))
          : taken.answer
      if (full !== undefined) throw noneLeft(full)
      const keys = limited.map(({ key }) => key)
      open.add(keys, 1)
      // The store has forgotten that name, and these slots with it.
      if (taken !== undefined && replica !== presence.replica) addTo(presence.replica, keys, 1)
      return once(() => {
        open.add(keys, -1)
        addTo(presence.replica, keys, -1)
      })
    },
  }
}
