/** Connections to PostgreSQL with the settings every one of ours has, and Kysely over them. */

import { Socket } from 'node:net'
import { type Dialect, Kysely, PostgresDialect, type PostgresPool, type PostgresPoolClient } from 'kysely'
import { Client, type ClientConfig, DatabaseError, Pool, type PoolClient, types } from 'pg'
import type { Logger } from 'pino'
import type { Tables } from './tables.ts'

const POOL_CONNECTIONS = 20
/** Whoever gets no connection by then is told that the database is away. */
const CONNECT_TIMEOUT_MS = 2_000
const IDLE_CONNECTION_MS = 30_000
/** Longer than any statement may take there: past it nobody is at the other end. */
const ANSWER_TIMEOUT_MS = 12_000

/** Security: 2.12. */
const sessionSettings = {
  statement_timeout: '10s',
  lock_timeout: '5s',
  idle_in_transaction_session_timeout: '15s',
  synchronous_commit: 'on',
}

/** For whoever brings the schema up to date: that may take its time, and so may another server's turn at it. */
const migrationSettings = { lock_timeout: '60s', idle_in_transaction_session_timeout: '15s' }

/** What SQLite gives as numbers arrives as numbers: counts and times (int8), and sums of them (numeric). */
const numberTypes: ReadonlySet<number> = new Set([types.builtins.INT8, types.builtins.NUMERIC])

const getTypeParser: typeof types.getTypeParser = (oid: number, format?: 'text' | 'binary') =>
  numberTypes.has(oid) ? Number : types.getTypeParser(oid, format as 'text')

/** A PostgreSQL database beside its rows: for whoever is to hear what other processes say there. */
export interface PostgresAccess {
  /** A connection outside the pool, not yet made; whoever asks for it hears its errors and ends it. */
  createClient(): Client
  /** How the pool is used at the moment. */
  readPool(): PoolUse
}

export interface PoolUse {
  readonly busy: number
  readonly idle: number
  /** Statements that wait for a connection. */
  readonly waiting: number
}

export function readPool({ totalCount, idleCount, waitingCount }: Pool): PoolUse {
  return { busy: totalCount - idleCount, idle: idleCount, waiting: waitingCount }
}

/** What a connection is made with. @throws Error for a URL that names a certificate that cannot be read. */
export function toClientConfig(
  databaseUrl: string,
  settings: Readonly<Record<string, string>> = sessionSettings,
): ClientConfig {
  const url = new URL(databaseUrl)
  const given = url.searchParams.get('options')
  const options = Object.entries(settings).map(([name, value]) => `-c ${name}=${value}`)
  url.searchParams.set('options', [...(given === null ? [] : [given]), ...options].join(' '))
  // What the library does with these anyway, after a warning; the weaker meaning is had by `uselibpqcompat`.
  const isStrict = /^(prefer|require|verify-ca)$/.test(url.searchParams.get('sslmode') ?? '')
  if (isStrict && !url.searchParams.has('uselibpqcompat')) url.searchParams.set('sslmode', 'verify-full')
  return {
    connectionString: url.href,
    fallback_application_name: 'parley',
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    keepAlive: true,
    stream: () => new GuardedSocket(),
    types: { getTypeParser },
  }
}

/** A pool whose lost connections are told to the log, and made anew when they are needed. Security: 2.12. */
export function createPool(databaseUrl: string, log: Pick<Logger, 'warn'>): Pool {
  const pool = new Pool({
    ...toClientConfig(databaseUrl),
    max: POOL_CONNECTIONS,
    idleTimeoutMillis: IDLE_CONNECTION_MS,
    query_timeout: ANSWER_TIMEOUT_MS,
  })
  return withListeners(pool, log)
}

/** One connection for one migration after another, without a bound on what a statement takes. */
export function createMigrationPool(databaseUrl: string, log: Pick<Logger, 'warn'>): Pool {
  return withListeners(new Pool({ ...toClientConfig(databaseUrl, migrationSettings), max: 1 }), log)
}

/** Without them a connection that is lost would end the process. */
function withListeners(pool: Pool, log: Pick<Logger, 'warn'>): Pool {
  pool.on('connect', (client) => client.on('error', () => {}))
  // The error itself holds the whole connection.
  pool.on('error', ({ message }) =>
    log.warn({ reason: message }, 'an idle connection to the database was lost'),
  )
  return pool
}

/** Kysely over a pool, which is closed with it. */
export function toPostgresKysely(
  pool: Pool,
  toDialect = (on: PostgresPool): Dialect => new PostgresDialect({ pool: on }),
): Kysely<Tables> {
  return new Kysely<Tables>({ dialect: toDialect(toKyselyPool(pool)) })
}

/** Closes it, once. */
export async function endPool(pool: Pool): Promise<void> {
  if (!pool.ending) await pool.end()
}

function toKyselyPool(pool: Pool): PostgresPool {
  const pulse = createLivenessProbe(pool.options)
  return {
    async connect() {
      const client = await pool.connect().catch((error: unknown) => {
        throw toDatabaseError(error)
      })
      return toKyselyClient(client, pulse)
    },
    end: () => endPool(pool),
  }
}

/** The character U+0000 is in no row here: who looks for it finds nothing, and who would write it is refused by the server. */
function toStorable(text: string, parameters: readonly unknown[]): unknown[] {
  if (!/^(select|delete)/.test(text)) return [...parameters]
  return parameters.map((value) => (typeof value === 'string' ? value.replaceAll('\0', '\uFFFD') : value))
}

/** A connection that has failed is not used again: an answer that comes late must not be taken for the next one's. */
function toKyselyClient(client: PoolClient, pulse: LivenessProbe): PostgresPoolClient {
  let isBroken = false
  async function query(text: string, parameters: readonly unknown[]) {
    // There is nothing left to roll back, and why is known already.
    if (isBroken && text === 'rollback') return { command: 'SELECT' as const, rowCount: 0, rows: [] }
    const endWatch = pulse.watch(client)
    try {
      return await client.query(text, toStorable(text, parameters))
    } catch (error) {
      isBroken ||= !isFromServer(error)
      throw toDatabaseError(error)
    } finally {
      endWatch()
    }
  }
  return { query, release: () => client.release(isBroken) } as unknown as PostgresPoolClient
}

/** The code of a `DatabaseUnavailable`, beside those of SQLite and PostgreSQL. */
export const DATABASE_AWAY = 'DATABASE_AWAY'

/** Nobody answers at the other end, or no connection was free in time. */
export class DatabaseUnavailable extends Error {
  override readonly name = 'DatabaseAway'
  readonly code = DATABASE_AWAY
}

/** The server is about to go, or may not be written to after a change of roles: the connection is of no use any more. */
const endingCodes: ReadonlySet<string> = new Set(['57P01', '57P02', '57P03', '57P05', '25006', '25P03'])

/** Whether the server itself has said so, on a connection that can be used again. */
export function isFromServer(error: unknown): boolean {
  return error instanceof DatabaseError && !endingCodes.has(error.code ?? '')
}

/**
 * An error of a statement or of a connection, as the service and its log may have it. The server's own keep their code; `detail`,
 * which quotes rows, goes. Everything else but a mistake of ours is a database that is away.
 */
export function toDatabaseError(error: unknown): unknown {
  if (error instanceof DatabaseError) {
    for (const field of ['detail', 'where', 'internalQuery', 'hint'] as const) delete error[field]
    return error
  }
  if (!(error instanceof Error) || error instanceof TypeError) return error
  // Many of these hold the connection, settings and all.
  const { code } = error as NodeJS.ErrnoException
  const reason =
    code === undefined || error.message.includes(code) ? error.message : `${code} ${error.message}`
  return new DatabaseUnavailable(reason.trim())
}

/** Only then is it asked: most statements are answered long before. */
const SLOW_AFTER_MS = 2_000

export interface LivenessProbe {
  /**
   * Watches over a statement: while it goes on for long and no new connection can be made either, its connection is closed, and it fails.
   * The answer ends the watch.
   */
  watch(client: PoolClient): () => void
}

/** Asks with connections of that kind, one at a time for all statements. */
export function createLivenessProbe(config: ClientConfig): LivenessProbe {
  let asking: Promise<boolean> | undefined

  function isAlive(): Promise<boolean> {
    asking ??= canConnect(config).finally(() => {
      asking = undefined
    })
    return asking
  }

  return {
    watch(client) {
      let isOver = false
      const timer = setTimeout(async () => {
        // With a statement under way this does not wait for the server.
        if (!(await isAlive()) && !isOver) await (client as unknown as Client).end()
      }, SLOW_AFTER_MS).unref()
      return () => {
        isOver = true
        clearTimeout(timer)
      }
    },
  }
}

async function canConnect(config: ClientConfig): Promise<boolean> {
  const client = new Client(config)
  client.on('error', () => {})
  try {
    await client.connect()
    return true
  } catch {
    return false
  } finally {
    void client.end().catch(() => {})
  }
}

/** pg parses within the `data` event, where a message that is shorter than it says makes its parser throw. */
class GuardedSocket extends Socket {
  override emit(event: string | symbol, ...args: unknown[]): boolean {
    if (event !== 'data') return super.emit(event, ...args)
    try {
      return super.emit(event, ...args)
    } catch (error) {
      this.destroy(error instanceof Error ? error : new Error(String(error)))
      return true
    }
  }
}
