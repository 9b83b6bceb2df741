/** One of several processes of the service: it listens with the others, and does what the first process says. */
import cluster from 'node:cluster'
import { loadConfig } from '../../config/parse.ts'
import { createService, type Service } from '../../server/service.ts'
import { createLog } from '../../telemetry/log.ts'
import { describeBeginning, stopOnCrash } from '../lifecycle.ts'
import type { FromWorker, ToWorker } from './messages.ts'
import { createMetricsRequests } from './metrics.ts'

/**
 * Starts, and reports it; stops when the first process says so. Signals that reach a whole group of processes are the first one's to act
 * on: a worker would take its word for the second one.
 */
export async function serveAsWorker(): Promise<void> {
  const { config } = await loadConfig()
  const log = createLog(config).child({ worker: cluster.worker?.id })
  const metricsRequests = createMetricsRequests((message) => void tell(message))
  const starting = createService({ config, log, collectFromWorkers: metricsRequests.collect })
  const reporting = starting.then(report)
  process.on('message', (message: ToWorker) => {
    if (message.type === 'stop') void stop(starting, reporting)
    else if (message.type === 'read') void sendMetrics(starting, message.id)
    else metricsRequests.take(message.id, message.workers)
  })
  const service = await starting
  await reporting
  stopOnCrash(service, log)
}

async function report(service: Service): Promise<void> {
  const beginning = describeBeginning(service)
  const link = await beginning?.link
  const welcome = [beginning?.key, link].filter((text) => text !== undefined)
  await tell({ type: 'started', report: { url: service.url, welcome } })
}

async function sendMetrics(starting: Promise<Service>, id: number): Promise<void> {
  const service = await starting.catch(() => undefined)
  if (service !== undefined) await tell({ type: 'metrics', id, metrics: await service.collectMetrics() })
}

/** Resolves when it is on its way: a process that ended before would take it along. */
function tell(message: FromWorker): Promise<void> {
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
