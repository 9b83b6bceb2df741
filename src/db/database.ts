/** Defines the types of an open database. */
import type { Kysely } from 'kysely'
import type { Logger } from 'pino'
import type { Clock } from '../lib/clock.ts'
import type { Tables } from './tables.ts'

export type Database = Kysely<Tables>

/**
 * A `server` creates, migrates and locks the database. A `command` requires a migrated database and may run
 * at the same time as a server.
 */
export type Role = 'server' | 'command'

export interface OpenOptions {
  /** The data directory, or `:memory:`. It contains the database unless `databaseUrl` is set. */
  readonly dataDir: string
  readonly databaseUrl?: string | undefined
  readonly role: Role
  readonly log?: Pick<Logger, 'warn'>
}

export interface PoolUse {
  readonly busy: number
  readonly idle: number
  readonly waiting: number
}

/**
 * The part of `pg`'s client that notifications use, declared here so that published types do not depend on
 * `pg`.
 */
export interface NotificationClient {
  connect(): Promise<unknown>
  query(text: string): Promise<unknown>
  on(event: 'error' | 'end', listener: () => void): unknown
  on(event: 'notification', listener: (notification: { payload?: string | undefined }) => void): unknown
  end(): Promise<void>
}

export interface PostgresAccess {
  /** Creates a connection outside the pool. The caller must handle its errors and close it. */
  createClient(): NotificationClient
  readPool(): PoolUse
}

export interface OpenedDatabase {
  readonly db: Database
  /**
   * The database for work outside of requests. With PostgreSQL, this work and requests use different
   * connections.
   */
  readonly backgroundDb: Database
  /**
   * Returns the database for one area of requests; a single area cannot use all connections. Undefined with
   * SQLite, which has one connection.
   */
  readonly dbFor: ((area: string) => Database) | undefined
  /** True if no other server can use the database; existing leases are then void at startup. */
  readonly isOnlyServer: boolean
  readonly postgres: PostgresAccess | undefined
  /** The clock that all processes of the installation share. */
  readonly clock: Clock
  /** Flushes and closes the database and releases its lock; safe to call twice. */
  close(): Promise<void>
}
