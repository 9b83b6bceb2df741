/** Creates and checks the data directory and the secret in it. */
import { access, constants, mkdir, readdir, readFile, stat } from 'node:fs/promises'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { StartupError } from '../lib/errors.ts'
import { createFileOnce, isMissing } from '../lib/files.ts'
import type { Random } from '../lib/ids.ts'

export const databaseName = 'parley.db'
export const SECRET_NAME = 'secret'
const SECRET_BYTES = 48
const SHORTEST_SECRET_BYTES = 32

/** Files that may exist before the database: Parley's lock and secret, and `lost+found`. */
const harmless = /^(secret|\.secret-[0-9a-f]+|\.lock|\.lock-journal|lost\+found)$/

const databaseFile = /^parley\.db(-wal|-shm|-journal)?$/

/**
 * Creates the data directory if it is missing.
 * @throws StartupError if it is not writable, or contains other files but no database.
 */
export async function prepareDataDirectory(dataDir: string): Promise<void> {
  await makeDataDirectory(dataDir)
  // Lists the directory only once, because another server may create the database between two listings.
  const entries = await listForeign(dataDir)
  if (entries.includes(databaseName) && (await findDatabaseSize(dataDir)) !== undefined) return
  const [foreign] = entries
  if (foreign !== undefined) throw noDatabase(dataDir, foreign, 'no Parley database')
}

/**
 * Call this while holding the lock, because a new database is briefly empty, and before opening the database,
 * because opening an empty one deletes its write-ahead log.
 * @throws StartupError if the database is empty but the directory contains other files.
 */
export async function assertDatabaseNotEmptied(dataDir: string): Promise<void> {
  if ((await findDatabaseSize(dataDir)) === 0) await assertNoFilesBesideEmptyDatabase(dataDir)
}

/**
 * Call this if the database is empty or missing. Rejects a data directory with other files, because the
 * sweeper would delete them as orphans (ADR 0040). @throws StartupError
 */
export async function assertNoFilesBesideEmptyDatabase(dataDir: string): Promise<void> {
  const foreign = (await listForeign(dataDir)).find((entry) => !databaseFile.test(entry))
  const what = `its ${databaseName} has no tables`
  if (foreign !== undefined) throw noDatabase(dataDir, foreign, what)
  const log = await stat(join(dataDir, `${databaseName}-wal`)).catch(() => undefined)
  if ((await findDatabaseSize(dataDir)) === 0 && log !== undefined && log.size > 0)
    throw noDatabase(dataDir, `${databaseName}-wal`, what)
}

function noDatabase(dataDir: string, foreign: string, instead: string): StartupError {
  return new StartupError(
    `The data directory ${dataDir} contains other files (such as ${foreign}) but ${instead}, so no database is created there; set PARLEY_DATA_DIR to an empty directory, or restore ${databaseName}.`,
  )
}

async function findDatabaseSize(dataDir: string): Promise<number | undefined> {
  try {
    return (await stat(join(dataDir, databaseName))).size
  } catch (error) {
    if (isMissing(error)) return undefined
    throw cannotUse('data directory', dataDir, error)
  }
}

/**
 * Rejects a data directory that contains files, because they may belong to a different database: with a new
 * PostgreSQL database, the sweeper would delete them as orphans. @throws StartupError
 */
export async function assertUnused(dataDir: string): Promise<void> {
  const [foreign] = await listForeign(dataDir)
  if (foreign === undefined) return
  throw new StartupError(
    `The database in DATABASE_URL is empty, but the data directory ${dataDir} contains files (such as ${foreign}) that belong to another database; set PARLEY_DATA_DIR to an empty directory, or correct DATABASE_URL.`,
  )
}

/**
 * Rejects a data directory that contains a SQLite database: with an empty PostgreSQL database, the sweeper
 * would delete its files as orphans. @throws StartupError
 */
export async function assertNothingToCopy(dataDir: string): Promise<void> {
  if (!(await readdir(dataDir)).includes(databaseName)) return
  throw new StartupError(
    `The data directory ${dataDir} contains ${databaseName}, but the database in DATABASE_URL is empty; run \`parley store copy\` to copy the rows, or set PARLEY_DATA_DIR to another directory.`,
  )
}

export async function listForeign(dataDir: string): Promise<string[]> {
  return (await readdir(dataDir)).filter((entry) => !harmless.test(entry))
}

/** Creates the directory if it is missing. @throws StartupError if it is not writable. */
export async function makeDataDirectory(dataDir: string): Promise<void> {
  try {
    await mkdir(dataDir, { recursive: true, mode: 0o700 })
    await access(dataDir, constants.R_OK | constants.W_OK | constants.X_OK)
  } catch (cause) {
    throw cannotUse('data directory', dataDir, cause)
  }
}

export async function hasSecret(dataDir: string): Promise<boolean> {
  return access(join(dataDir, SECRET_NAME)).then(
    () => true,
    () => false,
  )
}

/** @throws StartupError if there is no database, or the process has no access to it. */
export async function assertDatabaseExists(dataDir: string): Promise<void> {
  // Treats an empty file as a missing database, because a crash while creating a database can leave one.
  if (((await findDatabaseSize(dataDir)) ?? 0) > 0) return
  throw new StartupError(
    `There is no Parley database in ${dataDir} yet; start the server once, or set PARLEY_DATA_DIR to the directory that it uses.`,
  )
}

/**
 * Reads the secret, or creates it if it is missing. Several processes may call this at the same time. Call it
 * after `openDatabase`, which creates the directory.
 * @throws StartupError if the file is not usable or too short.
 */
export async function loadOrCreateSecret(dataDir: string, random: Random): Promise<string> {
  if (dataDir === ':memory:') return newSecret(random)
  const path = join(dataDir, SECRET_NAME)
  const secret = await readOrCreateSecret(dataDir, path, random).catch((cause) => {
    throw cannotUse('file', path, cause)
  })
  if (Buffer.byteLength(secret) >= SHORTEST_SECRET_BYTES) return secret
  throw new StartupError(
    `The file ${path} must contain at least ${SHORTEST_SECRET_BYTES} bytes; restore the right secret, because stored agent keys cannot be decrypted without it.`,
  )
}

async function readOrCreateSecret(dataDir: string, path: string, random: Random): Promise<string> {
  try {
    return (await readFile(path, 'utf8')).trim()
  } catch (error) {
    if (!isMissing(error)) throw error
    const suffix = Buffer.from(random(8)).toString('hex')
    return createFileOnce(path, `${newSecret(random)}\n`, join(dataDir, `.${SECRET_NAME}-${suffix}`))
  }
}

function newSecret(random: Random): string {
  return Buffer.from(random(SECRET_BYTES)).toString('base64')
}

export function cannotUse(what: string, path: string, cause: unknown): StartupError {
  const reason = cause instanceof Error && 'code' in cause ? String(cause.code) : String(cause)
  return new StartupError(
    `The ${what} ${path} is not usable by ${currentUser()} (${reason}); give that user read and write permission, or set PARLEY_DATA_DIR to another directory.`,
    { cause },
  )
}

function currentUser(): string {
  try {
    const { username, uid } = userInfo()
    return uid < 0 ? `user ${username}` : `user ${username} (uid ${uid})`
  } catch {
    // The user of a container often has no name.
    return `uid ${process.getuid?.()}`
  }
}
