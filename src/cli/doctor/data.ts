/**
 * Implements the data directory checks of `parley doctor`. They do not create or change data, but `checkLock`
 * briefly acquires the lock.
 */
import { access, constants, stat, statfs } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { loadSealer } from '../../agents/sealed-keys.ts'
import type { Config } from '../../config/config.ts'
import {
  assertDatabaseNotEmptied,
  assertNoFilesBesideEmptyDatabase,
  databaseName,
  hasSecret,
  makeDataDirectory,
  prepareDataDirectory,
} from '../../db/data-directory.ts'
import type { Database } from '../../db/database.ts'
import { acquireLock, isLockTaken, lockName } from '../../db/lock.ts'
import { listPendingMigrations, migrations } from '../../db/migrate.ts'
import { findDirectoryProblem, findFileProblem } from '../../db/permissions.ts'
import { assertSound, damaged, openSqlite, toKysely } from '../../db/sqlite.ts'
import { StartupError } from '../../lib/errors.ts'
import { hasProviderKeyOfOtherSecret } from '../../models/sealed-provider-keys.ts'
import { type Diagnostic, fail, ok, reasonOf, warn } from './diagnostic.ts'

const GIBIBYTE = 1024 ** 3
const LEAST_FREE_BYTES = 2 * GIBIBYTE
const LEAST_FREE_SHARE = 0.05

export async function checkDataDirectory({
  dataDir,
  databaseUrl,
}: Pick<Config, 'dataDir' | 'databaseUrl'>): Promise<Diagnostic> {
  const check = 'data directory'
  if (!(await exists(dataDir))) return checkParent(check, dataDir)
  try {
    if (databaseUrl === undefined) {
      await prepareDataDirectory(dataDir)
      await assertDatabaseNotEmptied(dataDir)
    } else await makeDataDirectory(dataDir)
  } catch (error) {
    return fail(check, reasonOf(error))
  }
  const problem = await findDirectoryProblem(dataDir)
  return problem === undefined ? ok(check, dataDir) : warn(check, problem)
}

async function checkParent(check: string, dataDir: string): Promise<Diagnostic> {
  const parent = await findExisting(dirname(dataDir))
  try {
    if (!(await stat(parent)).isDirectory())
      return fail(check, `${dataDir} cannot be created: ${parent} is a file`)
    await access(parent, constants.W_OK | constants.X_OK)
    return ok(check, `${dataDir} does not exist yet; the first start creates it`)
  } catch (error) {
    return fail(
      check,
      `${dataDir} cannot be created (${reasonOf(error)}); set PARLEY_DATA_DIR to another directory`,
    )
  }
}

export async function checkFreeSpace({
  dataDir,
  s3,
  limits,
}: Pick<Config, 'dataDir' | 's3' | 'limits'>): Promise<Diagnostic> {
  const { bavail, blocks, bsize } = await statfs(await findExisting(dataDir))
  const [freeBytes, share] = [bavail * bsize, blocks === 0 ? 1 : bavail / blocks]
  const found = `${(freeBytes / GIBIBYTE).toFixed(1)} GiB (${Math.floor(share * 100)}%) of disk space free`
  const { storageQuotaBytes: quotaBytes } = limits
  if (freeBytes >= LEAST_FREE_BYTES && share >= LEAST_FREE_SHARE) {
    if (s3 !== undefined || (quotaBytes > 0 && quotaBytes <= freeBytes)) return ok('free space', found)
    const most = quotaBytes === 0 ? 'unlimited data' : `${(quotaBytes / GIBIBYTE).toFixed(1)} GiB`
    return warn(
      'free space',
      `${found}, but each parent key may store ${most}; lower PARLEY_STORAGE_QUOTA_BYTES or free up space`,
    )
  }
  return warn('free space', `only ${found}; free up space until at least 2 GiB and 5% are free`)
}

export async function checkDatabase(config: Config): Promise<Diagnostic[]> {
  const { dataDir } = config
  const path = join(dataDir, databaseName)
  if (!(await exists(path))) {
    const message = `${dataDir} has no database yet; the first start creates it`
    return [warn('database', message), await checkSecret(config, undefined)]
  }
  try {
    await access(path, constants.R_OK | constants.W_OK)
    return await checkOpenedDatabase(config, path)
  } catch (error) {
    return [fail('database', sentenceOf(error, path))]
  }
}

async function checkOpenedDatabase(config: Config, path: string): Promise<Diagnostic[]> {
  const connection = openSqlite(path)
  try {
    const version = String(connection.prepare('select sqlite_version()').pluck().get())
    assertSound(connection, path)
    const db = toKysely(connection)
    const pending = await listPendingMigrations(db, migrations)
    if (pending.length === Object.keys(migrations).length)
      await assertNoFilesBesideEmptyDatabase(config.dataDir)
    if (pending.length > 0) {
      const message = `SQLite ${version}, no corruption found; the next start runs these migrations: ${pending.join(', ')}`
      return [warn('database', message)]
    }
    const message = `SQLite ${version}, no corruption found, up to date`
    return [ok('database', message), await checkSecret(config, db)]
  } finally {
    connection.close()
  }
}

/** Describes why a SQLite file cannot be used, and what to do about it. */
export function sentenceOf(error: unknown, path: string): string {
  const isDamage = error instanceof Error && 'code' in error && /NOTADB|CORRUPT/.test(String(error.code))
  if (isDamage) return damaged(path, error.message).message
  if (error instanceof StartupError) return error.message
  return `${path} cannot be opened (${reasonOf(error)}); give the server's OS user read and write permission`
}

/** Checks whether a server is running on the directory by briefly acquiring its lock. */
export async function checkLock(dataDir: string): Promise<Diagnostic> {
  const check = 'server'
  const none = ok(check, `no server is running on ${dataDir}`)
  if (!(await exists(join(dataDir, lockName)))) return none
  try {
    acquireLock(dataDir).release()
    return none
  } catch (error) {
    const [, pid] = /\(process (\d+)\)/.exec(reasonOf(error)) ?? []
    if (!isLockTaken(error)) return fail(check, reasonOf(error))
    return ok(check, `a server${pid === undefined ? '' : ` (process ${pid})`} is running on ${dataDir}`)
  }
}

async function findExisting(path: string): Promise<string> {
  if ((await exists(path)) || path === dirname(path)) return path
  return findExisting(dirname(path))
}

function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  )
}

/** Checks that the secret file exists before it loads the secret, because loading creates a missing file. */
export async function checkSecret(config: Config, db: Database | undefined): Promise<Diagnostic> {
  const check = 'secret'
  const { dataDir, secret } = config
  const path = join(dataDir, 'secret')
  const isThere = await hasSecret(dataDir)
  try {
    const hasKeys =
      db !== undefined && ((await findAnyAgent(db)) || (await hasProviderKeyOfOtherSecret(db, [])))
    if (secret === undefined && !isThere && !hasKeys) {
      return ok(check, 'no secret yet; the first start creates it')
    }
    if (db !== undefined) await loadSealer(config, { db, random: rejectNewSecret })
  } catch (error) {
    return fail(check, reasonOf(error))
  }
  const found = db === undefined ? 'exists' : 'decrypts the stored agent keys'
  if (secret !== undefined) return ok(check, `PARLEY_SECRET ${found}${describeFormer(config)}`)
  const problem = await findFileProblem(path)
  return problem === undefined ? ok(check, `${path} ${found}${describeFormer(config)}`) : warn(check, problem)
}

function describeFormer({ formerSecrets }: Config): string {
  return formerSecrets.length === 0 ? '' : '; remove PARLEY_SECRET_PREVIOUS 30 days after you set it'
}

async function findAnyAgent(db: Database): Promise<boolean> {
  return (await db.selectFrom('agents').select('id').limit(1).executeTakeFirst()) !== undefined
}

function rejectNewSecret(): never {
  throw new StartupError('The secret was deleted during this check; run it again.')
}
