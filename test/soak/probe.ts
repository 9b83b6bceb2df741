/**
 * Samples the server from inside. It is loaded before the server's own code with `--import`, and reports over the
 * IPC channel the memory in use after a forced collection and the event loop lag. Forced collections do not count
 * as lag.
 */
import { createHistogram } from 'node:perf_hooks'
import type { ProbeCommand, Sample } from './server.ts'

/** The sampling interval of the event loop; on time counts as 0. */
const EVERY_MS = 10

/** Microseconds plus 1, because a histogram cannot contain 0. */
const lag = createHistogram()
const ownLag = createHistogram()
let last = look()

setInterval(() => {
  const now = look()
  const lateUs = Math.max(0, now.wallUs - last.wallUs - EVERY_MS * 1e3)
  lag.record(1 + Math.round(lateUs))
  // The process cannot have delayed itself for longer than its own CPU time; other programs caused the rest.
  ownLag.record(1 + Math.round(Math.min(lateUs, now.cpuUs - last.cpuUs)))
  last = now
}, EVERY_MS).unref()

process.on('message', (command: ProbeCommand) => {
  if (command === 'sample') process.send?.(takeSample())
  else for (const histogram of [lag, ownLag]) histogram.reset()
})
// The channel must not keep the server running.
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
    lagP99Ms: lag.percentile(99) / 1e3,
    lagMaxMs: lag.max / 1e3,
    ownLagP99Ms: ownLag.percentile(99) / 1e3,
  }
}
