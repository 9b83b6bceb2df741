/** Everything a service can tell of what it counts, for whoever scrapes. */
import { countArtifactWork } from '../artifacts/counts.ts'
import { ServiceError } from '../errors.ts'
import type { Dependencies } from './dependencies.ts'
import type { Reading } from './meters.ts'
import { ProcessMeters } from './process-meters.ts'
import { type GatherReadings, readMeters, readWorkers, renderReadings, type Scraped } from './scrape.ts'
import { createStateMeters, type StateOptions } from './state-meters.ts'
import { createStoredMeters } from './stored-counts.ts'

export interface CountingOptions extends StateOptions {
  /** Undefined where there is one process only. */
  readonly gather: GatherReadings | undefined
}

export interface Counting {
  /** What this process has counted. */
  read(): Promise<Reading[]>
  /** What all processes have, as text. @throws ServiceError `service_unavailable` when they could not be asked. */
  scrape(): Promise<Scraped>
  /** Stops watching the process. */
  close(): void
}

export function createCounting(deps: Dependencies, options: CountingOptions): Counting {
  const { clock, metrics } = deps
  const { gather } = options
  const ofProcess = new ProcessMeters(clock)
  const meters = [
    ...metrics.meters,
    ...createStateMeters(deps, options),
    ...createStoredMeters(() => countArtifactWork(deps), clock),
    ...ofProcess.meters,
  ]
  const read = () => readMeters(meters)
  return {
    read,
    async scrape() {
      if (gather === undefined) return renderReadings({ processes: [await read()] })
      const gathered = await gather().catch((cause: unknown) => {
        throw new ServiceError('service_unavailable', 'The processes of this service could not be asked.', {
          cause,
        })
      })
      return renderReadings({ processes: [...gathered.processes, await readWorkers(gathered)] })
    },
    close: () => ofProcess.close(),
  }
}
