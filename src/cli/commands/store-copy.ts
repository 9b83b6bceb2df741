/** The `store copy` command: moves the rows of a data directory into PostgreSQL and, where there is a bucket, its bytes into that. */

import { rename } from 'node:fs/promises'
import { join } from 'node:path'
import { namedBlobs } from '../../artifacts/maintenance.ts'
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
import { readSettings } from '../database.ts'
import { printNotice, printResult, renderTable } from '../output.ts'

const TELL_EVERY_MS = 2_000

/** Runs with no server on the directory; afterwards servers go on with DATABASE_URL. Decision: 2. */
export async function storeCopy(isJson: boolean): Promise<void> {
  const config = await readSettings()
  const databaseUrl = toTarget(config)
  await assertDatabaseExists(config.dataDir)
  const { db, close } = await openDatabase({ dataDir: config.dataDir, role: 'server' })
  try {
    await findUnmarkedFolders(
      { dataDir: config.dataDir, databaseUrl: undefined, s3: undefined },
      db,
      namedBlobs,
    )
    // First the bytes: a row that somebody may read has them.
    const bucket = config.s3 && (await copyBytes(config, db))
    const tables = await copyToPostgres(db, databaseUrl, createTeller())
    await close()
    const setAside = await setSourceAside(config)
    const result = { tables, ...(bucket && { bucket }), set_aside: setAside }
    printResult(isJson, result, renderCounts(tables, bucket))
    printNotice(
      `The rows are in PostgreSQL; what they were copied from is now called ${setAside.join(', ')}.`,
    )
  } finally {
    await close()
  }
}

function toTarget({ databaseUrl, dataDir }: Config): string {
  if (databaseUrl === undefined)
    throw new StartupError(
      'DATABASE_URL is not set; name the PostgreSQL database that the rows are to go to.',
    )
  if (dataDir === ':memory:')
    throw new StartupError('PARLEY_DATA_DIR is :memory:; name the directory that the rows lie in.')
  return databaseUrl
}

async function copyBytes(config: Config, db: Database): Promise<CopiedBytes> {
  printNotice(`copying files into the bucket ${config.s3?.bucket}`)
  const copied = await copyIntoBucket(
    { config, db, clock: systemClock, log: createLog(config) },
    config.dataDir,
  )
  printNotice(`${copied.copied} files of ${copied.copiedBytes} bytes are there, and were read back`)
  if (copied.lost.length > 0)
    printNotice(`warning: ${copied.lost.length} files were lost before: ${copied.lost.join(', ')}`)
  return copied
}

/** Says how far it is, now and then. */
function createTeller(): OnCopied {
  let nextAtMs = systemClock.monotonic() + TELL_EVERY_MS
  return (step, table, rows) => {
    if (systemClock.monotonic() < nextAtMs) return
    nextAtMs = systemClock.monotonic() + TELL_EVERY_MS
    printNotice(`${table}: ${rows} rows ${step}`)
  }
}

/** A server that found the old rows would take what was added since for rubbish; under another name it finds none. */
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
