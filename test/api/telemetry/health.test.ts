/** Tests how and how often `/readyz` checks storage and the database. */
import { rename } from 'node:fs/promises'
import { join } from 'node:path'
import { sql } from 'kysely'
import { expect, inject, test } from 'vitest'
import { openFolder } from '../../../src/storage/folder.ts'
import { toResumableStore } from '../../../src/storage/local.ts'
import { startApp, type TestApp } from '../../support/app.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import { listStored, upload } from '../../support/files.ts'
import { makeFolder } from '../../support/process.ts'

async function readReady(app: TestApp) {
  const { status, body } = await app.call('GET', '/readyz')
  return [status, body.status, body.checks.storage]
}

/** Only a server on PostgreSQL reports the state of replicas. */
const ofReplicas = inject('database') === 'postgres' ? { replicas: 'up' } : {}

const GIB = 1024 ** 3
const roomy = { freeBytes: 900 * GIB, totalBytes: 1000 * GIB }

/** Starts a server whose disk has the space that `readSpace` returns. */
async function startWithSpace(readSpace: () => Promise<typeof roomy>) {
  const dataDir = await makeFolder()
  const fileBlobs = toResumableStore(await openFolder(join(dataDir, 'files'), readSpace), true).blobs
  const clock = createFakeClock()
  return { app: await startApp({}, { fileBlobs, clock }), clock, dataDir }
}

test('/readyz reports ready for a healthy server and does not leave test files behind', async () => {
  const { app, dataDir } = await startWithSpace(async () => roomy)
  const { status, body } = await app.call('GET', '/readyz')
  expect([status, body]).toEqual([
    200,
    { status: 'ready', checks: { database: 'up', ...ofReplicas, storage: 'up', backends: { mock: 'up' } } },
  ])
  expect(await listStored(dataDir)).toEqual({ kept: [], incoming: [] })
})

test('/readyz reports degraded while storage is full', async () => {
  let space = { ...roomy, freeBytes: 49 * GIB }
  const { app, clock } = await startWithSpace(async () => space)
  expect(await readReady(app)).toEqual([200, 'degraded', 'full'])
  expect((await upload(app)).status).toBe(507)
  space = roomy
  clock.advance(5)
  expect(await readReady(app)).toEqual([200, 'ready', 'up'])
  expect((await upload(app)).status).toBe(200)
})

test('/readyz reports unavailable while storage is not writable', async () => {
  const { app, clock, dataDir } = await startWithSpace(async () => roomy)
  await rename(join(dataDir, 'files'), join(dataDir, 'moved'))
  expect(await readReady(app)).toEqual([503, 'unavailable', 'down'])
  await rename(join(dataDir, 'moved'), join(dataDir, 'files'))
  clock.advance(5)
  expect(await readReady(app)).toEqual([200, 'ready', 'up'])
})

test('/readyz reports storage as down while a check hangs and does not start another check', async () => {
  const { promise, resolve } = Promise.withResolvers<typeof roomy>()
  let asked = 0
  const { app, clock } = await startWithSpace(() => {
    asked += 1
    return promise
  })
  expect(await readReady(app)).toEqual([503, 'unavailable', 'down'])
  clock.advance(60)
  expect(await readReady(app)).toEqual([503, 'unavailable', 'down'])
  expect(asked).toBe(1)
  resolve(roomy)
  await expect.poll(() => readReady(app)).toEqual([200, 'ready', 'up'])
})

test('/readyz checks storage at most once in five seconds', async () => {
  let asked = 0
  const { app, clock } = await startWithSpace(async () => {
    asked += 1
    return roomy
  })
  for (let second = 0; second < 10; second++) {
    await Promise.all(Array.from({ length: 5 }, () => readReady(app)))
    clock.advance(1)
  }
  expect(asked).toBe(2)
})

test('/readyz queries the database at most once per second', async () => {
  const clock = createFakeClock()
  const app = await startApp({}, { clock })
  const readDatabase = async () => (await app.call('GET', '/readyz')).body.checks.database
  expect(await readDatabase()).toBe('up')
  await sql`alter table parent_keys rename to moved_keys`.execute(app.service.deps.db)
  expect(await Promise.all([readDatabase(), readDatabase()])).toEqual(['up', 'up'])
  clock.advance(1)
  expect(await readDatabase()).toBe('down')
  await sql`alter table moved_keys rename to parent_keys`.execute(app.service.deps.db)
  clock.advance(1)
  expect(await readDatabase()).toBe('up')
})
