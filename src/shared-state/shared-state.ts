/** What the replicas of an installation count together and tell each other. */
import type { Clock } from '../lib/clock.ts'
import { type Bus, loneBus } from './bus.ts'
import type { SharedStoreName } from './common-store.ts'
import { createMemoryRateLimiter, type RateLimiter } from './limiter.ts'
import { createStreamSlots, type StreamSlots } from './stream-slots.ts'

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
