/**
 * Starts the thread that writes to the SQLite file of conversations, and sends it statements and procedures.
 */
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import type { Clock } from '../../lib/clock.ts'
import type { RunProcedure } from './tables.ts'
import type { BatchAnswer, FailedAnswer, StatementAnswer, ThreadRequest } from './write-thread.ts'

const threadFile = new URL(
  import.meta.url.endsWith('.ts') ? './write-thread.ts' : './write-thread.js',
  import.meta.url,
)

/** Preserves SQLite's `code`, which callers use to distinguish failures. */
class WriteError extends Error {
  readonly code: string | undefined

  constructor({ error: { message, code } }: FailedAnswer) {
    super(message)
    this.code = code
  }
}

interface Waiting {
  resolve(answer: never): void
  reject(error: unknown): void
}

interface Call extends Waiting {
  readonly file: string
  readonly name: string
  readonly input: unknown
}

/** The thread has ended, so the state of its transaction is unknown. */
class ThreadEnded extends Error {
  constructor(cause: unknown) {
    super('the write thread of conversations has ended unexpectedly', { cause })
  }
}

/** Delay before restarting a thread that ended without answering; doubles with each further attempt. */
const FIRST_WAIT_MS = 100
const LONGEST_WAIT_MS = 10_000

export class WriteThread {
  private readonly path: string
  private readonly clock: Pick<Clock, 'monotonic'>
  private worker: Promise<Worker> | undefined
  /** The thread that runs the statements of the caller that holds the connection. */
  private held: Worker | undefined
  private isClosed = false
  /** The number of starts since the last answer. */
  private starts = 0
  private startAgainAtMs = Number.NEGATIVE_INFINITY
  private lastError: unknown
  private readonly waiting: Waiting[] = []
  /** The procedures that are waiting for the next transaction. */
  private calls: Call[] = []
  private isSending = false
  /** Resolves when the connection is free. */
  private lastUse: Promise<void> = Promise.resolve()

  constructor(path: string, clock: Pick<Clock, 'monotonic'>) {
    this.path = path
    this.clock = clock
  }

  /** Waits until the connection is free, and returns the function that frees it again. */
  async acquire(): Promise<() => void> {
    const previous = this.lastUse
    const { promise, resolve } = Promise.withResolvers<void>()
    this.lastUse = promise
    await previous
    this.held = undefined
    return resolve
  }

  /** Executes one statement; only for the holder of the connection. */
  async execute(sql: string, parameters: readonly unknown[] = []): Promise<StatementAnswer> {
    const answer = await this.send<StatementAnswer | FailedAnswer>({ sql, parameters })
    if ('error' in answer) throw new WriteError(answer)
    return answer
  }

  /**
   * Runs a procedure. All procedures that wait while a transaction runs share the next one, because each
   * commit waits for the disk.
   */
  readonly run: RunProcedure = ({ file, name }, input) =>
    new Promise((resolve, reject) => {
      this.calls.push({ file, name, input, resolve, reject })
      if (this.isSending) return
      this.isSending = true
      // Defers the call, so that all calls of one task share a transaction.
      queueMicrotask(() => void this.sendCalls())
    })

  /** Asks the thread to close its connection, because terminating it could leave SQLite's log behind. */
  async close(): Promise<void> {
    const release = await this.acquire()
    this.isClosed = true
    // A thread that could not start has no connection.
    const worker = await this.worker?.catch(() => undefined)
    if (worker !== undefined) {
      const exited = once(worker, 'exit')
      worker.ref()
      worker.postMessage('close' satisfies ThreadRequest)
      await exited
    }
    release()
  }

  private async sendCalls(): Promise<void> {
    while (this.calls.length > 0) {
      const release = await this.acquire()
      const calls = this.calls
      this.calls = []
      try {
        const { results } = await this.send<BatchAnswer>({
          calls: calls.map(({ file, name, input }) => ({ file, name, input })),
        })
        for (const [index, { resolve, reject }] of calls.entries()) {
          const result = results[index] as BatchAnswer['results'][number]
          if ('error' in result) reject(new WriteError(result))
          else resolve(result.value as never)
        }
      } catch (error) {
        for (const { reject } of calls) reject(error)
      }
      release()
    }
    this.isSending = false
  }

  private async send<Answer>(request: ThreadRequest): Promise<Answer> {
    const worker = await this.ready()
    // A new thread has not begun the transaction that this statement belongs to.
    if (this.held !== undefined && this.held !== worker) throw new ThreadEnded(this.lastError)
    this.held = worker
    return new Promise((resolve, reject) => {
      this.waiting.push({ resolve, reject })
      worker.postMessage(request)
    })
  }

  /** Returns the thread, and starts one if the last one has ended. */
  private ready(): Promise<Worker> {
    if (this.worker !== undefined) return this.worker
    if (this.isClosed || this.clock.monotonic() < this.startAgainAtMs)
      return Promise.reject(new ThreadEnded(this.lastError))
    this.starts += 1
    const starting = this.start()
    this.worker = starting
    starting.catch((error) => {
      if (this.worker === starting) this.onEnd(error)
    })
    return starting
  }

  private async start(): Promise<Worker> {
    // Node.js options of the main process, such as `--input-type`, would prevent the thread from starting.
    const worker = new Worker(threadFile, { workerData: { path: this.path }, execArgv: [] })
    worker.unref()
    worker.on('message', (answer: unknown) => {
      this.starts = 0
      this.waiting.shift()?.resolve(answer as never)
    })
    const started = Promise.withResolvers<Worker>()
    let error: unknown
    worker.on('error', (thrown) => {
      error = thrown
    })
    worker.on('online', () => started.resolve(worker))
    // Waits for the exit instead of the error, because the thread's connection is closed only at the exit.
    worker.on('exit', (code) => {
      error ??= new Error(`exit code ${code}`)
      this.onEnd(error)
      started.reject(error)
    })
    return started.promise
  }

  /** Rejects the requests of a thread that has ended; their transactions may have been committed. */
  private onEnd(cause: unknown): void {
    this.worker = undefined
    this.lastError = cause
    const waitMs = this.starts === 0 ? 0 : FIRST_WAIT_MS * 2 ** (this.starts - 1)
    this.startAgainAtMs = this.clock.monotonic() + Math.min(waitMs, LONGEST_WAIT_MS)
    for (const { reject } of this.waiting.splice(0)) reject(new ThreadEnded(cause))
  }
}
