/** Tests that servers reject a PostgreSQL database that does not belong to the data directory. */
import { randomUUID } from 'node:crypto'
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { openApp, startApp } from '../support/app.ts'
import { runCommandInProcess } from '../support/command.ts'
import { startupErrorOf } from '../support/database.ts'
import { upload } from '../support/files.ts'
import { createTestDatabase, query } from '../support/postgres.ts'
import { makeFolder, runParley, startServer } from '../support/process.ts'

vi.setConfig({ testTimeout: 120_000 })

const PARLEY_SECRET = 'the secret that all servers share'

/** Runs a server that creates a database and a data directory with one file, and stops it. */
async function makeInstallation() {
  const folder = await makeFolder()
  const dataDir = join(folder, 'data')
  const env = { DATABASE_URL: await createTestDatabase(), PARLEY_DATA_DIR: dataDir, PARLEY_SECRET }
  const app = await openApp(env)
  await upload(app)
  await app.close()
  return { folder, dataDir, env }
}

const listAll = async (dataDir: string) => (await readdir(dataDir, { recursive: true })).sort()
const idIn = async (databaseUrl: string) => (await query(databaseUrl, 'select id from installation'))[0]?.id
const markIn = async (dataDir: string) =>
  (await readFile(join(dataDir, 'files', 'installation'), 'utf8')).trim()

test("another installation's database is rejected, and no file changes", async () => {
  const [one, other] = [await makeInstallation(), await makeInstallation()]
  const env = { ...one.env, DATABASE_URL: other.env.DATABASE_URL }
  const before = await listAll(one.dataDir)
  const words = /files belongs to another installation: .* the database in DATABASE_URL has the id/
  expect(await startupErrorOf(startApp(env))).toMatch(words)
  for (const more of [[], ['--workers', '2']]) {
    const served = await runParley(['serve', ...more], { folder: one.folder, env: { ...env, PORT: '0' } })
    expect([served.code, served.stderr]).toEqual([1, expect.stringMatching(words)])
  }
  const doctor = await runCommandInProcess(['doctor'], { folder: one.folder, env })
  expect([doctor.code, doctor.stdout]).toEqual([1, expect.stringMatching(words)])
  expect(await listAll(one.dataDir)).toEqual(before)
  await startApp(one.env)
})

test('a new database is rejected, and gets no id, if the files belong to an installation', async () => {
  const { dataDir, env } = await makeInstallation()
  const before = await listAll(dataDir)
  const DATABASE_URL = await createTestDatabase()
  expect(await startupErrorOf(startApp({ ...env, DATABASE_URL }))).toContain('is new and has no id yet')
  expect(await idIn(DATABASE_URL)).toBeUndefined()
  expect(await listAll(dataDir)).toEqual(before)
})

test('an existing database is rejected when the files have no marker and none of its rows refers to them', async () => {
  const { dataDir, env } = await makeInstallation()
  for (const name of ['files', 'artifacts']) await rm(join(dataDir, name, 'installation'))
  const other = await makeInstallation()
  expect(await startupErrorOf(startApp({ ...env, DATABASE_URL: other.env.DATABASE_URL }))).toContain(
    'refers to none of them',
  )
  await startApp(env)
  expect(await markIn(dataDir)).toBe(await idIn(env.DATABASE_URL))
})

test('an existing database is accepted with an empty data directory', async () => {
  const { env } = await makeInstallation()
  const dataDir = join(await makeFolder(), 'data')
  await startApp({ ...env, PARLEY_DATA_DIR: dataDir })
  expect(await markIn(dataDir)).toBe(await idIn(env.DATABASE_URL))
})

test('`parley store adopt` assigns the files to the database', async () => {
  const [one, other] = [await makeInstallation(), await makeInstallation()]
  const env = { ...one.env, DATABASE_URL: other.env.DATABASE_URL }
  const adopted = await runCommandInProcess(['store', 'adopt', '--json'], { folder: one.folder, env })
  const [former, installation] = [await idIn(one.env.DATABASE_URL), await idIn(env.DATABASE_URL)]
  expect(JSON.parse(adopted.stdout)).toEqual({
    installation,
    former: { files: former, artifacts: former },
  })
  await startApp(env)
  expect(await startupErrorOf(startApp(one.env))).toContain('belongs to another installation')
})

test('servers that start concurrently with a new database and directory agree on the installation id', async () => {
  const folder = await makeFolder()
  const env = { DATABASE_URL: await createTestDatabase('empty'), PARLEY_SECRET }
  const servers = await Promise.all([1, 2, 3].map(() => startServer({ folder, env })))
  expect(await markIn(join(folder, 'data'))).toBe(await idIn(env.DATABASE_URL))
  for (const server of servers) expect(await server.stop()).toMatchObject({ code: 0 })
})

test('only one of two servers with different databases can start in the same new directory', async () => {
  const dataDir = join(await makeFolder(), 'data')
  const urls = [await createTestDatabase(), await createTestDatabase()]
  const starts = await Promise.allSettled(
    urls.map((DATABASE_URL) => openApp({ DATABASE_URL, PARLEY_DATA_DIR: dataDir, PARLEY_SECRET })),
  )
  const started = starts.map(({ status }) => status === 'fulfilled')
  for (const one of starts) if (one.status === 'fulfilled') await one.value.close()
  expect(started.filter(Boolean)).toHaveLength(1)
  expect(await markIn(dataDir)).toBe(await idIn(urls[started.indexOf(true)] as string))
})

test('a new database is rejected if the data directory contains files without a marker', async () => {
  const dataDir = join(await makeFolder(), 'data')
  const blob = randomUUID()
  await mkdir(join(dataDir, 'files'), { recursive: true })
  await writeFile(join(dataDir, 'files', blob), 'whose?')
  const env = { DATABASE_URL: await createTestDatabase(), PARLEY_DATA_DIR: dataDir, PARLEY_SECRET }
  expect(await startupErrorOf(startApp(env))).toContain('refers to none of them')
  expect(await listAll(dataDir)).toEqual(['files', `files/${blob}`])
})
