/** Counts the event streams that are open, and those that were one too many. */
import type { StreamSlots } from '../shared-state/stream-slots.ts'
import type { Metrics } from './metrics.ts'

/** The same slots, counted. */
export function countStreams(slots: StreamSlots, metrics: Metrics): StreamSlots {
  return {
    async take(owners) {
      try {
        const giveBack = await slots.take(owners)
        metrics.openStreams.add()
        let isOpen = true
        return () => {
          if (isOpen) metrics.openStreams.add(-1)
          isOpen = false
          giveBack()
        }
      } catch (failure) {
        metrics.callLimited('streams')
        throw failure
      }
    },
  }
}
