/**
 * Defines the messages between the primary process and its workers, and collects metrics with them (ADR
 * 0044).
 */
import type { Worker } from 'node:cluster'
import { within } from '../../lib/timeout.ts'
import type { CollectedMetric, WorkerMetrics } from '../../telemetry/prometheus.ts'

/** Sent by a worker when it is ready to accept requests. */
export interface WorkerReport {
  readonly url: string
  readonly welcome: readonly string[]
}

/** `collect` requests the metrics of all workers; `metrics` is the reply to a `read`. */
export type FromWorker =
  | { readonly type: 'started'; readonly report: WorkerReport }
  | { readonly type: 'collect'; readonly id: number }
  | { readonly type: 'metrics'; readonly id: number; readonly metrics: readonly CollectedMetric[] }

/** `read` requests the metrics of this worker; `collected` is the reply to a `collect`. */
export type ToWorker =
  | { readonly type: 'stop' }
  | { readonly type: 'read'; readonly id: number }
  | { readonly type: 'collected'; readonly id: number; readonly workers: WorkerMetrics }

export function send(worker: Worker, message: ToWorker): void {
  if (worker.isConnected()) worker.send(message, () => {})
}

const WORKER_TIMEOUT_MS = 1_000
/** Must exceed `WORKER_TIMEOUT_MS`, the time that the primary process waits for workers. */
const PRIMARY_TIMEOUT_MS = 2_000

class PendingRequests<Answer> {
  private readonly pending = new Map<number, (answer: Answer) => void>()
  private lastId = 0

  /** @throws TimeoutError */
  async request(timeoutMs: number, ask: (id: number) => void): Promise<Answer> {
    this.lastId += 1
    const id = this.lastId
    const { promise, resolve } = Promise.withResolvers<Answer>()
    this.pending.set(id, resolve)
    try {
      ask(id)
      return await within(timeoutMs, promise)
    } finally {
      this.pending.delete(id)
    }
  }

  /** Completes a request; ignores the answer if the request has timed out. */
  answer(id: number, answer: Answer): void {
    this.pending.get(id)?.(answer)
  }
}

/** Collects the metrics of all workers in the primary process. */
export class MetricsCollector {
  private readonly requests = new PendingRequests<readonly CollectedMetric[]>()

  /** Replies to a worker's `collect`. Omits workers that do not reply in time. */
  async collectFor(asking: Worker, id: number, workers: readonly Worker[]): Promise<void> {
    const results = await Promise.allSettled(
      workers.map((worker) =>
        this.requests.request(WORKER_TIMEOUT_MS, (readId) => send(worker, { type: 'read', id: readId })),
      ),
    )
    const processes = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
    send(asking, { type: 'collected', id, workers: { processes, silent: results.length - processes.length } })
  }

  receive(id: number, metrics: readonly CollectedMetric[]): void {
    this.requests.answer(id, metrics)
  }
}

/** Requests the metrics of all workers from the primary process; runs in a worker. */
export function createMetricsRequests(post: (message: FromWorker) => void) {
  const requests = new PendingRequests<WorkerMetrics>()
  return {
    collect: () => requests.request(PRIMARY_TIMEOUT_MS, (id) => post({ type: 'collect', id })),
    receive: (id: number, workers: WorkerMetrics) => requests.answer(id, workers),
  }
}
