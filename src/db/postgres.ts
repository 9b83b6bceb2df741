/** Creates PostgreSQL connection pools with timeouts, and Kysely instances that use them. */
import { Socket } from 'node:net'
import { type Dialect, Kysely, PostgresDialect, type PostgresPool, type PostgresPoolClient } from 'kysely'
import { Client, type ClientConfig, DatabaseError, Pool, type PoolClient, types } from 'pg'
import type { Logger } from 'pino'
import { systemClock } from '../lib/clock.ts'
import type { Database, PoolUse } from './database.ts'
import type { Tables } from './tables.ts'

/** Maximum number of connections for requests, and for other work: jobs, sweeps and replica coordination. */
const REQUEST_CONNECTIONS = 15
const BACKGROUND_CONNECTIONS = 5
const CONNECT_TIMEOUT_MS = 2_000
const IDLE_CONNECTION_MS = 30_000
/** Longer than `statement_timeout`, so that it applies only if the server does not respond. */
const ANSWER_TIMEOUT_MS = 12_000

const sessionSettings = {
  statement_timeout: '10s',
  lock_timeout: '5s',
  idle_in_transaction_session_timeout: '15s',
  synchronous_commit: 'on',
}

/** Migrations can take a long time, and may wait for another server's migrations. */
const migrationSettings = { lock_timeout: '60s', idle_in_transaction_session_timeout: '15s' }

/** These types are returned as numbers, as in SQLite: counts and times (int8) and their sums (numeric). */
const numberTypes: ReadonlySet<number> = new Set([types.builtins.INT8, types.builtins.NUMERIC])

const getTypeParser: typeof types.getTypeParser = (oid: number, format?: 'text' | 'binary') =>
  numberTypes.has(oid) ? Number : types.getTypeParser(oid, format as 'text')

export function sumPools(pools: readonly Pool[], waitingForArea: number): PoolUse {
  const sum = { busy: 0, idle: 0, waiting: waitingForArea }
  for (const { totalCount, idleCount, waitingCount } of pools) {
    sum.busy += totalCount - idleCount
    sum.idle += idleCount
    sum.waiting += waitingCount
  }
  return sum
}

/** @throws Error if a certificate in the URL cannot be read. */
export function toClientConfig(
  databaseUrl: string,
  settings: Readonly<Record<string, string>> = sessionSettings,
): ClientConfig {
  const url = new URL(databaseUrl)
  const given = url.searchParams.get('options')
  const options = Object.entries(settings).map(([name, value]) => `-c ${name}=${value}`)
  url.searchParams.set('options', [...(given === null ? [] : [given]), ...options].join(' '))
  // pg treats these modes as `verify-full` but prints a warning; `uselibpqcompat` selects the weaker libpq
  // modes.
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

export function createPool(
  databaseUrl: string,
  log: Pick<Logger, 'warn'>,
  connections = REQUEST_CONNECTIONS,
): Pool {
  const pool = new Pool({
    ...toClientConfig(databaseUrl),
    max: connections,
    idleTimeoutMillis: IDLE_CONNECTION_MS,
    query_timeout: ANSWER_TIMEOUT_MS,
  })
  return withListeners(pool, log)
}

export function createBackgroundPool(databaseUrl: string, log: Pick<Logger, 'warn'>): Pool {
  return createPool(databaseUrl, log, BACKGROUND_CONNECTIONS)
}

export function createMigrationPool(databaseUrl: string, log: Pick<Logger, 'warn'>): Pool {
  return withListeners(new Pool({ ...toClientConfig(databaseUrl, migrationSettings), max: 1 }), log)
}

/** Adds error listeners, without which a lost connection would crash the process. */
function withListeners(pool: Pool, log: Pick<Logger, 'warn'>): Pool {
  pool.on('connect', (client) => client.on('error', () => {}))
  // Does not log the error itself, because it contains the connection settings.
  pool.on('error', ({ message }) => log.warn({ reason: message }, 'lost an idle database connection'))
  return pool
}

/** Lets callers wait for the connections of a pool. pg's own queue would reject them after two seconds. */
export function toConnections(pool: Pool): Share {
  return createShare(toKyselyPool(pool), pool.options.max)
}

export function toPostgresKysely(
  { pool }: Pick<Share, 'pool'>,
  toDialect = (on: PostgresPool): Dialect => new PostgresDialect({ pool: on }),
): Kysely<Tables> {
  return new Kysely<Tables>({ dialect: toDialect(pool) })
}

export async function endPool(pool: Pool): Promise<void> {
  if (!pool.ending) await pool.end()
}

function toKyselyPool(pool: Pool): PostgresPool {
  const probe = createLivenessProbe(pool.options)
  return {
    async connect() {
      const client = await pool.connect().catch((error: unknown) => {
        throw toDatabaseError(error)
      })
      return toKyselyClient(client, probe)
    },
    end: () => endPool(pool),
  }
}

/** Replaces U+0000 in the parameters of queries, because PostgreSQL rejects it and no row contains it. */
function toStorable(text: string, parameters: readonly unknown[]): unknown[] {
  if (!/^(select|delete)/.test(text)) return [...parameters]
  return parameters.map((value) => (typeof value === 'string' ? value.replaceAll('\0', '\uFFFD') : value))
}

/**
 * Wraps a connection for Kysely. Does not reuse it after a failure, because a late response could be mistaken
 * for the response to another statement.
 */
function toKyselyClient(client: PoolClient, probe: LivenessProbe): PostgresPoolClient {
  let isBroken = false
  async function query(text: string, parameters: readonly unknown[]) {
    // A broken connection needs no rollback, and the caller already has the error.
    if (isBroken && text === 'rollback') return { command: 'SELECT' as const, rowCount: 0, rows: [] }
    const endProbe = probe(client)
    try {
      return await client.query(text, toStorable(text, parameters))
    } catch (error) {
      isBroken ||= !isFromServer(error)
      throw toDatabaseError(error)
    } finally {
      endProbe()
    }
  }
  return { query, release: () => client.release(isBroken) } as unknown as PostgresPoolClient
}

export const DATABASE_AWAY = 'DATABASE_AWAY'

/** Reports that the server does not respond, or that no connection became free in time. */
export class DatabaseUnavailable extends Error {
  override readonly name = 'DatabaseUnavailable'
  readonly code = DATABASE_AWAY
}

/** Error codes of a server that is stopping or has become read-only; its connection must not be reused. */
const endingCodes: ReadonlySet<string> = new Set(['57P01', '57P02', '57P03', '57P05', '25006', '25P03'])

function isFromServer(error: unknown): boolean {
  return error instanceof DatabaseError && !endingCodes.has(error.code ?? '')
}

/**
 * Makes an error safe to log: removes row contents from server errors, and replaces connection errors with
 * `DatabaseUnavailable`.
 */
export function toDatabaseError(error: unknown): unknown {
  if (error instanceof DatabaseError) {
    for (const field of ['detail', 'where', 'internalQuery', 'hint'] as const) delete error[field]
    return error
  }
  if (!(error instanceof Error) || error instanceof TypeError) return error
  // Drops the original error, which may contain the connection settings.
  const { code } = error as NodeJS.ErrnoException
  const reason =
    code === undefined || error.message.includes(code) ? error.message : `${code} ${error.message}`
  return new DatabaseUnavailable(reason.trim())
}

const SLOW_AFTER_MS = 2_000

/**
 * Watches a statement and closes its connection if it is slow and no new connection can be opened. Call the
 * returned function when the statement ends.
 */
type LivenessProbe = (client: PoolClient) => () => void

/** Runs at most one probe at a time; all slow statements share its result. */
function createLivenessProbe(config: ClientConfig): LivenessProbe {
  let asking: Promise<boolean> | undefined

  function isAlive(): Promise<boolean> {
    asking ??= canConnect(config).finally(() => {
      asking = undefined
    })
    return asking
  }

  return (client) => {
    let isOver = false
    const timer = setTimeout(async () => {
      // Closes the connection without waiting for the statement.
      if (!(await isAlive()) && !isOver) await (client as unknown as Client).end()
    }, SLOW_AFTER_MS).unref()
    return () => {
      isOver = true
      clearTimeout(timer)
    }
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

/**
 * Closes the connection after a malformed message. pg parses messages in the `data` event, where an exception
 * would crash the process.
 */
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

/**
 * Less than half of the pool, so that two areas with waiting statements leave a connection for the others.
 */
const AREA_CONNECTIONS = 7

/** Maximum time for a wait in which no other caller finishes its statements, and for any wait, in milliseconds. */
const STALLED_MS = 2_000
const MOST_WAIT_MS = 10_000

interface Areas {
  dbFor(area: string): Database
  /** Returns the number of statements and transactions that are waiting for a connection in their area. */
  countWaiting(): number
}

export function createAreas({ pool }: Pick<Share, 'pool'>): Areas {
  const areas = new Map<string, { readonly db: Database; readonly share: Share }>()

  function createArea() {
    const share = createShare(pool, AREA_CONNECTIONS)
    return { share, db: new Kysely<Tables>({ dialect: new PostgresDialect({ pool: share.pool }) }) }
  }

  return {
    dbFor(area) {
      const known = areas.get(area) ?? createArea()
      areas.set(area, known)
      return known.db
    },
    countWaiting: () => [...areas.values()].reduce((sum, { share }) => sum + share.countWaiting(), 0),
  }
}

export interface Share {
  readonly pool: PostgresPool
  countWaiting(): number
}

/**
 * Lets at most `limit` callers use a connection at the same time. The others wait in order of arrival. A wait fails
 * only if no other caller finishes its statements for two seconds, or after ten seconds, so that a burst of requests is
 * delayed but not rejected.
 */
function createShare(connections: PostgresPool, limit: number): Share {
  let free = limit
  /** Waiting requests in order of arrival. */
  const waiting = new Set<Waiting>()
  let lastFinish = 0
  let timer: NodeJS.Timeout | undefined

  function acquire(): Promise<void> | undefined {
    if (free > 0) {
      free -= 1
      return undefined
    }
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    waiting.add({ since: systemClock.monotonic(), start: resolve, fail: reject })
    watch()
    return promise
  }

  /** Checks the first request, which has waited longest. */
  function watch(): void {
    const [first] = waiting
    if (timer !== undefined || first === undefined) return
    const endsAt = Math.min(Math.max(first.since, lastFinish) + STALLED_MS, first.since + MOST_WAIT_MS)
    timer = setTimeout(
      () => {
        timer = undefined
        if (waiting.has(first) && isOverdue(first)) {
          waiting.delete(first)
          first.fail(new DatabaseUnavailable('no database connection became free in time'))
        }
        watch()
      },
      Math.max(0, endsAt - systemClock.monotonic()),
    )
  }

  function isOverdue({ since }: Waiting): boolean {
    const now = systemClock.monotonic()
    return now >= since + MOST_WAIT_MS || now >= Math.max(since, lastFinish) + STALLED_MS
  }

  function release(): void {
    const [next] = waiting
    if (next === undefined) free += 1
    else {
      waiting.delete(next)
      next.start()
    }
  }

  async function connect(): Promise<PostgresPoolClient> {
    await acquire()
    const client = await connections.connect().catch((error) => {
      release()
      throw error
    })
    let hasWorked = false
    async function query(text: string, parameters: readonly unknown[]) {
      const result = await client.query<never>(text, parameters)
      hasWorked = true
      return result
    }
    const releaseBoth = () => {
      client.release()
      if (hasWorked) lastFinish = systemClock.monotonic()
      release()
    }
    return { query, release: releaseBoth } as unknown as PostgresPoolClient
  }

  return { pool: { connect, end: () => connections.end() }, countWaiting: () => waiting.size }
}

interface Waiting {
  /** Monotonic milliseconds. */
  readonly since: number
  readonly start: () => void
  readonly fail: (error: DatabaseUnavailable) => void
}
