/** Collects the metrics of one or more processes, and renders them in Prometheus's text format. */
import { AggregatorRegistry, Gauge, type GaugeConfiguration, Registry } from 'prom-client'

/** A metric and its samples, in a form that processes can send to each other. */
export interface CollectedMetric {
  readonly name: string
}

export interface WorkerMetrics {
  readonly processes: readonly (readonly CollectedMetric[])[]
  /** Number of processes that did not respond in time. */
  readonly silent: number
}

/** Collects the metrics of every process of the service, including this one. */
export type CollectFromWorkers = () => Promise<WorkerMetrics>

export interface Scraped {
  readonly mediaType: string
  readonly text: string
}

export type Sample = readonly [labels: Readonly<Record<string, string>>, value: number]

/**
 * Reads samples at each scrape, and omits the gauge if `read` fails. `aggregator` combines the values of
 * several processes.
 */
export function registerGauge(
  registry: Registry,
  options: Pick<GaugeConfiguration<string>, 'name' | 'help' | 'labelNames' | 'aggregator'>,
  read: () => readonly Sample[] | Promise<readonly Sample[]>,
): void {
  new Gauge({
    ...options,
    registers: [registry],
    async collect() {
      const samples = await read()
      this.reset()
      for (const [labels, value] of samples) this.set(labels, value)
    },
  })
}

/** Collects all metrics; unlike `Registry.getMetricsAsJSON`, skips metrics that cannot be read. */
export async function collectMetrics(registry: Registry): Promise<CollectedMetric[]> {
  const names = registry.getMetricsAsArray().map(({ name }) => name)
  const results = await Promise.allSettled(names.map((name) => registry.getSingleMetric(name)?.get()))
  return results.flatMap((result) =>
    result.status === 'fulfilled' && result.value !== undefined ? [result.value] : [],
  )
}

export async function renderMetrics({ processes }: Pick<WorkerMetrics, 'processes'>): Promise<Scraped> {
  const registry = AggregatorRegistry.aggregate(processes.map((metrics) => [...metrics]))
  return { mediaType: registry.contentType, text: await registry.metrics() }
}

export function collectWorkerCounts({ processes, silent }: WorkerMetrics): Promise<CollectedMetric[]> {
  const registry = new Registry()
  registerGauge(
    registry,
    {
      name: 'parley_workers',
      help: 'Worker processes (`--workers`) by whether they responded.',
      labelNames: ['state'],
    },
    () => [
      [{ state: 'answered' }, processes.length],
      [{ state: 'silent' }, silent],
    ],
  )
  return collectMetrics(registry)
}
