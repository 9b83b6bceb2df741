/** Retries SQLite statements, without blocking the event loop, while another process holds the write lock. */
import Sqlite, { type Database as SqliteDatabase } from 'better-sqlite3'
import {
  type CompiledQuery,
  type DatabaseConnection,
  type QueryResult,
  SqliteDialect,
  type SqliteDialectConfig,
  SqliteDriver,
} from 'kysely'
import { systemClock } from '../lib/clock.ts'

/** The longest time that a statement waits for the write lock. */
export const LOCK_PATIENCE_MS = 5_000
const RETRY_EVERY_MS = 10

export class PatientSqliteDialect extends SqliteDialect {
  private readonly config: SqliteDialectConfig
  private readonly connection: SqliteDatabase
  private readonly patienceMs: number

  constructor(config: SqliteDialectConfig, connection: SqliteDatabase, patienceMs: number) {
    super(config)
    this.config = config
    this.connection = connection
    this.patienceMs = patienceMs
  }

  override createDriver(): PatientSqliteDriver {
    return new PatientSqliteDriver(this.config, this.connection, this.patienceMs)
  }
}

/**
 * Waits for the write lock without SQLite's busy timeout, which would block the event loop. Waiting
 * statements release the connection for readers and retry in order of arrival.
 */
class PatientSqliteDriver extends SqliteDriver {
  private readonly connection: SqliteDatabase
  private readonly patienceMs: number
  private patient: DatabaseConnection | undefined
  private lastWaiting: Promise<unknown> = Promise.resolve()

  constructor(config: SqliteDialectConfig, connection: SqliteDatabase, patienceMs: number) {
    super(config)
    this.connection = connection
    this.patienceMs = patienceMs
  }

  override async acquireConnection(): Promise<DatabaseConnection> {
    const inner = await super.acquireConnection()
    this.patient ??= {
      executeQuery: <R>(query: CompiledQuery) => this.execute<R>(inner, query),
      streamQuery: (query, chunkSize) => inner.streamQuery(query, chunkSize),
    }
    return this.patient
  }

  private async execute<R>(inner: DatabaseConnection, query: CompiledQuery): Promise<QueryResult<R>> {
    const deadline = systemClock.monotonic() + this.patienceMs
    try {
      return await inner.executeQuery<R>(query)
    } catch (error) {
      // A transaction that has begun already holds the lock and cannot release the connection.
      if (!isBusy(error) || this.connection.inTransaction) throw error
    }
    await this.releaseConnection()
    const retrying = this.lastWaiting.then(() => this.retry<R>(inner, query, deadline))
    this.lastWaiting = retrying.catch(() => {})
    return retrying
  }

  /**
   * Retries a statement until the lock is free or the deadline has passed. Settles while this object holds the
   * connection, because the caller releases it.
   */
  private async retry<R>(
    inner: DatabaseConnection,
    query: CompiledQuery,
    deadline: number,
  ): Promise<QueryResult<R>> {
    for (;;) {
      await super.acquireConnection()
      try {
        return await inner.executeQuery<R>(query)
      } catch (error) {
        if (!isBusy(error) || systemClock.monotonic() >= deadline) throw error
      }
      await this.releaseConnection()
      await systemClock.wait(RETRY_EVERY_MS)
    }
  }
}

export function isBusy(error: unknown): boolean {
  return error instanceof Sqlite.SqliteError && error.code.startsWith('SQLITE_BUSY')
}
