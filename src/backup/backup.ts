/** Backs up a whole installation to one archive, even while a server is running. */
import { createReadStream } from 'node:fs'
import { readFile, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import packageJson from '../../package.json' with { type: 'json' }
import type { Config } from '../config/config.ts'
import { acquireLock, isLockTaken } from '../db/lock.ts'
import { countRows, openCheckedCopy, openSnapshotSource, type SnapshotSource } from '../db/snapshot.ts'
import { unixSeconds } from '../lib/clock.ts'
import { StartupError } from '../lib/errors.ts'
import { ignoreMissing, makeFolder } from '../storage/folder.ts'
import { checkMarks } from '../storage/mark.ts'
import { collect } from './collect.ts'
import type { Dependencies } from './dependencies.ts'
import {
  type BackupReport,
  DATABASE,
  type EntryRecord,
  FORMAT,
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
  readonly records: EntryRecord[]
}

/**
 * Writes a consistent backup to `output` (ADR 0033).
 * @throws StartupError if there is nothing to back up, another backup is running, or the database is damaged.
 */
export async function createBackup(
  deps: Pick<Dependencies, 'config' | 'clock' | 'log'>,
  output: Output,
  signal?: AbortSignal,
): Promise<BackupReport> {
  const { config, clock } = deps
  assertSqlite(config)
  const database = await openSnapshotSource(config.dataDir)
  try {
    // Checks that the stored files belong to this database; otherwise the archive would lack files.
    if (database.schema >= FIRST_WITH_INSTALLATION) await checkMarks(config, database.db)
    const lock = await lockFolder(config.dataDir)
    try {
      const source = await openByteSource({ ...deps, db: database.db })
      const { schema } = database
      const head = {
        format: FORMAT,
        parley_version: packageJson.version,
        schema,
        created_at: unixSeconds(clock),
      }
      try {
        return await writeArchive({ database, source, config, head, records: [] }, output, signal)
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

/** Allows one backup at a time, so that it can safely delete an interrupted backup's files. */
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
  for (const name of [DATABASE, `${DATABASE}-wal`, `${DATABASE}-shm`, `${DATABASE}-journal`])
    await rm(join(dataDir, BACKUP_FOLDER, name), { force: true })
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

/** Writes blobs that cannot be pinned first, because the server may delete them at any time. */
async function* listEntries(job: Job, onManifest: (manifest: Manifest) => void): AsyncGenerator<Entry> {
  const { database, source, config, head, records } = job
  yield toEntry(HEAD, renderJson(head))
  const collected = yield* collect(database, source)
  const path = join(config.dataDir, BACKUP_FOLDER, DATABASE)
  await database.copyTo(path)
  database.release()
  const rows = await countRowsOf(path)
  yield { name: DATABASE, sizeBytes: (await stat(path)).size, bytes: createReadStream(path) }
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
    rows,
    entries: [...records],
  }
  onManifest(manifest)
  yield toEntry(MANIFEST, renderJson(manifest))
  yield toEntry(SEAL, `${records.at(-1)?.sha256}  ${MANIFEST}\n`)
}

/** @throws StartupError if the copied database is damaged. */
async function countRowsOf(path: string): Promise<Record<string, number>> {
  const { db, close } = await openCheckedCopy(path)
  try {
    return await countRows(db)
  } finally {
    close()
  }
}

function renderJson(value: unknown): string {
  return `${JSON.stringify(value, null, 1)}\n`
}
