/**
 * Tests that a server rejects a database that does not belong to its stored files, and the `store` commands.
 */
import { randomUUID } from 'node:crypto'
import { cp, mkdir, readdir, readFile, rm, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import { openDatabase } from '../../src/db/open.ts'
import { openApp, startApp } from '../support/app.ts'
import { backUp } from '../support/backup.ts'
import { runCommandInProcess } from '../support/command.ts'
import { openSqliteFile, startupErrorOf } from '../support/database.ts'
import { download, listStored, upload } from '../support/files.ts'
import { makeFolder, runParley } from '../support/process.ts'

vi.setConfig({ testTimeout: 60_000 })

/** Runs a server that creates a data directory with one file and one agent, and stops it. */
async function makeInstallation() {
  const folder = await makeFolder()
  const dataDir = join(folder, 'data')
  const app = await openApp({ PARLEY_DATA_DIR: dataDir })
  const { body: file } = await upload(app)
  await app.createAgent()
  await app.close()
  return { folder, dataDir, fileId: String(file.id), key: app.key }
}

const start = (dataDir: string) => startApp({ PARLEY_DATA_DIR: dataDir })

const readMarks = (dataDir: string) =>
  Promise.all(['files', 'artifacts'].map((name) => readFile(join(dataDir, name, 'installation'), 'utf8')))

/** Reads all files except lock and WAL files; returns their contents by path. */
async function readAll(dataDir: string): Promise<Record<string, string>> {
  const found: Record<string, string> = {}
  for (const entry of await readdir(dataDir, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name)
    if (entry.name.startsWith('.lock') || entry.name.startsWith('parley.db-')) continue
    found[path] = entry.isFile() ? await readFile(path, 'base64') : ''
  }
  return found
}

async function removeMarks(dataDir: string): Promise<void> {
  for (const name of ['files', 'artifacts']) await rm(join(dataDir, name, 'installation'))
}

/** Replaces the data directory's database with one from another installation. */
async function swapDatabase(dataDir: string): Promise<void> {
  const other = await makeInstallation()
  for (const name of ['parley.db', 'secret']) await cp(join(other.dataDir, name), join(dataDir, name))
}

test('the first start writes the installation id to the marker files', async () => {
  const { dataDir } = await makeInstallation()
  const id = openSqliteFile(dataDir).prepare('select id from installation').pluck().get()
  expect(await readMarks(dataDir)).toEqual([`${id}\n`, `${id}\n`])
})

test('startup creates missing marker files', async () => {
  const { dataDir, fileId, key } = await makeInstallation()
  const marks = await readMarks(dataDir)
  await removeMarks(dataDir)
  const app = await start(dataDir)
  expect(await readMarks(dataDir)).toEqual(marks)
  const read = await app.fetch(`${app.url}/v1/files/${fileId}/content`, {
    headers: { Authorization: `Bearer ${key}` },
  })
  expect(await read.text()).toBe('hello')
})

test('startup assigns a new installation id to a database without one', async () => {
  const { dataDir } = await makeInstallation()
  await removeMarks(dataDir)
  const connection = openSqliteFile(dataDir)
  connection.exec('delete from installation')
  await start(dataDir)
  const id = connection.prepare('select id from installation').pluck().get()
  expect(await readMarks(dataDir)).toEqual([`${id}\n`, `${id}\n`])
})

describe('a database without tables in a directory with stored files', () => {
  test.each([
    ['a database of zero bytes', (path: string) => truncate(path)],
    [
      'an empty database',
      async (path: string) => {
        await rm(path)
        const connection = openSqliteFile(join(path, '..'))
        connection.exec('pragma journal_mode = wal; create table x (y); drop table x')
        connection.close()
      },
    ],
  ])('(%s) is rejected, and no file changes', async (_what, spoil) => {
    const { dataDir } = await makeInstallation()
    await spoil(join(dataDir, 'parley.db'))
    const before = await readAll(dataDir)
    expect(await startupErrorOf(start(dataDir))).toMatch(
      /contains other files \(such as (files|artifacts|conversions)\) but its parley\.db has no tables/,
    )
    expect(await readAll(dataDir)).toEqual(before)
  })

  test('is rejected by `parley serve` and reported by `parley doctor`', async () => {
    const { folder, dataDir } = await makeInstallation()
    await truncate(join(dataDir, 'parley.db'))
    const { code, stdout, stderr } = await runParley(['serve'], { folder, env: { PORT: '0' } })
    expect([code, stdout, stderr]).toEqual([1, '', expect.stringContaining('its parley.db has no tables')])
    const doctor = await runCommandInProcess(['doctor'], { folder })
    expect(doctor).toMatchObject({ code: 1, stdout: expect.stringContaining('its parley.db has no tables') })
    const keys = await runCommandInProcess(['keys', 'list'], { folder })
    expect(keys).toMatchObject({ code: 1, stderr: expect.stringContaining('There is no Parley database') })
  })

  test('is not opened if its WAL file may contain rows', async () => {
    const dataDir = join(await makeFolder(), 'data')
    await mkdir(dataDir)
    await writeFile(join(dataDir, 'parley.db'), '')
    await writeFile(join(dataDir, 'parley.db-wal'), 'rows')
    expect(await startupErrorOf(openDatabase({ dataDir, role: 'server' }))).toContain('such as parley.db-wal')
    expect(await readFile(join(dataDir, 'parley.db-wal'), 'utf8')).toBe('rows')
  })
})

test('a database without tables that a killed first start left behind is used by the next start', async () => {
  const dataDir = join(await makeFolder(), 'data')
  await mkdir(dataDir)
  for (const name of ['parley.db', '.lock']) await writeFile(join(dataDir, name), '')
  await start(dataDir)
  expect(await readMarks(dataDir)).toHaveLength(2)
})

describe("another installation's database", () => {
  test('is rejected, and no file changes', async () => {
    const { dataDir } = await makeInstallation()
    await swapDatabase(dataDir)
    const before = await readAll(dataDir)
    expect(await startupErrorOf(start(dataDir))).toMatch(
      /The folder \S+\/files belongs to another installation: .*Nothing was changed.*`parley store adopt`/,
    )
    expect(await readAll(dataDir)).toEqual(before)
  })

  test('is rejected when the files have no marker and none of its rows refers to them', async () => {
    const { dataDir } = await makeInstallation()
    await removeMarks(dataDir)
    await swapDatabase(dataDir)
    const before = await readAll(dataDir)
    expect(await startupErrorOf(start(dataDir))).toMatch(
      /files contains files, but the database in \S+ refers to none of/,
    )
    expect(await readAll(dataDir)).toEqual(before)
  })

  test('is reported by `parley doctor` and rejected by `parley backup`', async () => {
    const { folder, dataDir } = await makeInstallation()
    const well = await runCommandInProcess(['doctor'], { folder })
    expect(well.stdout).toMatch(/ok +stored files +stored files belong to this database/)
    await swapDatabase(dataDir)
    const doctor = await runCommandInProcess(['doctor'], { folder })
    expect(doctor.code).toBe(1)
    expect(doctor.stdout).toMatch(/fail +stored files +The folder \S+ belongs to another installation/)
    expect(await startupErrorOf(backUp(dataDir, join(folder, 'backup.tar')))).toContain(
      'another installation',
    )
    expect(await readdir(folder)).toEqual(['data'])
  })

  test('is accepted after `parley store adopt`', async () => {
    const { folder, dataDir } = await makeInstallation()
    await swapDatabase(dataDir)
    const adopted = await runCommandInProcess(['store', 'adopt'], { folder })
    expect(adopted).toMatchObject({ code: 0, stderr: '' })
    expect(adopted.stdout).toMatch(/^files in \S+ now belongs to this database \(\S+\); previously: \S+\n/)
    const again = await runCommandInProcess(['store', 'adopt'], { folder })
    expect(again.stdout).toMatch(/^files in \S+ already belongs to this database\n/)
    await start(dataDir)
  })
})

describe('store orphans', () => {
  async function makeOrphans(dataDir: string): Promise<void> {
    for (let count = 0; count < 120; count++) await writeFile(join(dataDir, 'files', randomUUID()), '')
  }

  test('counts files without a database row while a server runs and deletes them only with --delete', async () => {
    const folder = await makeFolder()
    const dataDir = join(folder, 'data')
    const app = await start(dataDir)
    const { body: file } = await upload(app)
    await makeOrphans(dataDir)
    const counted = await runCommandInProcess(['store', 'orphans', '--json'], { folder })
    expect(counted).toMatchObject({ code: 0 })
    expect(JSON.parse(counted.stdout).files).toMatchObject({ objects: 121, deleted: 0 })
    expect((await listStored(dataDir)).kept).toHaveLength(121)
    // Moves the clock, because the command ignores files that are less than an hour old.
    vi.useFakeTimers({ now: Date.now() + 7_200_000, toFake: ['Date'] })
    try {
      const deleted = await runCommandInProcess(['store', 'orphans', '--delete'], { folder })
      expect(deleted).toMatchObject({ code: 0, stderr: '' })
      expect(deleted.stdout).toMatch(/files +121 +120 +120\n/)
    } finally {
      vi.useRealTimers()
    }
    expect((await listStored(dataDir)).kept).toHaveLength(1)
    expect(await (await download(app, file.id)).text()).toBe('hello')
  })
})
