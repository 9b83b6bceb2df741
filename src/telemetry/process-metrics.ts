/** What this process takes: time, memory, files, and how long it keeps others waiting. Nothing is watched until somebody asks. */
import { readdir } from 'node:fs/promises'
import { constants, monitorEventLoopDelay, PerformanceObserver } from 'node:perf_hooks'
import type { Clock } from '../lib/clock.ts'
import { type Looked, lookUp, type Meter, pauseBounds, Spreads } from './counters.ts'

/** How often the event loop is looked at, in milliseconds. */
const LAG_RESOLUTION_MS = 20

const collections = new Map<unknown, string>([
  [constants.NODE_PERFORMANCE_GC_MAJOR, 'major'],
  [constants.NODE_PERFORMANCE_GC_MINOR, 'minor'],
  [constants.NODE_PERFORMANCE_GC_INCREMENTAL, 'incremental'],
  [constants.NODE_PERFORMANCE_GC_WEAKCB, 'weakcb'],
])

/** The numbers of the process, under the names that every Node program gives them but for the lag. */
export class ProcessMeters {
  private readonly pauses = new Spreads({
    name: 'nodejs_gc_duration_seconds',
    help: 'Time that the garbage collector held up the process, from the first time it was asked for.',
    labels: ['kind'],
    bounds: pauseBounds,
  })
  private readonly pauseObserver = new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) this.takePause(entry)
  })
  private lag: ReturnType<typeof monitorEventLoopDelay> | undefined
  private isClosed = false

  /** All of them; whoever reads them begins to watch what has to be watched. */
  readonly meters: readonly Meter[]

  constructor(clock: Pick<Clock, 'now'>) {
    this.meters = [...this.listWatched(), ...listProcessMeters(clock)]
  }

  close(): void {
    this.isClosed = true
    this.lag?.disable()
    this.pauseObserver.disconnect()
  }

  private listWatched(): Meter[] {
    const { name } = this.pauses
    const read = () => {
      this.watch()
      return this.pauses.read()
    }
    const lag = {
      name: 'parley_event_loop_lag_seconds',
      help: 'How much later than it should the event loop came by, since it was last asked for.',
    }
    return [{ name, read }, lookUp(lag, () => this.readLag(), { aggregator: 'max' })]
  }

  private watch(): void {
    if (this.lag !== undefined || this.isClosed) return
    this.lag = monitorEventLoopDelay({ resolution: LAG_RESOLUTION_MS })
    this.lag.enable()
    this.pauseObserver.observe({ entryTypes: ['gc'] })
  }

  private takePause({ duration, detail }: { readonly duration: number; readonly detail?: unknown }): void {
    const kind = collections.get((detail as { readonly kind?: unknown } | undefined)?.kind)
    if (kind !== undefined) this.pauses.of(kind).observe(duration / 1000)
  }

  private readLag(): Looked[] {
    this.watch()
    const { lag } = this
    if (lag === undefined) return []
    const quantiles = [0.5, 0.99].map((quantile): Looked => {
      // It measures from one look to the next, which is the resolution where nothing is late.
      const lateNs = lag.count === 0 ? 0 : lag.percentile(quantile * 100) - LAG_RESOLUTION_MS * 1e6
      return [{ quantile: String(quantile) }, Math.max(0, lateNs) / 1e9]
    })
    lag.reset()
    return quantiles
  }
}

function listProcessMeters(clock: Pick<Clock, 'now'>): Meter[] {
  return [
    lookUp(
      { name: 'process_cpu_seconds_total', help: 'Time spent on a processor.' },
      () => [[{}, countCpuSeconds()]],
      { type: 'counter' },
    ),
    lookUp(
      { name: 'process_start_time_seconds', help: 'When the process began, in Unix seconds.' },
      () => [[{}, clock.now() / 1000 - process.uptime()]],
      { aggregator: 'min' },
    ),
    lookUp({ name: 'process_resident_memory_bytes', help: 'Resident memory.' }, () => [
      [{}, process.memoryUsage.rss()],
    ]),
    lookUp({ name: 'nodejs_heap_size_total_bytes', help: 'The heap of JavaScript.' }, () => [
      [{}, process.memoryUsage().heapTotal],
    ]),
    lookUp({ name: 'nodejs_heap_size_used_bytes', help: 'What is used of the heap of JavaScript.' }, () => [
      [{}, process.memoryUsage().heapUsed],
    ]),
    lookUp({ name: 'nodejs_external_memory_bytes', help: 'Memory beside the heap of JavaScript.' }, () => [
      [{}, process.memoryUsage().external],
    ]),
    lookUp({ name: 'process_open_fds', help: 'Open files and connections, on Linux.' }, countOpenFiles),
  ]
}

function countCpuSeconds(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1e6
}

async function countOpenFiles(): Promise<Looked[]> {
  const files = await readdir('/proc/self/fd').catch(() => [])
  // One of them is the folder itself.
  return files.length === 0 ? [] : [[{}, files.length - 1]]
}
