/** Runs SQLite statements, and waits outside the statement while another process holds the write lock. */
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
 * SQLite's own busy timeout would block the event loop. Statements that wait give up the connection, so that
 * others can read, and try again in the order in which they came.
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
      // A transaction begins with the lock, and cannot give up the connection.
      if (!isBusy(error) || this.connection.inTransaction) throw error
    }
    await this.releaseConnection()
    const retrying = this.lastWaiting.then(() => this.retry<R>(inner, query, deadline))
    this.lastWaiting = retrying.catch(() => {})
    return retrying
  }

  /** Settles with the connection acquired, as the caller had it. */
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
