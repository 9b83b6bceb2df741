/** A Kysely dialect for SQLite that writes in a worker thread, so that a slow disk does not block the event loop. */
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import {
  type CompiledQuery,
  type DatabaseConnection,
  type Driver,
  type QueryResult,
  SqliteDialect,
  type TransactionSettings,
} from 'kysely'
import type { ThreadAnswer, ThreadRequest } from './write-thread.ts'

const threadFile = new URL(
  import.meta.url.endsWith('.ts') ? './write-thread.ts' : './write-thread.js',
  import.meta.url,
)

/** Keeps SQLite's `code`, by which callers distinguish failures. */
class WriteError extends Error {
  readonly code: string | undefined

  constructor({ message, code }: { message: string; code: string | undefined }) {
    super(message)
    this.code = code
  }
}

export class ThreadDialect extends SqliteDialect {
  private readonly path: string

  constructor(path: string) {
    super({
      database: async () => {
        throw new Error('the thread has its own connection')
      },
    })
    this.path = path
  }

  override createDriver(): Driver {
    return new ThreadDriver(this.path)
  }
}

interface Waiting {
  resolve(answer: ThreadAnswer): void
  reject(error: unknown): void
}

class ThreadDriver implements Driver {
  private readonly path: string
  private worker: Worker | undefined
  private readonly waiting: Waiting[] = []
  /** Resolves when the connection is free. */
  private lastUse: Promise<void> = Promise.resolve()
  private release: (() => void) | undefined
  private readonly connection: DatabaseConnection = {
    executeQuery: async <R>({ sql, parameters }: CompiledQuery): Promise<QueryResult<R>> => {
      const answer = await this.send({ sql, parameters })
      if ('error' in answer) throw new WriteError(answer.error)
      const { rows, changes, lastInsertRowid } = answer
      return {
        rows: rows as R[],
        numAffectedRows: BigInt(changes),
        ...(lastInsertRowid !== undefined && { insertId: BigInt(lastInsertRowid) }),
      }
    },
    // biome-ignore lint/correctness/useYield: writers do not stream rows.
    async *streamQuery() {
      throw new Error('the write connection does not stream rows')
    },
  }

  constructor(path: string) {
    this.path = path
  }

  async init(): Promise<void> {
    const worker = new Worker(threadFile, { workerData: { path: this.path } })
    worker.unref()
    worker.on('message', (answer: ThreadAnswer) => this.waiting.shift()?.resolve(answer))
    const onEnd = (error: unknown) => {
      for (const { reject } of this.waiting.splice(0)) reject(error)
      this.worker = undefined
    }
    worker.on('error', onEnd)
    worker.on('exit', () => onEnd(new Error('the write thread has ended')))
    await once(worker, 'online')
    this.worker = worker
  }

  async acquireConnection(): Promise<DatabaseConnection> {
    const previous = this.lastUse
    const { promise, resolve } = Promise.withResolvers<void>()
    this.lastUse = promise
    await previous
    this.release = resolve
    return this.connection
  }

  async releaseConnection(): Promise<void> {
    this.release?.()
  }

  async beginTransaction(_connection: DatabaseConnection, _settings: TransactionSettings): Promise<void> {
    await this.execute('begin')
  }

  async commitTransaction(): Promise<void> {
    await this.execute('commit')
  }

  async rollbackTransaction(): Promise<void> {
    await this.execute('rollback')
  }

  /** Asks the thread to close its connection, because terminating it could leave the log of SQLite behind. */
  async destroy(): Promise<void> {
    const { worker } = this
    if (worker === undefined) return
    const exited = once(worker, 'exit')
    worker.postMessage('close' satisfies ThreadRequest)
    await exited
  }

  private async execute(sql: string): Promise<void> {
    const answer = await this.send({ sql, parameters: [] })
    if ('error' in answer) throw new WriteError(answer.error)
  }

  private send(request: ThreadRequest): Promise<ThreadAnswer> {
    const { worker, waiting } = this
    if (worker === undefined) return Promise.reject(new Error('the write thread has ended'))
    return new Promise((resolve, reject) => {
      waiting.push({ resolve, reject })
      worker.postMessage(request)
    })
  }
}
