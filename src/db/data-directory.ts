/** The folder everything is kept in: made, checked, and home of the installation's secret. */
import { closeSync, openSync } from 'node:fs'
import { access, constants, link, mkdir, open, readdir, readFile, stat, unlink } from 'node:fs/promises'
import { userInfo } from 'node:os'
import { dirname, join } from 'node:path'
import { StartupError } from '../lib/errors.ts'
import type { Random } from '../lib/ids.ts'

export const databaseName = 'parley.db'
const SECRET_NAME = 'secret'
const SECRET_BYTES = 48
const SHORTEST_SECRET_BYTES = 32

/** What may lie in a directory that has no database yet: our own first files, and what a fresh disk holds. Security: 2.12. */
const harmless = /^(secret|\.secret-[0-9a-f]+|\.lock|\.lock-journal|lost\+found)$/

/** The database and its logs. */
const databaseFile = /^parley\.db(-wal|-shm|-journal)?$/

/**
 * Makes sure a server can keep its data there: creates the directory, for its user alone, or checks the one that is there.
 * @throws StartupError when it cannot be written, or holds something else than Parley's data.
 */
export async function prepareDataDirectory(dataDir: string): Promise<void> {
  await makeDataDirectory(dataDir)
  const sizeBytes = await findDatabaseSize(dataDir)
  if (sizeBytes === undefined) {
    const [foreign] = await listForeign(dataDir)
    if (foreign !== undefined) throw noDatabase(dataDir, foreign, 'no Parley database')
  }
  // SQLite deletes the log of an empty file, so such a file is never opened next to other files.
  if (sizeBytes === 0) await assertNoFilesBesideEmptyDatabase(dataDir)
}

/**
 * Keeps a database without tables away from files that are already there: the sweeper would delete them as orphans. See docs/adr/0040.
 * @throws StartupError
 */
export async function assertNoFilesBesideEmptyDatabase(dataDir: string): Promise<void> {
  const foreign = (await listForeign(dataDir)).find((entry) => !databaseFile.test(entry))
  const what = `a ${databaseName} without tables`
  if (foreign !== undefined) throw noDatabase(dataDir, foreign, what)
  const log = await stat(join(dataDir, `${databaseName}-wal`)).catch(() => undefined)
  if ((await findDatabaseSize(dataDir)) === 0 && log !== undefined && log.size > 0)
    throw noDatabase(dataDir, `${databaseName}-wal`, what)
}

function noDatabase(dataDir: string, foreign: string, instead: string): StartupError {
  return new StartupError(
    `The data directory ${dataDir} holds other files (such as ${foreign}) but ${instead}, so none is created there; set PARLEY_DATA_DIR to an empty directory, or put ${databaseName} back.`,
  )
}

/** In bytes; undefined when there is no database. */
async function findDatabaseSize(dataDir: string): Promise<number | undefined> {
  try {
    return (await stat(join(dataDir, databaseName))).size
  } catch (error) {
    if (isMissing(error)) return undefined
    throw cannotUse('data directory', dataDir, error)
  }
}

/**
 * Keeps a new database elsewhere away from a directory that is in use: to it, the files of another one would look like rubbish.
 * @throws StartupError when the directory holds any.
 */
export async function assertUnused(dataDir: string): Promise<void> {
  const [foreign] = await listForeign(dataDir)
  if (foreign === undefined) return
  throw new StartupError(
    `The database in DATABASE_URL is empty, but the data directory ${dataDir} holds files (such as ${foreign}) that belong to another one; set PARLEY_DATA_DIR to an empty directory, or correct DATABASE_URL.`,
  )
}

/**
 * Keeps a database elsewhere that has no rows yet away from a directory with rows of its own: their files would look like rubbish to it.
 * @throws StartupError
 */
export async function assertNothingToCopy(dataDir: string): Promise<void> {
  if (!(await readdir(dataDir)).includes(databaseName)) return
  throw new StartupError(
    `The data directory ${dataDir} holds ${databaseName}, and the database in DATABASE_URL is empty; run \`parley store copy\` to move the rows there, or set PARLEY_DATA_DIR to another directory.`,
  )
}

/** What lies in the directory that no empty one holds. */
export async function listForeign(dataDir: string): Promise<string[]> {
  return (await readdir(dataDir)).filter(isForeign)
}

function isForeign(entry: string): boolean {
  return !harmless.test(entry)
}

/**
 * Makes sure a server can keep something there, with its rows elsewhere.
 * @throws StartupError when it cannot be written.
 */
export async function makeDataDirectory(dataDir: string): Promise<void> {
  try {
    await mkdir(dataDir, { recursive: true, mode: 0o700 })
    await access(dataDir, constants.R_OK | constants.W_OK | constants.X_OK)
  } catch (cause) {
    throw cannotUse('data directory', dataDir, cause)
  }
}

/** Whether the installation's secret is kept there. */
export async function hasSecret(dataDir: string): Promise<boolean> {
  return access(join(dataDir, SECRET_NAME)).then(
    () => true,
    () => false,
  )
}

/**
 * Finds the database another process made.
 * @throws StartupError when there is none, or this user may not use it.
 */
export async function assertDatabaseExists(dataDir: string): Promise<void> {
  // An empty file is what a first start makes first, or what a lost database leaves.
  if (((await findDatabaseSize(dataDir)) ?? 0) > 0) return
  throw new StartupError(
    `There is no Parley database in ${dataDir} yet; start the server once, or set PARLEY_DATA_DIR to the directory it uses.`,
  )
}

/**
 * The installation's master key: the text of the `secret` file, which is made on first use. Several processes may ask at once and
 * get the same. Call it after `openDatabase`, which makes the directory. In memory there is nothing to keep it for. Decision: 2.
 * @throws StartupError when the file cannot be made or read, or holds too little.
 */
export async function loadOrCreateSecret(dataDir: string, random: Random): Promise<string> {
  if (dataDir === ':memory:') return newSecret(random)
  const path = join(dataDir, SECRET_NAME)
  const secret = (await readSecret(path)) ?? (await createSecret(dataDir, path, random))
  if (Buffer.byteLength(secret) >= SHORTEST_SECRET_BYTES) return secret
  throw new StartupError(
    `The file ${path} must hold at least ${SHORTEST_SECRET_BYTES} bytes; put the right secret back, for without it no stored agent key can be read.`,
  )
}

async function readSecret(path: string): Promise<string | undefined> {
  try {
    return (await readFile(path, 'utf8')).trim()
  } catch (cause) {
    if (isMissing(cause)) return undefined
    throw cannotUse('file', path, cause)
  }
}

async function createSecret(dataDir: string, path: string, random: Random): Promise<string> {
  try {
    const suffix = Buffer.from(random(8)).toString('hex')
    return await createFileOnce(path, `${newSecret(random)}\n`, join(dataDir, `.${SECRET_NAME}-${suffix}`))
  } catch (cause) {
    throw cannotUse('file', path, cause)
  }
}

/**
 * Writes a file unless there is one, and answers what it holds then. Readers see a whole file or none, and of several writers one wins:
 * a link never replaces. `draft` is a path in the same folder.
 */
export async function createFileOnce(path: string, text: string, draft: string): Promise<string> {
  try {
    await writeDurably(draft, text)
    await link(draft, path).catch(async (error: unknown) => {
      if (hasCode(error, 'EEXIST')) return
      if (!linkless.some((code) => hasCode(error, code))) throw error
      await writeDurably(path, text).catch((second: unknown) => {
        if (!hasCode(second, 'EEXIST')) throw second
      })
    })
  } finally {
    await unlink(draft).catch(() => {})
  }
  await syncDirectory(dirname(path))
  return (await readFile(path, 'utf8')).trim()
}

/** How file systems without hard links answer. */
const linkless = ['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS']

function newSecret(random: Random): string {
  return Buffer.from(random(SECRET_BYTES)).toString('base64')
}

async function writeDurably(path: string, text: string): Promise<void> {
  await using file = await open(path, 'wx', 0o600)
  await file.writeFile(text)
  await file.sync()
}

async function syncDirectory(path: string): Promise<void> {
  await using directory = await open(path, constants.O_RDONLY)
  await directory.sync()
}

/** Makes an empty file that only this user can read, unless it is there already. */
export function createPrivateFile(path: string): void {
  try {
    closeSync(openSync(path, 'wx', 0o600))
  } catch (error) {
    if (!hasCode(error, 'EEXIST')) throw error
  }
}

/** The sentence for a path the operating system keeps from this user. */
export function cannotUse(what: string, path: string, cause: unknown): StartupError {
  const reason = cause instanceof Error && 'code' in cause ? String(cause.code) : String(cause)
  return new StartupError(
    `The ${what} ${path} cannot be used by ${currentUser()} (${reason}); give that user the right to read and write it, or set PARLEY_DATA_DIR to another directory.`,
    { cause },
  )
}

function currentUser(): string {
  try {
    const { username, uid } = userInfo()
    return uid < 0 ? `user ${username}` : `user ${username} (uid ${uid})`
  } catch {
    // A container's user often has no name.
    return `uid ${process.getuid?.()}`
  }
}

function isMissing(error: unknown): boolean {
  return hasCode(error, 'ENOENT') || hasCode(error, 'ENOTDIR')
}

function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code
}
