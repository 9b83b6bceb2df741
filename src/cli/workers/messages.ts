/** The messages between the primary process and its workers, and the metrics that workers collect from each other with them (ADR 0031). */
import type { Worker } from 'node:cluster'
import { within } from '../../lib/timeout.ts'
import type { Reading } from '../../telemetry/counters.ts'
import type { Gathered, GatherReadings } from '../../telemetry/prometheus.ts'

/** Sent by a worker once it accepts requests. */
export interface WorkerReport {
  readonly url: string
  /** What the first start prints. */
  readonly welcome: readonly string[]
}

/** `collect` asks for the metrics of all workers; `metrics` answers a `read`. */
export type FromWorker =
  | { readonly type: 'started'; readonly report: WorkerReport }
  | { readonly type: 'collect'; readonly id: number }
  | { readonly type: 'metrics'; readonly id: number; readonly readings: readonly Reading[] }

/** `read` asks for the metrics of this worker; `collected` answers a `collect`. */
export type ToWorker =
  | { readonly type: 'stop' }
  | { readonly type: 'read'; readonly id: number }
  | { readonly type: 'collected'; readonly id: number; readonly gathered: Gathered }

export function send(worker: Worker, message: ToWorker): void {
  if (worker.isConnected()) worker.send(message, () => {})
}

/** A worker that takes longer to answer is left out. */
const WORKER_WITHIN_MS = 1_000
/** The primary process has answered by then. */
const ALL_WITHIN_MS = 2_000

/** Requests with an id that are answered by a message with the same id. */
class PendingRequests<Answer> {
  private readonly pending = new Map<number, (answer: Answer) => void>()
  private lastId = 0

  async request(ms: number, ask: (id: number) => void): Promise<Answer> {
    this.lastId += 1
    const id = this.lastId
    const { promise, resolve } = Promise.withResolvers<Answer>()
    this.pending.set(id, resolve)
    try {
      ask(id)
      return await within(ms, promise)
    } finally {
      this.pending.delete(id)
    }
  }

  /** Ignores an answer that arrives too late. */
  answer(id: number, answer: Answer): void {
    this.pending.get(id)?.(answer)
  }
}

/** In the primary process: collects the metrics of all workers. */
export class MetricsCollector {
  private readonly requests = new PendingRequests<readonly Reading[]>()

  async collectFor(asking: Worker, id: number, workers: readonly Worker[]): Promise<void> {
    const answers = await Promise.all(
      workers.map((worker) =>
        this.requests
          .request(WORKER_WITHIN_MS, (readId) => send(worker, { type: 'read', id: readId }))
          .catch(() => undefined),
      ),
    )
    const processes = answers.filter((readings) => readings !== undefined)
    const gathered = { processes, silent: answers.length - processes.length }
    send(asking, { type: 'collected', id, gathered })
  }

  receive(id: number, readings: readonly Reading[]): void {
    this.requests.answer(id, readings)
  }
}

/** In a worker: asks the primary process for the metrics of all workers. */
export function createMetricsRequests(post: (message: FromWorker) => void): {
  readonly gather: GatherReadings
  readonly receive: (id: number, gathered: Gathered) => void
} {
  const requests = new PendingRequests<Gathered>()
  return {
    gather: () => requests.request(ALL_WITHIN_MS, (id) => post({ type: 'collect', id })),
    receive: (id, gathered) => requests.answer(id, gathered),
  }
}
