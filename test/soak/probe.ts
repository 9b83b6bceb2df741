/** Reports the memory and the event loop lag of the server process in which it runs, over IPC. */
import { createHistogram } from 'node:perf_hooks'
import type { ProbeCommand, Sample } from './server.ts'

/** The interval at which the lag is measured, in milliseconds. */
const EVERY_MS = 10

/** Lag in microseconds plus 1, because a histogram cannot record 0. */
const lag = createHistogram()
const ownLag = createHistogram()
let last = look()

setInterval(() => {
  const now = look()
  const lateUs = Math.max(0, now.wallUs - last.wallUs - EVERY_MS * 1e3)
  lag.record(1 + Math.round(lateUs))
  // The process cannot delay its timer by more than its CPU time; other programs cause the rest.
  ownLag.record(1 + Math.round(Math.min(lateUs, now.cpuUs - last.cpuUs)))
  last = now
}, EVERY_MS).unref()

process.on('message', (command: ProbeCommand) => {
  if (command === 'sample') process.send?.(takeSample())
  else for (const histogram of [lag, ownLag]) histogram.reset()
})
// Otherwise the open IPC channel would keep the process running.
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
