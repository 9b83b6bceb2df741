/** Starts the thread that writes to the SQLite file of conversations, and sends it statements and procedures. */
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import type { RunProcedure } from './tables.ts'
import type { BatchAnswer, FailedAnswer, StatementAnswer, ThreadRequest } from './write-thread.ts'

const threadFile = new URL(
  import.meta.url.endsWith('.ts') ? './write-thread.ts' : './write-thread.js',
  import.meta.url,
)

/** Keeps SQLite's `code`, by which callers distinguish failures. */
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

export class WriteThread {
  private readonly path: string
  private worker: Promise<Worker> | undefined
  private readonly waiting: Waiting[] = []
  /** The procedures that wait for the next transaction. */
  private calls: Call[] = []
  private isSending = false
  /** Resolves when the connection is free. */
  private lastUse: Promise<void> = Promise.resolve()

  constructor(path: string) {
    this.path = path
  }

  /** Waits until the connection is free, and returns the function that frees it again. */
  async acquire(): Promise<() => void> {
    const previous = this.lastUse
    const { promise, resolve } = Promise.withResolvers<void>()
    this.lastUse = promise
    await previous
    return resolve
  }

  /** Executes one statement; only for the holder of the connection. */
  async execute(sql: string, parameters: readonly unknown[] = []): Promise<StatementAnswer> {
    const answer = await this.send<StatementAnswer | FailedAnswer>({ sql, parameters })
    if ('error' in answer) throw new WriteError(answer)
    return answer
  }

  /**
   * Runs a procedure. All procedures that wait while a transaction runs share the next one, because each commit
   * waits for the disk.
   */
  readonly run: RunProcedure = ({ file, name }, input) =>
    new Promise((resolve, reject) => {
      this.calls.push({ file, name, input, resolve, reject })
      if (this.isSending) return
      this.isSending = true
      // Later, so that the calls of one task share a transaction.
      queueMicrotask(() => void this.sendCalls())
    })

  /** Asks the thread to close its connection, because terminating it could leave the log of SQLite behind. */
  async close(): Promise<void> {
    if (this.worker === undefined) return
    const release = await this.acquire()
    const worker = await this.worker
    const exited = once(worker, 'exit')
    worker.ref()
    worker.postMessage('close' satisfies ThreadRequest)
    await exited
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
    this.worker ??= this.start()
    const worker = await this.worker
    return new Promise((resolve, reject) => {
      this.waiting.push({ resolve, reject })
      worker.postMessage(request)
    })
  }

  private async start(): Promise<Worker> {
    // Options of the main program, such as `--input-type`, would prevent the thread from starting.
    const worker = new Worker(threadFile, { workerData: { path: this.path }, execArgv: [] })
    worker.unref()
    worker.on('message', (answer: unknown) => this.waiting.shift()?.resolve(answer as never))
    const onEnd = (error: unknown) => {
      for (const { reject } of this.waiting.splice(0)) reject(error)
      this.worker = Promise.reject(error)
      this.worker.catch(() => {})
    }
    worker.on('error', onEnd)
    worker.on('exit', () => onEnd(new Error('the write thread has ended')))
    await once(worker, 'online')
    return worker
  }
}
