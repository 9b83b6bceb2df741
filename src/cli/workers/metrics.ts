/** Collects the metrics of all workers for the worker that was scraped. docs/adr/0044. */
import type { Worker } from 'node:cluster'
import { within } from '../../lib/timeout.ts'
import type { CollectedMetric, CollectFromWorkers, WorkerMetrics } from '../../telemetry/prometheus.ts'
import type { FromWorker, ToWorker } from './messages.ts'

const WORKER_TIMEOUT_MS = 1_000
/** Longer than the primary waits for any worker. */
const PRIMARY_TIMEOUT_MS = 2_000

/** Promises for replies, by the id of the request. */
class PendingReplies<T> {
  private readonly resolvers = new Map<number, (reply: T) => void>()
  private lastId = 0

  async request(send: (id: number) => void, timeoutMs: number): Promise<T> {
    this.lastId += 1
    const id = this.lastId
    const { promise, resolve } = Promise.withResolvers<T>()
    this.resolvers.set(id, resolve)
    send(id)
    try {
      return await within(timeoutMs, promise)
    } finally {
      this.resolvers.delete(id)
    }
  }

  /** Ignores a reply that comes after the timeout. */
  take(id: number, reply: T): void {
    this.resolvers.get(id)?.(reply)
  }
}

/** Runs in the primary. */
export class WorkerMetricsCollector {
  private readonly replies = new PendingReplies<readonly CollectedMetric[]>()

  /** Sends the metrics of `workers` to the worker that asked. */
  async answer(asking: Worker, id: number, workers: Iterable<Worker>): Promise<void> {
    const requests = [...workers].map((worker) =>
      this.replies.request((id) => send(worker, { type: 'read', id }), WORKER_TIMEOUT_MS),
    )
    const results = await Promise.allSettled(requests)
    const processes = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
    send(asking, { type: 'collected', id, workers: { processes, silent: results.length - processes.length } })
  }

  take(id: number, metrics: readonly CollectedMetric[]): void {
    this.replies.take(id, metrics)
  }
}

/** Sends to a worker; a worker that has exited does not receive the message. */
export function send(worker: Worker, message: ToWorker): void {
  if (worker.isConnected()) worker.send(message, () => {})
}

/** Runs in a worker: asks the primary for the metrics of all workers. */
export function createMetricsRequests(sendToPrimary: (message: FromWorker) => void): {
  readonly collect: CollectFromWorkers
  readonly take: (id: number, workers: WorkerMetrics) => void
} {
  const replies = new PendingReplies<WorkerMetrics>()
  return {
    collect: () => replies.request((id) => sendToPrimary({ type: 'collect', id }), PRIMARY_TIMEOUT_MS),
    take: (id, workers) => replies.take(id, workers),
  }
}
