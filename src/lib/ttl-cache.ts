/** A cache of database look-ups with a short lifetime, so that changes by other processes take effect soon. */
import { LRUCache } from 'lru-cache'
import type { Clock } from './clock.ts'

/** `max` bounds the number of values; `keepMs` returns the lifetime of one. */
export function createTtlCache<V>(
  clock: Pick<Clock, 'monotonic'>,
  { max, keepMs }: { max: number; keepMs: (value: V) => number },
) {
  const entries = new LRUCache<string, { value: V; untilMs: number }>({
    // `max` would allocate memory for all entries at once; `maxSize` does not.
    maxSize: max,
    sizeCalculation: () => 1,
  })
  let generation = 0
  return {
    async get(key: string, load: () => Promise<V>): Promise<V> {
      const known = entries.get(key)
      if (known !== undefined && known.untilMs > clock.monotonic()) return known.value
      const generationBefore = generation
      const value = await load()
      // A value loaded before an invalidation is stale and must not be cached after it.
      if (generation === generationBefore) {
        entries.set(key, { value, untilMs: clock.monotonic() + keepMs(value) })
      }
      return value
    },
    invalidate(): void {
      generation += 1
      entries.clear()
    },
  }
}
