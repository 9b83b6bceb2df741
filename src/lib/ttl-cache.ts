/** Remembers what was looked up in the database for a moment, so that other processes' changes still count soon. */
import { LRUCache } from 'lru-cache'
import type { Clock } from './clock.ts'

export interface Remembered<V> {
  /** What is remembered under that key, else what `load` brings. */
  get(key: string, load: () => Promise<V>): Promise<V>
  /** Forgets everything: called after every change to what is remembered. */
  forget(): void
}

/** Remembers at most `max` values, each for as many milliseconds as `keepMs` says of it. */
export function createRemembered<V>(
  clock: Pick<Clock, 'monotonic'>,
  { max, keepMs }: { max: number; keepMs: (value: V) => number },
): Remembered<V> {
  const entries = new LRUCache<string, { value: V; untilMs: number }>({
    // With a number alone it would take the room for all of them now.
    maxSize: max,
    sizeCalculation: () => 1,
  })
  let generation = 0
  return {
    async get(key, load) {
      const known = entries.get(key)
      if (known !== undefined && known.untilMs > clock.monotonic()) return known.value
      const generationBefore = generation
      const value = await load()
      // A change that came while the query ran must not be covered up by what the query saw.
      if (generation === generationBefore) {
        entries.set(key, { value, untilMs: clock.monotonic() + keepMs(value) })
      }
      return value
    },
    forget() {
      generation += 1
      entries.clear()
    },
  }
}
