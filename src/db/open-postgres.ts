/** Opens a PostgreSQL database, which several servers and commands may share. */
import { type Kysely, PostgresDialect, PostgresQueryCompiler, type Transaction } from 'kysely'
import { Client, type Pool } from 'pg'
import type { Logger } from 'pino'
import { systemClock } from '../lib/clock.ts'
import { StartupError } from '../lib/errors.ts'
import { conversationMigrations } from './conversations/migrations.ts'
import { assertNothingToCopy, assertUnused, makeDataDirectory } from './data-directory.ts'
import type { OpenedDatabase, OpenOptions } from './database.ts'
import { startDatabaseClock } from './database-clock.ts'
import { applyPostgresMigrations, applyWithin, assertNonePending, listPendingMigrations } from './migrate.ts'
import { migrations as mainMigrations } from './migrations/index.ts'
import {
  createAreas,
  createBackgroundPool,
  createMigrationPool,
  createPool,
  DatabaseUnavailable,
  endPool,
  sumPools,
  toClientConfig,
  toConnections,
  toDatabaseError,
  toPostgresKysely,
} from './postgres.ts'
import type { Tables } from './tables.ts'

/** Includes the migrations of stored conversations, which have a separate database only with SQLite. */
const migrations = { ...mainMigrations, ...conversationMigrations }

/** PostgreSQL 14, in the format of `server_version_num`. */
const OLDEST_POSTGRES = 140_000

/** @throws StartupError if the database is not usable. The message does not contain the password. */
export async function openPostgresDatabase(
  options: OpenOptions & { readonly databaseUrl: string },
): Promise<OpenedDatabase> {
  const { dataDir, databaseUrl, role, log = quiet } = options
  if (role === 'server' && dataDir !== ':memory:') await makeDataDirectory(dataDir)
  const { db, pool, connections, pending, target, close } = await inspectPostgres(databaseUrl, log)
  try {
    if (role === 'command') assertNonePending(pending)
    const isNew = pending.length === Object.keys(migrations).length
    if (dataDir !== ':memory:') {
      if (isNew) await assertUnused(dataDir)
      else if (role === 'server' && !(await hasKeys(db))) await assertNothingToCopy(dataDir)
    }
    if (pending.length > 0)
      await withMigrator(databaseUrl, log, (migrator) => applyPostgresMigrations(migrator, migrations))
    const createClient = () => new Client(toClientConfig(databaseUrl))
    const clock = await startDatabaseClock(db, systemClock, log)
    const background = createBackgroundPool(databaseUrl, log)
    const backgroundConnections = toConnections(background)
    const areas = createAreas(connections)
    const countWaiting = () =>
      [connections, backgroundConnections, areas].reduce((sum, each) => sum + each.countWaiting(), 0)
    return {
      db,
      backgroundDb: toPostgresKysely(backgroundConnections),
      dbFor: areas.dbFor,
      isOnlyServer: false,
      postgres: { createClient, readPool: () => sumPools([pool, background], countWaiting()) },
      clock,
      async close() {
        clock.stop()
        await Promise.all([close(), endPool(background)])
      },
    }
  } catch (error) {
    await close()
    throw toStartupError(error, target)
  }
}

/** Returns whether any parent key exists; the first start creates one. */
async function hasKeys(db: Kysely<Tables>): Promise<boolean> {
  return (await db.selectFrom('parent_keys').select('id').limit(1).executeTakeFirst()) !== undefined
}

/** Opens the database without changing it. @throws StartupError if the database is not usable. */
export async function inspectPostgres(databaseUrl: string, log: Pick<Logger, 'warn'> = quiet) {
  const target = readTarget(databaseUrl)
  const pool = createPool(databaseUrl, log)
  const close = () => endPool(pool)
  try {
    const { version, is_encrypted: isEncrypted } = await readTraits(pool, target)
    const connections = toConnections(pool)
    const db = toPostgresKysely(connections)
    const pending = await listPendingMigrations(db, migrations)
    return { db, pool, connections, version, isEncrypted, pending, target, close }
  } catch (error) {
    await close()
    throw toStartupError(error, target)
  }
}

const quiet = { warn() {} }

interface Target {
  readonly server: string
  readonly database: string
  readonly user: string
}

function readTarget(databaseUrl: string): Target {
  try {
    const { host, port, database, user } = new Client(toClientConfig(databaseUrl))
    const server = host.startsWith('/') ? host : `${host.includes(':') ? `[${host}]` : host}:${port}`
    return { server, database: database ?? '', user: user ?? '' }
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new StartupError(`DATABASE_URL is not usable (${reason}).`, { cause: error })
  }
}

interface Traits {
  readonly version: string
  readonly version_number: number
  readonly encoding: string
  readonly is_standby: boolean
  readonly is_encrypted: boolean
}

const traits = `select split_part(current_setting('server_version'), ' ', 1) as version,
  current_setting('server_version_num')::int as version_number, current_setting('server_encoding') as encoding,
  pg_is_in_recovery() as is_standby, (select ssl from pg_stat_ssl where pid = pg_backend_pid()) as is_encrypted`

async function readTraits(pool: Pool, { server, database }: Target): Promise<Traits> {
  const { rows } = await pool.query<Traits>(traits).catch((error: unknown) => {
    throw toDatabaseError(error)
  })
  const found = rows[0] as Traits
  const name = `PostgreSQL at ${server}`
  if (found.version_number < OLDEST_POSTGRES)
    throw new StartupError(
      `${name} is too old (${found.version}): version ${OLDEST_POSTGRES / 10_000} or newer is required.`,
    )
  if (found.encoding !== 'UTF8') {
    throw new StartupError(
      `The database ${database} of ${name} uses the encoding ${found.encoding}; create a database with \`createdb --encoding=UTF8 --template=template0\`.`,
    )
  }
  if (found.is_standby)
    throw new StartupError(`${name} is a read-only standby; set DATABASE_URL to the primary.`)
  return found
}

/**
 * Applies the migrations and calls `run` in one transaction. Starting servers wait until it ends.
 * @throws StartupError
 */
export async function fillPostgres<T>(
  databaseUrl: string,
  run: (trx: Transaction<Tables>) => Promise<T>,
): Promise<T> {
  const { target, close } = await inspectPostgres(databaseUrl)
  await close()
  const fill = async (trx: Transaction<Tables>) => {
    await applyWithin(trx, migrations)
    return run(trx)
  }
  return withMigrator(databaseUrl, quiet, (db) => db.transaction().execute(fill)).catch((error) => {
    throw toStartupError(error, target)
  })
}

async function withMigrator<T>(
  databaseUrl: string,
  log: Pick<Logger, 'warn'>,
  run: (db: Kysely<Tables>) => Promise<T>,
): Promise<T> {
  const pool = createMigrationPool(databaseUrl, log)
  const db = toPostgresKysely(toConnections(pool), (on) => new BinaryTextDialect({ pool: on }))
  try {
    return await run(db)
  } finally {
    await db.destroy()
  }
}

/** Sorts text by bytes, as SQLite does, regardless of the database locale. */
class BinaryTextDialect extends PostgresDialect {
  override createQueryCompiler() {
    return new BinaryTextCompiler()
  }
}

class BinaryTextCompiler extends PostgresQueryCompiler {
  protected override visitDataType(node: Parameters<PostgresQueryCompiler['visitDataType']>[0]): void {
    super.visitDataType(node)
    if (node.dataType === 'text') this.append(' collate "C"')
  }
}

function toStartupError(error: unknown, target: Target): unknown {
  if (error instanceof StartupError || !(error instanceof Error)) return error
  return new StartupError(explain(error, target), { cause: error })
}

function explain(error: Error, { server, database, user }: Target): string {
  const code = 'code' in error ? String(error.code) : ''
  if (code.startsWith('28'))
    return `PostgreSQL at ${server} denies ${user} access to the database ${database} with the password in DATABASE_URL (${error.message}).`
  if (code === '3D000')
    return `PostgreSQL at ${server} has no database ${database}; create it with \`createdb\`, or set DATABASE_URL to another database.`
  if (code === '55P03')
    return `The database ${database} at ${server} could not be migrated, because other connections locked it for a minute; try again.`
  if (error instanceof DatabaseUnavailable)
    return `The database ${database} at ${server} is unreachable (${error.message}); start PostgreSQL there, or correct DATABASE_URL.`
  return `The database ${database} at ${server} is not usable (${error.message}).`
}
