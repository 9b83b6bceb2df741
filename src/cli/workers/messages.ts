/** The messages between the processes of `serve --workers`. */
import type { CollectedMetric, WorkerMetrics } from '../../telemetry/prometheus.ts'

/** Sent by a worker when it accepts requests. */
export interface WorkerReport {
  readonly url: string
  /** Lines to print on the first start. */
  readonly welcome: readonly string[]
}

/** `collect` asks for the metrics of all workers, `metrics` answers the `read` of the primary. */
export type FromWorker =
  | { readonly type: 'started'; readonly report: WorkerReport }
  | { readonly type: 'collect'; readonly id: number }
  | { readonly type: 'metrics'; readonly id: number; readonly metrics: readonly CollectedMetric[] }

export type ToWorker =
  | { readonly type: 'stop' }
  | { readonly type: 'read'; readonly id: number }
  | { readonly type: 'collected'; readonly id: number; readonly workers: WorkerMetrics }
