/**
 * Measures this process. prom-client's own collectors cannot be stopped, and measure from process start
 * rather than from the first scrape.
 */
import { readdir } from 'node:fs/promises'
import { constants, monitorEventLoopDelay, PerformanceObserver } from 'node:perf_hooks'
import { Counter, Histogram, type Registry } from 'prom-client'
import type { Clock } from '../lib/clock.ts'
import { registerGauge, type Sample } from './prometheus.ts'

const LAG_RESOLUTION_MS = 20
const gcPauseBuckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1]
const gcKinds = new Map<unknown, string>([
  [constants.NODE_PERFORMANCE_GC_MAJOR, 'major'],
  [constants.NODE_PERFORMANCE_GC_MINOR, 'minor'],
  [constants.NODE_PERFORMANCE_GC_INCREMENTAL, 'incremental'],
  [constants.NODE_PERFORMANCE_GC_WEAKCB, 'weakcb'],
])

/** Registers the metrics; the returned function stops measuring. */
export function registerProcessMetrics(registry: Registry, clock: Pick<Clock, 'now'>): () => void {
  registerUsage(registry, clock)
  const stopLag = registerLag(registry)
  const stopPauses = registerGcPauses(registry)
  return () => {
    stopLag()
    stopPauses()
  }
}

function registerUsage(registry: Registry, clock: Pick<Clock, 'now'>): void {
  new Counter({
    name: 'process_cpu_seconds_total',
    help: 'CPU time used, in seconds.',
    registers: [registry],
    collect() {
      const { user, system } = process.cpuUsage()
      this.reset()
      this.inc((user + system) / 1e6)
    },
  })
  const gauges = {
    process_resident_memory_bytes: ['Resident memory, in bytes.', () => process.memoryUsage.rss()],
    nodejs_heap_size_total_bytes: [
      'Size of the JavaScript heap, in bytes.',
      () => process.memoryUsage().heapTotal,
    ],
    nodejs_heap_size_used_bytes: ['JavaScript heap in use, in bytes.', () => process.memoryUsage().heapUsed],
    nodejs_external_memory_bytes: [
      'Memory outside the JavaScript heap, in bytes.',
      () => process.memoryUsage().external,
    ],
    process_open_fds: ['Open file descriptors (Linux only).', countOpenFiles],
  } as const
  for (const [name, [help, read]] of Object.entries(gauges))
    registerGauge(registry, { name, help }, async () => [[{}, await read()]])
  registerGauge(
    registry,
    {
      name: 'process_start_time_seconds',
      help: 'Start time of the process, in Unix seconds.',
      aggregator: 'min',
    },
    () => [[{}, clock.now() / 1000 - process.uptime()]],
  )
}

async function countOpenFiles(): Promise<number> {
  // Excludes the descriptor that reads this directory.
  return (await readdir('/proc/self/fd')).length - 1
}

function registerLag(registry: Registry): () => void {
  let lag: ReturnType<typeof monitorEventLoopDelay> | undefined
  let isStopped = false
  registerGauge(
    registry,
    {
      name: 'parley_event_loop_lag_seconds',
      help: 'Event loop delay since the last scrape, in seconds.',
      labelNames: ['quantile'],
      aggregator: 'max',
    },
    () => {
      if (isStopped) return []
      if (lag === undefined) {
        lag = monitorEventLoopDelay({ resolution: LAG_RESOLUTION_MS })
        lag.enable()
      }
      const { count } = lag
      const samples = [0.5, 0.99].map((quantile): Sample => {
        // Subtracts the monitor's resolution, because the monitor measures the whole time between two ticks.
        const lagNs = count === 0 ? 0 : (lag?.percentile(quantile * 100) ?? 0) - LAG_RESOLUTION_MS * 1e6
        return [{ quantile: String(quantile) }, Math.max(0, lagNs) / 1e9]
      })
      lag.reset()
      return samples
    },
  )
  return () => {
    isStopped = true
    lag?.disable()
  }
}

function registerGcPauses(registry: Registry): () => void {
  let isObserving = false
  const pauses = new Histogram({
    name: 'nodejs_gc_duration_seconds',
    help: 'Garbage collection pauses since the first scrape, in seconds.',
    labelNames: ['kind'],
    buckets: gcPauseBuckets,
    registers: [registry],
    collect() {
      if (!isObserving) observer.observe({ entryTypes: ['gc'] })
      isObserving = true
    },
  })
  const observer = new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
      const { duration, detail }: { duration: number; detail?: unknown } = entry
      const kind = gcKinds.get((detail as { readonly kind?: unknown } | undefined)?.kind)
      if (kind !== undefined) pauses.observe({ kind }, duration / 1000)
    }
  })
  return () => {
    isObserving = true
    observer.disconnect()
  }
}
