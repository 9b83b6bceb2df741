/** What stores run their queries on. */
import type { Kysely } from 'kysely'
import type { Logger } from 'pino'
import type { PostgresAccess } from './postgres.ts'
import type { Tables } from './tables.ts'

/** A connection or an open transaction. */
export type Database = Kysely<Tables>

/**
 * What the database is opened for. A `server` creates it if there is none and migrates it; with SQLite it takes the directory's lock.
 * A `command` works beside a server on a database that is there and up to date.
 */
export type Role = 'server' | 'command'

/** Where the database is, and what it is opened for. */
export interface OpenOptions {
  /** The data directory, or `:memory:` for one that ends with its process; without `databaseUrl` the database lies there. */
  readonly dataDir: string
  /** A PostgreSQL database; undefined = SQLite. */
  readonly databaseUrl?: string | undefined
  readonly role: Role
  /** Told of connections that are lost. */
  readonly log?: Pick<Logger, 'warn'>
}

/** An open database. */
export interface OpenedDatabase {
  readonly db: Kysely<Tables>
  /** Whether no other server can be at work on it: then whatever a former one has left under way is nobody's. */
  readonly isOnlyServer: boolean
  /** Undefined where the rows lie in SQLite. */
  readonly postgres: PostgresAccess | undefined
  /** Writes everything down, closes the database and gives the directory back; safe to call twice. */
  close(): Promise<void>
}
