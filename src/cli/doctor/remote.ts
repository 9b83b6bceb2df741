/** Implements the `parley doctor` checks for Redis, PostgreSQL, the S3 bucket, stored files and clocks. */
import { sql } from 'kysely'
import { namedBlobs } from '../../artifacts/maintenance.ts'
import type { Config } from '../../config/config.ts'
import type { Database } from '../../db/database.ts'
import { findInstallation } from '../../db/installation.ts'
import { openDatabase } from '../../db/open.ts'
import { inspectPostgres } from '../../db/open-postgres.ts'
import { systemClock } from '../../lib/clock.ts'
import { findUnmarkedFolders } from '../../storage/mark.ts'
import { assertNothingLeft } from '../../storage/open.ts'
import { checkSecret } from './data.ts'
import { type Diagnostic, failOnStartupError, ok, reasonOf, warn } from './diagnostic.ts'

/** Leases and expiry times require synchronized clocks. */
const MOST_CLOCK_SKEW_MS = 2_000

interface ClockSample {
  readonly source: string
  readonly aheadMs: number
}

/**
 * Checks Redis, if configured, and compares clocks. Ignores an unreachable database, which another check
 * reports.
 */
export async function checkRedisAndClock(config: Config): Promise<Diagnostic[]> {
  const { diagnostics, sample } = await readRedis(config)
  const samples = [sample, ...(await readDatabase(config))].filter((one) => one !== undefined)
  return [...diagnostics, checkClock(samples)]
}

function checkClock(samples: readonly ClockSample[]): Diagnostic {
  const now = new Date(systemClock.now()).toISOString()
  const wrong = samples.find(({ aheadMs }) => Math.abs(aheadMs) > MOST_CLOCK_SKEW_MS)
  if (wrong !== undefined) {
    const seconds = Math.round(Math.abs(wrong.aheadMs) / 1_000)
    const side = wrong.aheadMs > 0 ? 'behind' : 'ahead of'
    return warn(
      'clock',
      `the clock of this machine (${now}) is ${seconds} s ${side} that of ${wrong.source}; synchronize both with NTP`,
    )
  }
  const others = samples.map(({ source }) => source).join(' and ')
  return ok('clock', samples.length === 0 ? now : `${now}, the same as the clock of ${others}`)
}

async function readRedis({
  redisUrl,
}: Config): Promise<{ readonly diagnostics: Diagnostic[]; readonly sample?: ClockSample | undefined }> {
  if (redisUrl === undefined) return { diagnostics: [] }
  const { host } = new URL(redisUrl)
  const { probeRedis } = await import('../../replicas/probe-redis.ts')
  try {
    const { version, now } = await probeRedis(redisUrl)
    const sample = { source: `Redis at ${host}`, aheadMs: now - systemClock.now() }
    return { diagnostics: [ok('redis', `Redis ${version} at ${host}`)], sample }
  } catch (error) {
    const message = `Redis at ${host} is not usable (${reasonOf(error)}); start it or correct REDIS_URL. Without Redis, each server enforces only its share of the limits`
    return { diagnostics: [warn('redis', message)] }
  }
}

/** Reads PostgreSQL's clock. For SQLite, reads the newest timestamp, which must not be in the future. */
async function readDatabase(config: Config): Promise<ClockSample[]> {
  const { databaseUrl, dataDir } = config
  if (databaseUrl === undefined && dataDir === ':memory:') return []
  return withOpened(config, [], (db) => sampleClock(db, databaseUrl !== undefined).catch(() => []))
}

async function sampleClock(db: Database, isPostgres: boolean): Promise<ClockSample[]> {
  if (!isPostgres) {
    const newest = db.selectFrom('audit_events').select(({ fn }) => fn.max('created_at').as('at'))
    const writtenAt = Number((await newest.executeTakeFirst())?.at ?? 0)
    const aheadMs = Math.max(0, writtenAt * 1_000 - systemClock.now())
    return aheadMs === 0 ? [] : [{ source: 'the newest row', aheadMs }]
  }
  const query = sql<{ now: number }>`select extract(epoch from clock_timestamp()) * 1000 as now`
  const { rows } = await query.execute(db)
  return [{ source: 'PostgreSQL', aheadMs: Number(rows[0]?.now) - systemClock.now() }]
}

/** Calls `run` with the database. Returns `otherwise` if it cannot be opened, which another check reports. */
async function withOpened<T>(
  config: BucketConfig,
  otherwise: T,
  run: (db: Database) => Promise<T>,
): Promise<T> {
  const opened = await openDatabase({ ...config, role: 'command' }).catch(() => undefined)
  if (opened === undefined) return otherwise
  try {
    return await run(opened.db)
  } finally {
    await opened.close()
  }
}

type BucketConfig = Pick<Config, 's3' | 'dataDir' | 'databaseUrl'>

export async function checkBucket(config: BucketConfig): Promise<Diagnostic[]> {
  const { s3, dataDir } = config
  if (s3 === undefined) return []
  const check = 'bucket'
  const where = `${s3.bucket} at ${s3.endpoint ?? `AWS (${s3.region})`}`
  return failOnStartupError(check, async () => {
    const { checkBucket } = await import('../../storage/probe-s3.ts')
    const installation = await withOpened(config, undefined, findInstallation)
    let canListUnfinished = true
    for (const store of ['files', 'artifacts']) {
      await assertNothingLeft(dataDir, store, s3)
      canListUnfinished = (await checkBucket(s3, store, installation?.id)) && canListUnfinished
    }
    if (canListUnfinished) return [ok(check, `${where} is readable and writable`)]
    const message = `${where} is readable and writable, but unfinished uploads cannot be listed; allow s3:ListBucketMultipartUploads, or add a bucket rule that aborts them after a day`
    return [warn(check, message)]
  })
}

export async function checkFolders(config: BucketConfig): Promise<Diagnostic[]> {
  if (config.s3 !== undefined || config.dataDir === ':memory:') return []
  const check = 'stored files'
  return withOpened(config, [], (db) =>
    failOnStartupError(check, async () => {
      await findUnmarkedFolders(config, db, namedBlobs)
      return [ok(check, 'stored files belong to this database')]
    }),
  )
}

export async function checkPostgres(config: Config, databaseUrl: string): Promise<Diagnostic[]> {
  const check = 'database'
  return failOnStartupError(check, async () => {
    const { db, version, isEncrypted, pending, target, close } = await inspectPostgres(databaseUrl)
    try {
      const found = `PostgreSQL ${version}, ${target.database} at ${target.server}`
      const isLocal = /^(127\.|\[::1\]|localhost:|\/)/.test(target.server)
      const advice = `the connection to ${target.server} is not encrypted; add ?sslmode=verify-full to DATABASE_URL`
      const connection = isEncrypted || isLocal ? [] : [warn('connection', advice)]
      if (pending.length > 0) {
        const message = `${found}; the next start runs these migrations: ${pending.join(', ')}`
        return [warn(check, message), ...connection, await checkSecret(config, undefined)]
      }
      return [ok(check, `${found}, up to date`), ...connection, await checkSecret(config, db)]
    } finally {
      await close()
    }
  })
}
