/** Connects an installation's replicas, which share rate limits, stream limits and a message bus. */

import type { Config } from '../config/config.ts'
import type { PostgresAccess } from '../db/database.ts'
import type { Clock } from '../lib/clock.ts'
import { newId } from '../lib/ids.ts'
import { type Bus, createStoreBus, localBus } from './bus.ts'
import type { CoordinationStore, CoordinationStoreName } from './coordination-store.ts'
import type { Dependencies } from './dependencies.ts'
import {
  createMemoryRateLimiter,
  createMemoryStreamLimiter,
  listLimited,
  once,
  type Quota,
  type RateLimiter,
  type StreamLimiter,
  toHit,
  tooManyStreams,
} from './limits.ts'
import { Membership } from './membership.ts'

export interface Replicas {
  readonly bus: Bus
  readonly limiter: RateLimiter
  readonly streams: StreamLimiter
  /** The coordination store's state for `/readyz`; empty without a store. */
  health(): { readonly [Name in CoordinationStoreName]?: 'up' | 'down' }
  close(): Promise<void>
}

const NAME_LENGTH = 16

/**
 * Uses Redis if configured; otherwise PostgreSQL, if it is the database. Starts even if the store is
 * unavailable, and then enforces a share of the limits.
 */
export async function openReplicas(
  config: Pick<Config, 'redisUrl' | 'timings'>,
  postgres: PostgresAccess | undefined,
  deps: Dependencies,
): Promise<Replicas> {
  const { redisUrl, timings } = config
  if (redisUrl !== undefined) {
    const { openRedisStore } = await import('./redis/redis.ts')
    const streamsKeptMs = 2 * (timings.streamMaxMs + timings.backendFirstEventMs)
    return coordinateThrough(await openRedisStore(redisUrl, streamsKeptMs), deps)
  }
  if (postgres === undefined)
    return {
      bus: localBus,
      limiter: createMemoryRateLimiter(deps.clock),
      streams: createMemoryStreamLimiter(),
      health: () => ({}),
      async close() {},
    }
  const { openPostgresStore } = await import('./postgres/postgres.ts')
  return coordinateThrough(openPostgresStore(deps.db, postgres), deps)
}

async function coordinateThrough(store: CoordinationStore, deps: Dependencies): Promise<Replicas> {
  const membership = new Membership(store, deps)
  const send = async (text: string) => (await membership.ask(() => store.send(text))) !== undefined
  const bus = createStoreBus(newId('', NAME_LENGTH, deps.random), send, deps.log)
  await Promise.all([membership.start(bus.reportLost), store.subscribe(bus.subscriber)])
  return {
    bus,
    limiter: createSharedLimiter(membership, deps.clock),
    streams: createSharedStreamLimiter(membership),
    health() {
      return { [store.name]: membership.isAlone || !store.isSubscribed() ? 'down' : 'up' }
    },
    async close() {
      await membership.close()
      await store.close()
    },
  }
}

function createSharedLimiter(membership: Membership, clock: Pick<Clock, 'now' | 'monotonic'>): RateLimiter {
  const local = createMemoryRateLimiter(clock)
  const toShare = ({ key, limit }: Quota): Quota => ({ key, limit: membership.shareOf(limit) })
  return {
    async hit(quotas, cost = 1) {
      const counted = await membership.ask((store) => store.hit(quotas, cost))
      if (counted !== undefined) return toHit(quotas, counted.answer, clock.now())
      const [first, ...others] = quotas
      return local.hit([toShare(first), ...others.map(toShare)], cost)
    },
  }
}

function createSharedStreamLimiter(membership: Membership): StreamLimiter {
  const { open } = membership

  async function adjust(replica: string, keys: readonly string[], by: 1 | -1): Promise<void> {
    await Promise.all(keys.map((key) => membership.ask((store) => store.adjustStreams(replica, key, by))))
  }

  return {
    async acquire(quotas) {
      const limited = listLimited(quotas)
      if (limited.length === 0) return () => {}
      const { replica } = membership
      const counted = await membership.ask((store) => store.acquireStream(replica, limited))
      const full =
        counted === undefined
          ? limited.find(({ key, limit }) => open.countOf(key) >= membership.shareOf(limit))
          : counted.answer
      if (full !== undefined) throw tooManyStreams(full)
      const keys = limited.map(({ key }) => key)
      open.add(keys, 1)
      // Counts the stream again, because the replica registered under a new name during the request, and the
      // store dropped the old name's counts.
      if (counted !== undefined && replica !== membership.replica) await adjust(membership.replica, keys, 1)
      return once(() => {
        open.add(keys, -1)
        return adjust(membership.replica, keys, -1)
      })
    },
  }
}
