/** Runs one worker process, which listens on the shared port until the primary process stops it. */
import cluster from 'node:cluster'
import { loadConfig } from '../../config/parse.ts'
import { createService, type Service } from '../../server/service.ts'
import { createLog } from '../../telemetry/log.ts'
import { createWelcome, stopOnCrash } from '../lifecycle.ts'
import { createMetricsRequests, type FromWorker, type ToWorker } from './messages.ts'

/** Starts a worker. It ignores signals, because the primary process decides when workers stop. */
export async function serveAsWorker(): Promise<void> {
  const { config } = await loadConfig()
  const log = createLog(config).child({ worker: cluster.worker?.id })
  const metrics = createMetricsRequests((message) => void post(message))
  const starting = createService({ config, log, collectFromWorkers: metrics.collect })
  const reporting = starting.then(reportStart)
  process.on('message', (message: ToWorker) => {
    if (message.type === 'stop') void stop(starting, reporting)
    else if (message.type === 'read') void postMetrics(starting, message.id)
    else metrics.receive(message.id, message.workers)
  })
  const service = await starting
  await reporting
  stopOnCrash(service, log)
}

async function reportStart(service: Service): Promise<void> {
  const welcome = createWelcome(service)
  const lines = [welcome?.key, await welcome?.link].filter((text) => text !== undefined)
  await post({ type: 'started', report: { url: service.url, welcome: lines } })
}

/** Sends this worker's metrics to the primary process, unless the service did not start. */
async function postMetrics(starting: Promise<Service>, id: number): Promise<void> {
  const service = await starting.catch(() => undefined)
  if (service !== undefined) await post({ type: 'metrics', id, metrics: await service.collectMetrics() })
}

/** Resolves when the message has been sent, because exiting earlier would lose it. */
function post(message: FromWorker): Promise<void> {
  return new Promise((resolve) => process.send?.(message, undefined, {}, () => resolve()))
}

async function stop(starting: Promise<Service>, reporting: Promise<void>): Promise<void> {
  const service = await starting.catch(() => undefined)
  // The start failed; the command reports the error and exits.
  if (service === undefined) return
  const closing = service.close()
  await reporting.catch(() => {})
  await closing
  process.exit(0)
}
