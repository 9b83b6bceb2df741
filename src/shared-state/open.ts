/** Opens what replicas share where the settings say. */
import type { Config } from '../config.ts'
import type { PostgresAccess } from '../db/postgres.ts'
import type { Deps } from '../deps.ts'
import { newId } from '../keys/format.ts'
import type { CommonStore } from './common-store.ts'
import { Presence } from './presence.ts'
import { createSharedLimiter, createSharedSlots } from './shared-counts.ts'
import { createLoneState, type SharedState } from './shared-state.ts'
import { createStoreBus } from './store-bus.ts'

const NAME_LENGTH = 16

type ShareDeps = Pick<Deps, 'db' | 'clock' | 'random' | 'log'>

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
