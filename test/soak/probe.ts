/**
 * Loaded into the server before its own code (`--import`): tells, when it is asked over the channel, what memory is in use after a
 * collection, and how late the event loop has been. The collection is ours, so it is not counted as lateness.
 */
import { createHistogram } from 'node:perf_hooks'
import type { Sample, Word } from './server.ts'

/** The loop is looked at so often; being there on time counts as 0. */
const EVERY_MS = 10

/** In microseconds, of which a histogram holds no 0. */
const lateness = createHistogram()
const ownLateness = createHistogram()
let last = look()

setInterval(() => {
  const now = look()
  const lateUs = Math.max(0, now.wallUs - last.wallUs - EVERY_MS * 1e3)
  lateness.record(1 + Math.round(lateUs))
  // It cannot have kept itself waiting for longer than it worked; the rest is what others did to it.
  ownLateness.record(1 + Math.round(Math.min(lateUs, now.cpuUs - last.cpuUs)))
  last = now
}, EVERY_MS).unref()

process.on('message', (word: Word) => {
  if (word === 'sample') process.send?.(takeSample())
  else for (const histogram of [lateness, ownLateness]) histogram.reset()
})
// Whoever asks must not be what the server stays for.
process.channel?.unref()

function look() {
  const { user, system } = process.threadCpuUsage()
  return { wallUs: performance.now() * 1e3, cpuUs: user + system }
}

function takeSample(): Sample {
  globalThis.gc?.({ type: 'major', execution: 'sync', flavor: 'last-resort' })
  const { rss, heapUsed, external } = process.memoryUsage()
  last = look()
  return {
    residentMb: rss / 1024 ** 2,
    liveMb: (heapUsed + external) / 1024 ** 2,
    latenessP99Ms: lateness.percentile(99) / 1e3,
    latenessMaxMs: lateness.max / 1e3,
    ownLatenessP99Ms: ownLateness.percentile(99) / 1e3,
  }
}
