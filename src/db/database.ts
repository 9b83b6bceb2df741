/** The types of an open database. */
import type { Kysely } from 'kysely'
import type { Logger } from 'pino'
import type { PostgresAccess } from './postgres.ts'
import type { Tables } from './tables.ts'

export type Database = Kysely<Tables>

/** A `server` creates, migrates and locks the database. A `command` needs a migrated one and may run next to a server. */
export type Role = 'server' | 'command'

export interface OpenOptions {
  /** The data directory, or `:memory:`. Contains the database unless `databaseUrl` is set. */
  readonly dataDir: string
  readonly databaseUrl?: string | undefined
  readonly role: Role
  readonly log?: Pick<Logger, 'warn'>
}

export interface OpenedDatabase {
  readonly db: Database
  /** Whether no other server can use the database, so that leases in it are void at start. */
  readonly isOnlyServer: boolean
  readonly postgres: PostgresAccess | undefined
  /** Flushes and closes the database and releases its lock; safe to call twice. */
  close(): Promise<void>
}
