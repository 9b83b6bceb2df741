/** Has all workers say what they have counted, for the one that was asked. ADR 0031. */
import type { Worker } from 'node:cluster'
import { within } from '../../lib/timeout.ts'
import type { Reading } from '../../telemetry/counters.ts'
import type { Gathered, GatherReadings } from '../../telemetry/prometheus.ts'
import type { FromWorker, ToWorker } from './messages.ts'

/** A worker that says nothing for so long is left out. */
const WORKER_WITHIN_MS = 1_000
/** The first process has answered by then, or is about to go. */
const ALL_WITHIN_MS = 2_000

/** In the first process: asks workers, and hears them. */
export class CrewReadings {
  private readonly awaited = new Map<number, (readings: readonly Reading[]) => void>()
  private lastId = 0

  /** Answers a worker that wants to know what these have counted. */
  async answer(asking: Worker, id: number, workers: Iterable<Worker>): Promise<void> {
    const answers = await Promise.all([...workers].map((worker) => this.ask(worker)))
    const processes = answers.filter((readings) => readings !== undefined)
    send(asking, { type: 'gathered', id, gathered: { processes, silent: answers.length - processes.length } })
  }

  /** Takes what a worker says; what comes too late is of no use. */
  take(id: number, readings: readonly Reading[]): void {
    this.awaited.get(id)?.(readings)
  }

  private async ask(worker: Worker): Promise<readonly Reading[] | undefined> {
    this.lastId += 1
    const id = this.lastId
    const { promise, resolve } = Promise.withResolvers<readonly Reading[]>()
    this.awaited.set(id, resolve)
    try {
      send(worker, { type: 'read', id })
      return await within(WORKER_WITHIN_MS, promise)
    } catch {
      return undefined
    } finally {
      this.awaited.delete(id)
    }
  }
}

/** One that is gone, or is about to be, does not hear it. */
export function send(worker: Worker, message: ToWorker): void {
  if (worker.isConnected()) worker.send(message, () => {})
}

/** In a worker: asks the first process what all have counted. */
export function createGathering(tell: (message: FromWorker) => void): {
  readonly gather: GatherReadings
  /** Takes the answer. */
  readonly take: (id: number, gathered: Gathered) => void
} {
  const awaited = new Map<number, (gathered: Gathered) => void>()
  let lastId = 0
  return {
    async gather() {
      lastId += 1
      const id = lastId
      const { promise, resolve } = Promise.withResolvers<Gathered>()
      awaited.set(id, resolve)
      tell({ type: 'gather', id })
      try {
        return await within(ALL_WITHIN_MS, promise)
      } finally {
        awaited.delete(id)
      }
    },
    take: (id, gathered) => awaited.get(id)?.(gathered),
  }
}
