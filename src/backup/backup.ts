/** Backs up a whole installation to one archive, even while a server is running. */
import { createReadStream, existsSync } from 'node:fs'
import { readFile, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import packageJson from '../../package.json' with { type: 'json' }
import type { Config } from '../config/config.ts'
import { acquireLock, isLockTaken } from '../db/lock.ts'
import {
  type CheckedCopy,
  countRows,
  openCheckedConversations,
  openCheckedCopy,
  openSnapshotSource,
  type SnapshotSource,
} from '../db/snapshot.ts'
import { unixSeconds } from '../lib/clock.ts'
import { StartupError } from '../lib/errors.ts'
import { ignoreMissing, makeFolder } from '../storage/folder.ts'
import { checkMarks } from '../storage/mark.ts'
import { collect } from './collect.ts'
import type { Dependencies } from './dependencies.ts'
import {
  type BackupReport,
  CONVERSATIONS,
  DATABASE,
  type EntryRecord,
  FORMAT,
  FORMAT_WITHOUT_CONVERSATIONS,
  HEAD,
  type Head,
  MANIFEST,
  type Manifest,
  SEAL,
  SECRET,
  toEntryName,
  toReport,
} from './manifest.ts'
import type { Output } from './output.ts'
import { type ByteSource, openByteSource } from './sources.ts'
import { type Entry, renderTar, toEntry } from './tar.ts'

const BACKUP_FOLDER = '.backup'

const FIRST_WITH_INSTALLATION = '0009_create_installation'

interface Job {
  readonly database: SnapshotSource
  readonly source: ByteSource
  readonly config: Config
  readonly head: Head
  readonly withConversations: boolean
  readonly records: EntryRecord[]
}

export interface BackupOptions {
  readonly withConversations?: boolean
  readonly signal?: AbortSignal | undefined
}

/**
 * Writes a consistent backup to `output` (ADR 0033).
 * @throws StartupError if there is nothing to back up, another backup is running, or the database is damaged.
 */
export async function createBackup(
  deps: Pick<Dependencies, 'config' | 'clock' | 'log'>,
  output: Output,
  { withConversations = true, signal }: BackupOptions = {},
): Promise<BackupReport> {
  const { config, clock } = deps
  assertSqlite(config)
  const database = await openSnapshotSource(config.dataDir, { withConversations })
  try {
    // Checks that the stored files belong to this database; otherwise the archive could lack files.
    if (database.schema >= FIRST_WITH_INSTALLATION) await checkMarks(config, database.db)
    const lock = await lockFolder(config.dataDir)
    try {
      const source = await openByteSource({ ...deps, db: database.db })
      const { schema, conversations } = database
      const head = {
        format: conversations === undefined ? FORMAT_WITHOUT_CONVERSATIONS : FORMAT,
        parley_version: packageJson.version,
        schema,
        ...(conversations && { conversations_schema: conversations.schema }),
        created_at: unixSeconds(clock),
      }
      try {
        const job = { database, source, config, head, withConversations, records: [] }
        return await writeArchive(job, output, signal)
      } finally {
        await source.close()
        await clearFolder(config.dataDir)
      }
    } finally {
      lock.release()
    }
  } finally {
    database.close()
  }
}

function assertSqlite({ databaseUrl, dataDir }: Config): void {
  if (databaseUrl !== undefined) {
    throw new StartupError(
      'The rows are stored in PostgreSQL, which has its own backup tool: run pg_dump, then copy the files and the secret as described in docs/backup.md.',
    )
  }
  if (dataDir === ':memory:')
    throw new StartupError(
      'PARLEY_DATA_DIR=:memory: keeps data inside the server process; this command needs a directory on disk.',
    )
}

/** Locks out other backups, and deletes the files of an interrupted backup. */
async function lockFolder(dataDir: string) {
  const folder = join(dataDir, BACKUP_FOLDER)
  await makeFolder(folder)
  try {
    const lock = acquireLock(folder)
    await clearFolder(dataDir)
    return lock
  } catch (error) {
    if (!isLockTaken(error)) throw error
    throw new StartupError(`Another backup of ${dataDir} is running; wait until it has finished.`, {
      cause: error,
    })
  }
}

async function clearFolder(dataDir: string): Promise<void> {
  for (const name of [DATABASE, CONVERSATIONS])
    for (const suffix of ['', '-wal', '-shm', '-journal'])
      await rm(join(dataDir, BACKUP_FOLDER, name + suffix), { force: true })
}

async function writeArchive(
  job: Job,
  output: Output,
  signal: AbortSignal | undefined,
): Promise<BackupReport> {
  const { head, records } = job
  let manifest: Manifest | undefined
  const entries = listEntries(job, (written) => {
    manifest = written
  })
  await output.write(
    renderTar(entries, head.created_at, (record) => records.push(record)),
    signal,
  )
  if (manifest === undefined) throw new Error('the archive has no manifest')
  return toReport(manifest)
}

/** Yields the archive's entries. Blobs that cannot be pinned come early, because a server could delete them. */
async function* listEntries(job: Job, onManifest: (manifest: Manifest) => void): AsyncGenerator<Entry> {
  const { database, source, config, head, records } = job
  yield toEntry(HEAD, renderJson(head))
  const collected = yield* collect(database, source)
  const rows = await copyDatabases(job)
  for (const name of database.conversations === undefined ? [DATABASE] : [DATABASE, CONVERSATIONS]) {
    const path = join(config.dataDir, BACKUP_FOLDER, name)
    yield { name, sizeBytes: (await stat(path)).size, bytes: createReadStream(path) }
  }
  const secret =
    config.secret === undefined
      ? await readFile(join(config.dataDir, SECRET)).catch(ignoreMissing)
      : undefined
  if (secret !== undefined) yield toEntry(SECRET, secret)
  for (const blob of collected.pinned)
    yield { name: toEntryName(blob), sizeBytes: blob.sizeBytes, bytes: source.open(blob) }
  const manifest: Manifest = {
    ...head,
    lost: collected.missing,
    unfinished: collected.unfinished,
    secret: config.secret !== undefined ? 'environment' : secret === undefined ? 'none' : 'included',
    conversations: describeConversations(job),
    rows,
    entries: [...records],
  }
  onManifest(manifest)
  yield toEntry(MANIFEST, renderJson(manifest))
  yield toEntry(SEAL, `${records.at(-1)?.sha256}  ${MANIFEST}\n`)
}

/**
 * Copies the pinned databases, and returns the number of rows in each table.
 * @throws StartupError if a copy is damaged.
 */
async function copyDatabases({ database, config }: Job): Promise<Record<string, number>> {
  const { conversations } = database
  const folder = join(config.dataDir, BACKUP_FOLDER)
  await database.copyTo(join(folder, DATABASE))
  await conversations?.copyTo(join(folder, CONVERSATIONS))
  database.release()
  const rows = await countRowsOf(await openCheckedCopy(join(folder, DATABASE)))
  if (conversations === undefined) return rows
  const stored = await openCheckedConversations(join(folder, CONVERSATIONS))
  return { ...rows, ...(await countRowsOf(stored)) }
}

async function countRowsOf<T>({ db, close }: CheckedCopy<T>): Promise<Record<string, number>> {
  try {
    return await countRows(db)
  } finally {
    close()
  }
}

function describeConversations({ database, config, withConversations }: Job): Manifest['conversations'] {
  if (database.conversations !== undefined) return 'included'
  return !withConversations && existsSync(join(config.dataDir, CONVERSATIONS)) ? 'omitted' : 'none'
}

function renderJson(value: unknown): string {
  return `${JSON.stringify(value, null, 1)}\n`
}
