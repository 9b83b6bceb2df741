/**
 * The `store` commands copy a data directory to PostgreSQL and S3, adopt stored files, and count or delete
 * orphans.
 */
import { rename } from 'node:fs/promises'
import { join } from 'node:path'
import { listArtifactPlaces, namedBlobs } from '../../artifacts/maintenance.ts'
import { type CopiedBytes, copyIntoBucket, openBucketStores } from '../../backup/copy-to-bucket.ts'
import type { Config } from '../../config/config.ts'
import { findItemBlobs } from '../../conversations/operator.ts'
import { copyToPostgres, type OnCopied } from '../../db/copy.ts'
import { assertDatabaseExists, databaseName } from '../../db/data-directory.ts'
import type { Database } from '../../db/database.ts'
import { getInstallationId } from '../../db/installation.ts'
import {
  type ConversationDb,
  conversationsFile,
  createConversationStorage,
  openDatabase,
} from '../../db/open.ts'
import { listFilePlaces } from '../../files/files.ts'
import { systemClock, unixSeconds } from '../../lib/clock.ts'
import { StartupError } from '../../lib/errors.ts'
import type { ResumableStore } from '../../storage/blobs.ts'
import { ignoreMissing } from '../../storage/folder.ts'
import { openResumableStore } from '../../storage/local.ts'
import { adoptFolders, findUnmarkedFolders, type StoreName } from '../../storage/mark.ts'
import { abandonedBefore } from '../../storage/open.ts'
import { countOrphans, deleteAllOrphans, type OrphanReport, orphanCutoff } from '../../storage/sweeper.ts'
import { createLog } from '../../telemetry/log.ts'
import { readConfig, withDatabase } from '../installation.ts'
import { printNotice, printResult, renderTable } from '../output.ts'

const PROGRESS_EVERY_MS = 2_000

/**
 * Copies the rows to PostgreSQL and, with `S3_BUCKET`, the files to the bucket. Requires that no server
 * uses the directory.
 */
export async function storeCopy(isJson: boolean): Promise<void> {
  const config = await readConfig()
  const databaseUrl = toTarget(config)
  await assertDatabaseExists(config.dataDir)
  const { db, close } = await openDatabase({ dataDir: config.dataDir, role: 'server' })
  try {
    await findUnmarkedFolders(
      { dataDir: config.dataDir, databaseUrl: undefined, s3: undefined },
      db,
      namedBlobs,
    )
    const { bucket, tables } = await copyAll(config, db, databaseUrl)
    await close()
    const setAside = await setSourceAside(config)
    const result = { tables, ...(bucket && { bucket }), set_aside: setAside }
    printResult(isJson, result, renderCounts(tables, bucket))
    printNotice(`Copied all rows to PostgreSQL. The originals were renamed to ${setAside.join(', ')}.`)
  } finally {
    await close()
  }
}

/** Copies the rows of both SQLite files, and the files to the bucket. */
async function copyAll(config: Config, db: Database, databaseUrl: string) {
  const storage = createConversationStorage({ db, databaseUrl: undefined }, config.dataDir)
  try {
    const conversations = (await storage.find())?.read
    // Copies files first, so that every row in the new database has its bytes.
    const bucket = config.s3 && (await copyBytes(config, db, conversations))
    const tables = await copyToPostgres(db, databaseUrl, createProgress(), conversations)
    return { bucket, tables }
  } finally {
    await storage.close()
  }
}

function toTarget({ databaseUrl, dataDir }: Config): string {
  if (databaseUrl === undefined)
    throw new StartupError(
      'DATABASE_URL is not set. Set it to the PostgreSQL database that receives the rows.',
    )
  if (dataDir === ':memory:')
    throw new StartupError('PARLEY_DATA_DIR is :memory:. Set it to the data directory to copy from.')
  return databaseUrl
}

async function copyBytes(
  config: Config,
  db: Database,
  conversations: ConversationDb | undefined,
): Promise<CopiedBytes> {
  printNotice(`copying files to the bucket ${config.s3?.bucket}`)
  const copied = await copyIntoBucket(
    { config, db, clock: systemClock, log: createLog(config) },
    config.dataDir,
    conversations,
  )
  printNotice(`copied and verified ${copied.copied} files, ${copied.copiedBytes} bytes`)
  if (copied.lost.length > 0)
    printNotice(`warning: ${copied.lost.length} files were already missing: ${copied.lost.join(', ')}`)
  return copied
}

function createProgress(): OnCopied {
  let nextAtMs = systemClock.monotonic() + PROGRESS_EVERY_MS
  return (step, table, rows) => {
    if (systemClock.monotonic() < nextAtMs) return
    nextAtMs = systemClock.monotonic() + PROGRESS_EVERY_MS
    printNotice(`${table}: ${rows} rows ${step}`)
  }
}

/**
 * Renames the copied originals. A server that used them by mistake could delete newer files as orphans.
 */
async function setSourceAside({ dataDir, s3 }: Config): Promise<string[]> {
  const suffix = `.copied-${unixSeconds(systemClock)}`
  const setAside: string[] = []
  const names = [databaseName, conversationsFile, ...(s3 === undefined ? [] : ['files', 'artifacts'])]
  for (const name of names) {
    const isMoved = await rename(join(dataDir, name), join(dataDir, name + suffix)).then(
      () => true,
      ignoreMissing,
    )
    if (isMoved) setAside.push(name + suffix)
  }
  return setAside
}

function renderCounts(tables: Readonly<Record<string, number>>, bucket: CopiedBytes | undefined): string {
  const rows = Object.entries(tables).map(([name, count]) => [name, String(count)])
  const files = bucket === undefined ? [] : [['files in the bucket', String(bucket.copied)]]
  return renderTable(['TABLE', 'ROWS'], [...rows, ...files])
}

const ADOPT_WITHIN_MS = 30_000

/**
 * Marks the stored files as belonging to this installation, so that the startup check accepts them (ADR
 * 0040).
 */
export async function storeAdopt(isJson: boolean): Promise<void> {
  await withDatabase(async (db, { dataDir, s3 }) => {
    if (s3 === undefined && dataDir === ':memory:')
      throw new StartupError('PARLEY_DATA_DIR=:memory: stores no files. Set it to a directory.')
    const id = await getInstallationId({ db, clock: systemClock })
    const former =
      s3 === undefined
        ? await adoptFolders(dataDir, id)
        : await (await import('../../storage/probe-s3.ts')).adoptPlaces(
            s3,
            id,
            AbortSignal.timeout(ADOPT_WITHIN_MS),
          )
    const where = s3 === undefined ? dataDir : `the bucket ${s3.bucket}`
    const lines = Object.entries(former).map(([name, mark]) =>
      mark === id
        ? `${name} in ${where} already belongs to this database`
        : `${name} in ${where} now belongs to this database (${id}); previously: ${mark ?? 'unmarked'}`,
    )
    printResult(isJson, { installation: id, former }, lines.join('\n'))
  })
}

/**
 * Counts orphans and, with `--delete`, deletes them, even those that the sweeper leaves for confirmation (ADR
 * 0040).
 */
export async function storeOrphans(options: { delete?: boolean; json?: boolean }): Promise<void> {
  const { delete: isDeleting = false, json } = options
  await withDatabase(async (db, config) => {
    await findUnmarkedFolders(config, db, namedBlobs)
    const stores = await openStores(db, config)
    try {
      const places = {
        files: listFilePlaces(db, stores.files.blobs, (names) => findItemBlobs(config, db, names)),
        artifacts: listArtifactPlaces(db, stores.artifacts),
      }
      const storedBeforeMs = orphanCutoff(systemClock)
      const look = async (name: StoreName): Promise<OrphanReport> =>
        isDeleting
          ? deleteAllOrphans(places[name], storedBeforeMs)
          : { ...(await countOrphans(places[name], storedBeforeMs)), deleted: 0 }
      const reports = { files: await look('files'), artifacts: await look('artifacts') }
      printResult(json === true, reports, renderReports(reports))
      const isAnyLeft = Object.values(reports).some(({ orphans }) => orphans > 0)
      if (isAnyLeft && !isDeleting)
        printNotice('Nothing was deleted. Add --delete to delete the orphans permanently.')
    } finally {
      await Promise.all(Object.values(stores).map(({ blobs }) => blobs.close()))
    }
  })
}

/** Opens the stores without touching a running server's unfinished uploads. */
async function openStores(db: Database, config: Config): Promise<Record<StoreName, ResumableStore>> {
  const deps = { db, clock: systemClock, log: createLog(config), isOnlyServer: false }
  if (config.s3 !== undefined) return openBucketStores({ ...deps, config })
  if (config.dataDir === ':memory:')
    throw new StartupError('PARLEY_DATA_DIR=:memory: stores no files. Set it to a directory.')
  const open = (name: StoreName) =>
    openResumableStore(config.dataDir, name, config.uploads.isSynced, abandonedBefore(deps))
  return { files: await open('files'), artifacts: await open('artifacts') }
}

function renderReports(reports: Readonly<Record<StoreName, OrphanReport>>): string {
  const rows = Object.entries(reports).map(([name, { objects, orphans, deleted }]) =>
    [name, objects, orphans, deleted].map(String),
  )
  return renderTable(['STORE', 'OBJECTS', 'ORPHANS', 'DELETED'], rows)
}
