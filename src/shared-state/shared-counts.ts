/** Limits and stream slots that hold over all replicas, and for each replica's share of them while the store is away. */
import type { Clock } from '../lib/clock.ts'
import { createMemoryRateLimiter, type Quota, type RateLimiter, toHit } from './limiter.ts'
import type { Presence } from './presence.ts'
import { listLimited, noneLeft, once, type StreamSlots } from './stream-slots.ts'

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
