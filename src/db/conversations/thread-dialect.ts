/**
 * Implements a Kysely dialect for SQLite that writes in a worker thread, so that a slow disk does not block
 * the event loop.
 */
import {
  type CompiledQuery,
  type DatabaseConnection,
  type Driver,
  type QueryResult,
  SqliteDialect,
  type TransactionSettings,
} from 'kysely'
import type { WriteThread } from './thread.ts'

export class ThreadDialect extends SqliteDialect {
  private readonly thread: WriteThread

  constructor(thread: WriteThread) {
    super({
      database: async () => {
        throw new Error('the thread has its own connection')
      },
    })
    this.thread = thread
  }

  override createDriver(): Driver {
    return new ThreadDriver(this.thread)
  }
}

class ThreadDriver implements Driver {
  private readonly thread: WriteThread
  private release: (() => void) | undefined
  private readonly connection: DatabaseConnection = {
    executeQuery: async <R>({ sql, parameters }: CompiledQuery): Promise<QueryResult<R>> => {
      const { rows, changes, lastInsertRowid } = await this.thread.execute(sql, parameters)
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

  constructor(thread: WriteThread) {
    this.thread = thread
  }

  async init(): Promise<void> {}

  async acquireConnection(): Promise<DatabaseConnection> {
    this.release = await this.thread.acquire()
    return this.connection
  }

  async releaseConnection(): Promise<void> {
    this.release?.()
  }

  async beginTransaction(_connection: DatabaseConnection, _settings: TransactionSettings): Promise<void> {
    await this.thread.execute('begin')
  }

  async commitTransaction(): Promise<void> {
    await this.thread.execute('commit')
  }

  async rollbackTransaction(): Promise<void> {
    await this.thread.execute('rollback')
  }

  destroy(): Promise<void> {
    return this.thread.close()
  }
}
