/** Caches database lookups briefly, so that changes by other processes take effect soon. */
import { LRUCache } from 'lru-cache'
import type { Clock } from './clock.ts'

/** `max` limits the number of values; `keepMs` returns a value's lifetime in milliseconds. */
export function createTtlCache<V>(
  clock: Pick<Clock, 'monotonic'>,
  { max, keepMs }: { max: number; keepMs: (value: V) => number },
) {
  const entries = new LRUCache<string, { value: V; untilMs: number }>({
    // `maxSize` allocates memory as entries are added; `max` would allocate all memory in advance.
    maxSize: max,
    sizeCalculation: () => 1,
  })
  let generation = 0

  async function loadInto(key: string, load: () => Promise<V>): Promise<V> {
    const generationBefore = generation
    const value = await load()
    // Does not cache a value that was loaded before an invalidation, because it may be stale.
    if (generation === generationBefore) {
      entries.set(key, { value, untilMs: clock.monotonic() + keepMs(value) })
    }
    return value
  }

  return {
    /** Returns a cached value without a promise, which is faster; every request needs several values. */
    get(key: string, load: () => Promise<V>): V | Promise<V> {
      const known = entries.get(key)
      if (known !== undefined && known.untilMs > clock.monotonic()) return known.value
      return loadInto(key, load)
    },
    invalidate(): void {
      generation += 1
      entries.clear()
    },
  }
}
