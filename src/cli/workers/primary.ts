/** The first of several processes of the service: it starts the others, keeps as many of them, and stops them. */
import cluster, { type Worker } from 'node:cluster'
import { once } from 'node:events'
import { setTimeout as wait } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Config } from '../../config/config.ts'
import { systemClock } from '../../lib/clock.ts'
import { createLog } from '../../telemetry/log.ts'
import { noticeOf } from '../lifecycle.ts'
import { print, printNotice } from '../output.ts'
import { takeStopSignals } from '../signals.ts'
import type { FromWorker, WorkerReport } from './messages.ts'
import { send, WorkerMetricsCollector } from './metrics.ts'

/** The first pause before a worker that died is started again; each one that dies soon after doubles it. */
const FIRST_PAUSE_MS = 250
const LONGEST_PAUSE_MS = 30_000
/** A worker that lived as long did not die of how it was started. */
const LIVED_MS = 60_000

/** Starts so many workers on one port, and resolves when all of them listen; one that does not even start ends them all. Decision: 2. */
export async function serveWithWorkers(config: Config, count: number): Promise<void> {
  const crew = new Crew(createLog(config))
  takeStopSignals((signal) => crew.stop(signal))
  // Alone, so that one of them migrates, makes the first key, and says what is wrong with the settings.
  const first = await crew.add()
  const others =
    first === undefined ? [] : await Promise.all(Array.from({ length: count - 1 }, () => crew.add()))
  const all = [first, ...others]
  const isWhole = !all.includes(undefined)
  // What it has made is told whatever became of the others: it would be lost.
  const lines = [...(isWhole ? [`listening on ${first?.url}`] : []), ...(first?.welcome ?? [])]
  if (lines.length > 0) print(lines.join('\n'))
  if (!isWhole) return crew.giveUp()
  crew.keep()
}

class Crew {
  private readonly log: Logger
  private readonly listening = new Set<Worker>()
  private readonly metrics = new WorkerMetricsCollector()
  private isStopping = false
  private isKept = false
  private diedSoon = 0

  constructor(log: Logger) {
    this.log = log
  }

  /** Starts a worker; answers what it reports, or undefined when it ends without, and has said why. */
  async add(): Promise<WorkerReport | undefined> {
    if (this.isStopping) return undefined
    const worker = cluster.fork()
    const startedMs = systemClock.monotonic()
    const exited = once(worker, 'exit').then(() => undefined)
    const report = await Promise.race([this.hear(worker), exited])
    if (report === undefined) return undefined
    this.listening.add(worker)
    void exited.then(() => this.lose(worker, systemClock.monotonic() - startedMs))
    // It may have been started while the others were told to.
    if (this.isStopping) send(worker, { type: 'stop' })
    return report
  }

  /** Listens to a worker as long as it lives; resolves when it has started. */
  private hear(worker: Worker): Promise<WorkerReport> {
    const { promise, resolve } = Promise.withResolvers<WorkerReport>()
    worker.on('message', (message: FromWorker) => {
      if (message.type === 'started') resolve(message.report)
      else if (message.type === 'metrics') this.metrics.take(message.id, message.metrics)
      else void this.metrics.answer(worker, message.id, new Set([...this.listening, worker]))
    })
    return promise
  }

  /** From now on workers that die are started again. */
  keep(): void {
    this.isKept = true
  }

  /** The first signal lets running answers end, the second ends all processes at once. Decision: 2 (`serve`). */
  stop(signal: NodeJS.Signals): void {
    const workers = listWorkers()
    if (this.isStopping) {
      for (const worker of workers) worker.process.kill('SIGKILL')
      process.exit(1)
    }
    this.isStopping = true
    printNotice(noticeOf(signal))
    void this.end(0)
  }

  /** Ends everything, because the service cannot be what it was started to be. */
  async giveUp(): Promise<void> {
    if (this.isStopping) return
    this.isStopping = true
    await this.end(1)
  }

  private async end(code: number): Promise<void> {
    const workers = listWorkers()
    const ended = workers.map((worker) => (worker.isDead() ? undefined : once(worker, 'exit')))
    for (const worker of workers) send(worker, { type: 'stop' })
    await Promise.all(ended)
    process.exit(code)
  }

  private lose(worker: Worker, livedMs: number): void {
    this.listening.delete(worker)
    if (this.isStopping || !this.isKept) return
    const { exitCode, signalCode } = worker.process
    this.log.warn({ worker: worker.id, exitCode, signalCode }, 'a worker died; it is started again')
    if (livedMs >= LIVED_MS) this.diedSoon = 0
    void this.replace()
  }

  /** As long as another one answers, it is tried again and again; what nobody can start is for the supervisor. */
  private async replace(): Promise<void> {
    const pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** this.diedSoon, LONGEST_PAUSE_MS)
    this.diedSoon += 1
    await wait(pauseMs)
    if (this.isStopping || (await this.add()) !== undefined) return
    if (this.isStopping) return
    if (this.listening.size === 0) return this.giveUp()
    this.log.warn('a worker could not be started; it is tried again')
    return this.replace()
  }
}

function listWorkers(): Worker[] {
  return Object.values(cluster.workers ?? {}).filter((worker) => worker !== undefined)
}
