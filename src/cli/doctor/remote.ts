/** The checks of `parley doctor` that compare this machine's clock with others, and look at the Redis that replicas share. */

import { sql } from 'kysely'
import { namedBlobs } from '../../artifacts/maintenance.ts'
import type { Config } from '../../config/config.ts'
import { findInstallation } from '../../db/installation.ts'
import { openDatabase } from '../../db/open.ts'
import { inspectPostgres } from '../../db/open-postgres.ts'
import { systemClock } from '../../lib/clock.ts'
import { StartupError } from '../../lib/errors.ts'
import { findUnmarkedFolders } from '../../storage/mark.ts'
import { assertNothingLeft } from '../../storage/open.ts'
import { type Finding, fail, ok, reasonOf, warn } from './check.ts'
import { checkSecret } from './data.ts'

/** Leases and expiry of several servers go by their clocks. */
const MOST_APART_MS = 2_000

/** Another clock, and when by ours it was read. */
interface Reading {
  readonly whose: string
  readonly apartMs: number
}

/** Redis and the clocks; the first only where there is one, and a database that is away is told of by another check. */
export async function checkRedisAndClock(config: Config): Promise<Finding[]> {
  const { finding, reading } = await readRedis(config)
  const readings = [reading, ...(await readDatabase(config))].filter((one) => one !== undefined)
  return [...finding, checkClock(readings)]
}

function checkClock(readings: readonly Reading[]): Finding {
  const now = new Date(systemClock.now()).toISOString()
  const wrong = readings.find(({ apartMs }) => Math.abs(apartMs) > MOST_APART_MS)
  if (wrong !== undefined) {
    const seconds = Math.round(Math.abs(wrong.apartMs) / 1_000)
    const side = wrong.apartMs > 0 ? 'behind' : 'ahead of'
    return warn('clock', `${now} is ${seconds} s ${side} ${wrong.whose}; have NTP set it on both machines`)
  }
  return ok('clock', [now, ...readings.map(({ whose }) => `as ${whose} has it`)].join(', '))
}

async function readRedis({
  redisUrl,
}: Config): Promise<{ readonly finding: Finding[]; readonly reading?: Reading | undefined }> {
  if (redisUrl === undefined) return { finding: [] }
  const { host } = new URL(redisUrl)
  const { examineRedis } = await import('../../replicas/probe-redis.ts')
  try {
    const { version, now } = await examineRedis(redisUrl)
    const reading = { whose: `Redis at ${host}`, apartMs: now - systemClock.now() }
    return { finding: [ok('redis', `Redis ${version} at ${host}`)], reading }
  } catch (error) {
    const message = `Redis at ${host} cannot be used (${reasonOf(error)}); start it, or correct REDIS_URL: without it each server enforces its share of the limits`
    return { finding: [warn('redis', message)] }
  }
}

/** PostgreSQL's clock; in SQLite, where there is none, a time that cannot be in the future. */
async function readDatabase(config: Config): Promise<Reading[]> {
  const { databaseUrl, dataDir } = config
  if (databaseUrl === undefined && dataDir === ':memory:') return []
  const opened = await openDatabase({ ...config, role: 'command' }).catch(() => undefined)
  if (opened === undefined) return []
  try {
    if (databaseUrl === undefined) {
      const newest = opened.db.selectFrom('audit_events').select(({ fn }) => fn.max('created_at').as('at'))
      const writtenAt = Number((await newest.executeTakeFirst())?.at ?? 0)
      const apartMs = Math.max(0, writtenAt * 1_000 - systemClock.now())
      return apartMs === 0 ? [] : [{ whose: 'what was written last', apartMs }]
    }
    const query = sql<{ now: number }>`select extract(epoch from clock_timestamp()) * 1000 as now`
    const { rows } = await query.execute(opened.db)
    return [{ whose: 'PostgreSQL', apartMs: Number(rows[0]?.now) - systemClock.now() }]
  } catch {
    return []
  } finally {
    await opened.close()
  }
}

type BucketConfig = Pick<Config, 's3' | 'dataDir' | 'databaseUrl'>

/** Nothing where there is no bucket. */
export async function checkBucket(config: BucketConfig): Promise<Finding[]> {
  const { s3, dataDir } = config
  if (s3 === undefined) return []
  const check = 'bucket'
  const where = `${s3.bucket} at ${s3.endpoint ?? `AWS (${s3.region})`}`
  try {
    const { checkBucket } = await import('../../storage/probe-s3.ts')
    const installationId = await findInstallationId(config)
    let canListUnfinished = true
    for (const store of ['files', 'artifacts']) {
      await assertNothingLeft(dataDir, store, s3)
      canListUnfinished = (await checkBucket(s3, store, installationId)) && canListUnfinished
    }
    if (canListUnfinished) return [ok(check, `${where} can be read and written`)]
    const message = `${where} can be read and written, but unfinished uploads cannot be listed; have the bucket abort them after a day, or allow s3:ListBucketMultipartUploads`
    return [warn(check, message)]
  } catch (error) {
    if (!(error instanceof StartupError)) throw error
    return [fail(check, error.message)]
  }
}

/** Whether the folders belong to this database. Nothing where there is a bucket, or no database that can be used. */
export async function checkFolders(config: BucketConfig): Promise<Finding[]> {
  if (config.s3 !== undefined || config.dataDir === ':memory:') return []
  const opened = await openDatabase({ ...config, role: 'command' }).catch(() => undefined)
  if (opened === undefined) return []
  const check = 'stored files'
  try {
    await findUnmarkedFolders(config, opened.db, namedBlobs)
    return [ok(check, 'they belong to this database')]
  } catch (error) {
    if (!(error instanceof StartupError)) throw error
    return [fail(check, error.message)]
  } finally {
    await opened.close()
  }
}

/** Undefined before the first start, and where the database cannot be used, of which another check tells. */
async function findInstallationId(config: BucketConfig): Promise<string | undefined> {
  const opened = await openDatabase({ ...config, role: 'command' }).catch(() => undefined)
  try {
    return opened && (await findInstallation(opened.db))?.id
  } finally {
    await opened?.close()
  }
}

/** The database, whether it is reached in the open, and the secret that its agent keys are sealed with. */
export async function checkPostgres(config: Config, databaseUrl: string): Promise<Finding[]> {
  const check = 'database'
  try {
    const { db, version, isEncrypted, pending, target, close } = await inspectPostgres(databaseUrl)
    try {
      const found = `PostgreSQL ${version}, ${target.database} at ${target.server}`
      const isNear = /^(127\.|\[::1\]|localhost:|\/)/.test(target.server)
      const connection =
        isEncrypted || isNear
          ? []
          : [
              warn(
                'connection',
                `${target.server} is reached unencrypted; add ?sslmode=verify-full to DATABASE_URL`,
              ),
            ]
      if (pending.length > 0) {
        const message = `${found}; the next start brings it up to date (${pending.join(', ')})`
        return [warn(check, message), ...connection, await checkSecret(config, undefined)]
      }
      return [ok(check, `${found}, up to date`), ...connection, await checkSecret(config, db)]
    } finally {
      await close()
    }
  } catch (error) {
    if (!(error instanceof StartupError)) throw error
    return [fail(check, error.message)]
  }
}
