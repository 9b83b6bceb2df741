/** One of several processes of the service: it listens with the others, and does what the first process says. */
import cluster from 'node:cluster'
import { loadConfig } from '../config.ts'
import { createLog, createService, type Service } from '../service.ts'
import { describeBeginning, stopOnCrash } from './running.ts'

/** What a worker tells the first process, once it answers requests. */
export interface WorkerReport {
  readonly url: string
  /** What is to be printed on a first start. */
  readonly welcome: readonly string[]
}

/** What the first process tells a worker. */
export const STOP = 'stop'

/**
 * Starts, and reports it; stops when the first process says so. Signals that reach a whole group of processes are the first one's to act
 * on: a worker would take its word for the second one.
 */
export async function serveAsWorker(): Promise<void> {
  const { config } = await loadConfig()
  const log = createLog(config).child({ worker: cluster.worker?.id })
  const starting = createService({ config, log })
  const reporting = starting.then(report)
  process.on('message', (message) => {
    if (message === STOP) void stop(starting, reporting)
  })
  const service = await starting
  await reporting
  stopOnCrash(service, log)
}

async function report(service: Service): Promise<void> {
  const beginning = describeBeginning(service)
  const link = await beginning?.link
  const welcome = [beginning?.key, link].filter((text) => text !== undefined)
  await tell({ url: service.url, welcome })
}

/** Resolves when it is on its way: a process that ended before would take it along. */
function tell(message: WorkerReport): Promise<void> {
  return new Promise((resolve) => process.send?.(message, undefined, {}, () => resolve()))
}

async function stop(starting: Promise<Service>, reporting: Promise<void>): Promise<void> {
  const service = await starting.catch(() => undefined)
  // The command says why there is none, and ends.
  if (service === undefined) return
  const closing = service.close()
  await reporting.catch(() => {})
  await closing
  process.exit(0)
}
