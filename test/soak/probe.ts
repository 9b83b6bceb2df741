/**
 * Loaded into the server before its own code (`--import`): tells, when it is asked over the channel, what memory is in use after a
 * collection, and how late the event loop has been. The collection is ours, so it is not counted as lateness.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { Sample, Word } from './server.ts'

/** The loop is looked at so often; being there on time counts as 0. */
const EVERY_MS = 10

const lateness = monitorEventLoopDelay({ resolution: EVERY_MS })
lateness.enable()

process.on('message', (word: Word) => {
  if (word === 'forget lateness') lateness.reset()
  else process.send?.(takeSample())
})
// Whoever asks must not be what the server stays for.
process.channel?.unref()

function takeSample(): Sample {
  lateness.disable()
  globalThis.gc?.({ type: 'major', execution: 'sync', flavor: 'last-resort' })
  const { rss, heapUsed, external } = process.memoryUsage()
  lateness.enable()
  return {
    residentMb: rss / 1024 ** 2,
    liveMb: (heapUsed + external) / 1024 ** 2,
    latenessP99Ms: toLatenessMs(lateness.percentile(99)),
    latenessMaxMs: toLatenessMs(lateness.max),
  }
}

function toLatenessMs(delayNs: number): number {
  return Math.max(0, delayNs / 1e6 - EVERY_MS)
}
