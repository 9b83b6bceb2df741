/** The `store copy` command: moves the rows of a data directory to PostgreSQL and, with `S3_BUCKET`, its files to the bucket. */
import { rename } from 'node:fs/promises'
import { join } from 'node:path'
import { type CopiedBytes, copyIntoBucket } from '../../backup/copy-to-bucket.ts'
import type { Config } from '../../config/config.ts'
import { copyToPostgres, type OnCopied } from '../../db/copy.ts'
import { assertDatabaseExists, databaseName } from '../../db/data-directory.ts'
import type { Database } from '../../db/database.ts'
import { openDatabase } from '../../db/open.ts'
import { systemClock, unixSeconds } from '../../lib/clock.ts'
import { StartupError } from '../../lib/errors.ts'
import { ignoreMissing } from '../../storage/folder.ts'
import { findUnmarkedFolders } from '../../storage/mark.ts'
import { createLog } from '../../telemetry/log.ts'
import { readConfig } from '../installation.ts'
import { printNotice, printResult, renderTable } from '../output.ts'

const PROGRESS_EVERY_MS = 2_000

/** No server may run on the directory; afterwards servers use DATABASE_URL. */
export async function storeCopy(isJson: boolean): Promise<void> {
  const config = await readConfig()
  const databaseUrl = toTarget(config)
  await assertDatabaseExists(config.dataDir)
  const { db, close } = await openDatabase({ dataDir: config.dataDir, role: 'server' })
  try {
    await findUnmarkedFolders({ dataDir: config.dataDir, databaseUrl: undefined, s3: undefined }, db)
    // Files first: every row that is readable afterwards must have its bytes.
    const bucket = config.s3 && (await copyBytes(config, db))
    const tables = await copyToPostgres(db, databaseUrl, createProgress())
    await close()
    const setAside = await setSourceAside(config)
    const result = { tables, ...(bucket && { bucket }), set_aside: setAside }
    printResult(isJson, result, renderCounts(tables, bucket))
    printNotice(`The rows are in PostgreSQL; the originals were renamed to ${setAside.join(', ')}.`)
  } finally {
    await close()
  }
}

function toTarget({ databaseUrl, dataDir }: Config): string {
  if (databaseUrl === undefined)
    throw new StartupError('DATABASE_URL is not set; set it to the PostgreSQL database to copy the rows to.')
  if (dataDir === ':memory:')
    throw new StartupError('PARLEY_DATA_DIR is :memory:; set it to the directory that contains the rows.')
  return databaseUrl
}

async function copyBytes(config: Config, db: Database): Promise<CopiedBytes> {
  printNotice(`copying files to the bucket ${config.s3?.bucket}`)
  const copied = await copyIntoBucket(
    { config, db, clock: systemClock, log: createLog(config) },
    config.dataDir,
  )
  printNotice(`copied and verified ${copied.copied} files, ${copied.copiedBytes} bytes`)
  if (copied.lost.length > 0)
    printNotice(`warning: ${copied.lost.length} files were lost before: ${copied.lost.join(', ')}`)
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

/** Renames the originals: a server that found the old rows would delete newer files as orphans. */
async function setSourceAside({ dataDir, s3 }: Config): Promise<string[]> {
  const suffix = `.copied-${unixSeconds(systemClock)}`
  const setAside: string[] = []
  for (const name of [databaseName, ...(s3 === undefined ? [] : ['files', 'artifacts'])]) {
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
