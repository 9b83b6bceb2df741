/** Tests backups during which files are deleted and replaced. */

import { randomUUID } from 'node:crypto'
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { pino } from 'pino'
import { expect, onTestFinished, test } from 'vitest'
import { type Collected, collect } from '../../../src/backup/collect.ts'
import { openByteSource } from '../../../src/backup/sources.ts'
import { listReferencedBlobs, type ReferencedBlob } from '../../../src/backup/store.ts'
import { parseConfig } from '../../../src/config/parse.ts'
import { openSnapshotSource } from '../../../src/db/snapshot.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import { openApp } from '../../support/app.ts'
import { startupErrorOf } from '../../support/database.ts'
import { filePart, purpose, upload } from '../../support/files.ts'
import { makeFolder } from '../../support/process.ts'

const FILE = Buffer.from('one file')

/** Runs a backup during which each small file is replaced just before the backup reads it. */
async function collectDuringChurn(isPinning: boolean) {
  const dataDir = join(await makeFolder(), 'data')
  const app = await openApp({ PARLEY_DATA_DIR: dataDir })
  for (let count = 0; count < 3; count++) await upload(app, [filePart(FILE), purpose])
  await app.close()
  const database = await openSnapshotSource(dataDir)
  const { config } = await parseConfig({ PARLEY_DATA_DIR: dataDir })
  const source = await openByteSource({
    config,
    db: database.db,
    clock: systemClock,
    log: pino({ level: 'silent' }),
  })
  onTestFinished(() => source.close().then(() => database.close()))
  const writer = new Sqlite(join(dataDir, 'parley.db'), { timeout: 0 })
  onTestFinished(() => void writer.close())
  const filesDir = join(dataDir, 'files')
  const replace = async (name: string) => {
    const next = randomUUID()
    await writeFile(join(filesDir, next), FILE)
    // This statement fails while the backup blocks writers.
    writer.prepare('update files set blob = ? where blob = ?').run(next, name)
    await rm(join(filesDir, name))
  }
  const take = async (blob: ReferencedBlob) => {
    if (blob.store === 'files') await replace(blob.name).catch(() => {})
    return source.take(blob)
  }
  return { database, collecting: collect(database, { ...source, isPinning, take }) }
}

test('a backup of rapidly changing files contains every file, because it blocks writers at the end', async () => {
  const { database, collecting } = await collectDuringChurn(true)
  const { value, done } = await collecting.next()
  expect([done, value]).toEqual([true, expect.objectContaining({ missing: [], unfinished: [] })])
  const { pinned } = value as Collected
  for await (const { name } of listReferencedBlobs(database.db, undefined))
    expect(pinned.map((blob) => blob.name)).toContain(name)
  expect(pinned).toHaveLength(3)
})

test('a backup of rapidly changing files in a bucket fails because it cannot block writers', async () => {
  const { collecting } = await collectDuringChurn(false)
  expect(await startupErrorOf(collecting.next())).toContain(
    'Files are changing faster than the backup can read them',
  )
})
