/**
 * Runs the primary process of `serve --workers`: starts the workers, replaces those that die, and stops them.
 */
import cluster, { type Worker } from 'node:cluster'
import { once } from 'node:events'
import { setTimeout as wait } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Config } from '../../config/config.ts'
import { systemClock } from '../../lib/clock.ts'
import { createLog } from '../../telemetry/log.ts'
import { print } from '../output.ts'
import { printStopping, setStopHandler } from '../signals.ts'
import { type FromWorker, MetricsCollector, send, type WorkerReport } from './messages.ts'

/**
 * Delay in milliseconds before a dead worker is replaced; doubles for each worker that dies soon after its
 * start.
 */
const FIRST_PAUSE_MS = 250
const LONGEST_PAUSE_MS = 30_000
/** A worker that ran this long did not fail at startup, so the delay is reset. */
const STABLE_AFTER_MS = 60_000

/**
 * Starts the workers on one port. Resolves when all of them are listening; if one fails to start, stops them
 * all.
 */
export async function serveWithWorkers(config: Config, count: number): Promise<void> {
  const pool = new WorkerPool(createLog(config))
  setStopHandler((signal) => pool.stop(signal))
  // Starts the first worker alone, so that only one worker migrates, creates the first key and reports
  // invalid settings.
  const first = await pool.start()
  const others =
    first === undefined ? [] : await Promise.all(Array.from({ length: count - 1 }, () => pool.start()))
  const isComplete = first !== undefined && !others.includes(undefined)
  // Prints the first key even if another worker failed; otherwise it would be lost.
  const lines = [...(isComplete ? [`listening on ${first.url}`] : []), ...(first?.welcome ?? [])]
  if (lines.length > 0) print(lines.join('\n'))
  if (isComplete) pool.keepRunning()
  else await pool.giveUp()
}

class WorkerPool {
  private readonly log: Logger
  private readonly listening = new Set<Worker>()
  private readonly metrics = new MetricsCollector()
  private isStopping = false
  private replacesWorkers = false
  private earlyDeaths = 0

  constructor(log: Logger) {
    this.log = log
  }

  /** Starts a worker. Resolves to undefined if the worker reports an error and exits before it listens. */
  async start(): Promise<WorkerReport | undefined> {
    if (this.isStopping) return undefined
    const worker = cluster.fork()
    const startedMs = systemClock.monotonic()
    const exited = once(worker, 'exit').then(() => undefined)
    const report = await Promise.race([this.receiveFrom(worker), exited])
    if (report === undefined) return undefined
    this.listening.add(worker)
    void exited.then(() => this.onExit(worker, systemClock.monotonic() - startedMs))
    // Stops a worker that was starting when the other workers were stopped.
    if (this.isStopping) send(worker, { type: 'stop' })
    return report
  }

  private receiveFrom(worker: Worker): Promise<WorkerReport> {
    const { promise, resolve } = Promise.withResolvers<WorkerReport>()
    worker.on('message', (message: FromWorker) => {
      if (message.type === 'started') resolve(message.report)
      else if (message.type === 'metrics') this.metrics.receive(message.id, message.metrics)
      else void this.metrics.collectFor(worker, message.id, [...new Set([...this.listening, worker])])
    })
    return promise
  }

  keepRunning(): void {
    this.replacesWorkers = true
  }

  /** The first signal lets the workers finish open requests; the second kills them. */
  stop(signal: NodeJS.Signals): void {
    if (this.isStopping) {
      for (const worker of listWorkers()) worker.process.kill('SIGKILL')
      process.exit(1)
    }
    this.isStopping = true
    printStopping(signal)
    void this.exit(0)
  }

  /** Stops all workers and exits with code 1, so that the supervisor restarts the service. */
  async giveUp(): Promise<void> {
    if (this.isStopping) return
    this.isStopping = true
    await this.exit(1)
  }

  private async exit(code: number): Promise<void> {
    const workers = listWorkers()
    const exited = workers.map((worker) => (worker.isDead() ? undefined : once(worker, 'exit')))
    for (const worker of workers) send(worker, { type: 'stop' })
    await Promise.all(exited)
    process.exit(code)
  }

  private onExit(worker: Worker, livedMs: number): void {
    this.listening.delete(worker)
    if (this.isStopping || !this.replacesWorkers) return
    const { exitCode, signalCode } = worker.process
    this.log.warn({ worker: worker.id, exitCode, signalCode }, 'worker died; starting a replacement')
    if (livedMs >= STABLE_AFTER_MS) this.earlyDeaths = 0
    void this.replace()
  }

  /** Replaces a dead worker. Retries while another worker serves requests, and otherwise exits. */
  private async replace(): Promise<void> {
    const pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** this.earlyDeaths, LONGEST_PAUSE_MS)
    this.earlyDeaths += 1
    await wait(pauseMs)
    if (this.isStopping || (await this.start()) !== undefined || this.isStopping) return
    if (this.listening.size === 0) return this.giveUp()
    this.log.warn('worker failed to start; retrying')
    return this.replace()
  }
}

function listWorkers(): Worker[] {
  return Object.values(cluster.workers ?? {}).filter((worker) => worker !== undefined)
}
