/** Tells what is counted, as Prometheus reads it, for this process or for all that answer on one port. */
import { lookUp, type Meter, type Reading } from './counters.ts'

/** What the processes of one service have counted. */
export interface Gathered {
  /** One list for each process that has answered. */
  readonly processes: readonly (readonly Reading[])[]
  /** How many did not answer in time. */
  readonly silent: number
}

/** Asks all processes of the service what they have counted; this one is among them. */
export type GatherReadings = () => Promise<Gathered>

/** An answer for whoever scrapes. */
export interface Scraped {
  readonly mediaType: string
  readonly text: string
}

/** What the meters say now. A meter that cannot be read is left out. */
export function readMeters(meters: readonly Meter[]): Promise<Reading[]> {
  const reading = meters.map(async (meter) => {
    try {
      return await meter.read()
    } catch {
      return undefined
    }
  })
  return Promise.all(reading).then((all) => all.filter((one) => one !== undefined))
}

/** The numbers of all processes as one. The library is loaded by whoever scrapes first: a start has no use for it. */
export async function renderReadings({ processes }: Pick<Gathered, 'processes'>): Promise<Scraped> {
  const { AggregatorRegistry } = await import('prom-client')
  type Metrics = Parameters<typeof AggregatorRegistry.aggregate>[0]
  // Its types know its own meters only; what it reads of them is what a reading is.
  const registry = AggregatorRegistry.aggregate(processes as unknown as Metrics)
  return { mediaType: registry.contentType, text: await registry.metrics() }
}

/** How many processes the numbers are of. */
export function readWorkers({ processes, silent }: Gathered): Promise<Reading[]> {
  return readMeters([
    lookUp({ name: 'parley_workers', help: 'Processes of --workers, by whether they were heard.' }, () => [
      [{ state: 'answered' }, processes.length],
      [{ state: 'silent' }, silent],
    ]),
  ])
}
