/** The machine's own clocks, for whoever runs the service in earnest. */
import { performance } from 'node:perf_hooks'
import { setTimeout as wait } from 'node:timers/promises'
import type { Clock } from './lib/clock.ts'

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  async wait(ms, signal) {
    try {
      await wait(ms, undefined, signal === undefined ? {} : { signal })
    } catch {
      throw signal?.reason
    }
  },
}
