/** What the processes of `serve --workers` tell each other. */
import type { Reading } from '../../telemetry/counters.ts'
import type { Gathered } from '../../telemetry/prometheus.ts'

/** What a worker tells the first process, once it answers requests. */
export interface WorkerReport {
  readonly url: string
  /** What is to be printed on a first start. */
  readonly welcome: readonly string[]
}

/** From a worker: that it has started; that it wants to know what all have counted; what it has itself. */
export type FromWorker =
  | { readonly type: 'started'; readonly report: WorkerReport }
  | { readonly type: 'gather'; readonly id: number }
  | { readonly type: 'readings'; readonly id: number; readonly readings: readonly Reading[] }

/** To a worker: that it is to stop; that it is to say what it has counted; what all have. */
export type ToWorker =
  | { readonly type: 'stop' }
  | { readonly type: 'read'; readonly id: number }
  | { readonly type: 'gathered'; readonly id: number; readonly gathered: Gathered }
