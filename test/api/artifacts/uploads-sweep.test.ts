/** Tests which uploads, reservations and orphaned bytes the sweeper deletes. */
import { randomUUID } from 'node:crypto'
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { createArtifactSweeper } from '../../../src/artifacts/maintenance.ts'
import { startApp } from '../../support/app.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import { getRow } from '../../support/jobs.ts'
import { makeFolder } from '../../support/process.ts'
import {
  createUpload,
  headUpload,
  listArtifactBytes,
  patchUpload,
  postUpload,
  readArtifact,
  readStatus,
  uploadWhole,
  waitForState,
} from '../../support/uploads.ts'

const DAY = 86_400
const HOUR = 3_600
const hello = Buffer.from('hello')

/** Starts a service whose fake clock begins at the current time, because file timestamps are real. */
async function startWithClock() {
  const clock = createFakeClock(Math.floor(Date.now() / 1000))
  const dataDir = join(await makeFolder(), 'data')
  const app = await startApp({ PARLEY_DATA_DIR: dataDir }, { clock })
  const sweeper = createArtifactSweeper(app.service.deps)
  const countRows = async () =>
    (await app.service.deps.db.selectFrom('artifacts').select('id').execute()).length
  return { app, clock, dataDir, countRows, sweep: () => sweeper.run() }
}

describe('an unfinished upload', () => {
  test('expires exactly one day after its last bytes arrive and is unknown afterwards', async () => {
    const { app, clock, dataDir, sweep, countRows } = await startWithClock()
    const begun = await createUpload(app, { size: 10 })
    clock.advance(DAY - 1)
    expect((await patchUpload(app, begun, 0, hello)).status).toBe(204)
    clock.advance(DAY - 1)
    expect((await headUpload(app, begun)).status).toBe(200)
    clock.advance(1)
    expect((await headUpload(app, begun)).status).toBe(404)
    expect((await patchUpload(app, begun, 5, hello)).status).toBe(404)
    expect(await readStatus(app, begun.id)).toEqual({
      artifactId: begun.id,
      state: 'unknown',
      reason: 'expired',
    })
    expect(await countRows()).toBe(1)
    await sweep()
    expect(await countRows()).toBe(0)
    expect((await listArtifactBytes(dataDir)).growing).toEqual([])
  })

  test('releases its id when it expires, even before the sweeper runs', async () => {
    const { app, clock } = await startWithClock()
    const metadata = { artifactId: randomUUID() }
    await postUpload(app, { metadata })
    clock.advance(DAY)
    expect((await postUpload(app, { metadata })).status).toBe(201)
    expect((await postUpload(app, { metadata, size: 11 })).status).toBe(409)
  })

  test('does not expire while a writer holds its lease', async () => {
    const { app, clock, sweep, countRows } = await startWithClock()
    await createUpload(app, { size: 10 })
    const { db } = app.service.deps
    const now = Math.floor(clock.now() / 1000)
    await db
      .updateTable('artifacts')
      .set({ lease_until: now + DAY + 30 })
      .execute()
    clock.advance(DAY)
    await sweep()
    expect(await countRows()).toBe(1)
    await db.updateTable('artifacts').set({ lease_until: null }).execute()
    await sweep()
    expect(await countRows()).toBe(0)
  })

  test('can be resumed even if the system clock was a year ahead for several hours', async () => {
    const { app, clock, dataDir, sweep } = await startWithClock()
    const begun = await createUpload(app, { size: 10, body: hello })
    // Changes only the wall clock; the monotonic clock does not jump.
    const { now } = clock
    clock.now = () => now() + 365 * DAY * 1000
    const { growing } = await listArtifactBytes(dataDir)
    for (let hours = 0; hours < 3; hours++) {
      await sweep()
      clock.advance(HOUR)
    }
    expect((await listArtifactBytes(dataDir)).growing).toEqual(growing)
    clock.now = now
    expect((await patchUpload(app, begun, 5, hello)).status).toBe(204)
  })

  test('is completed instead of deleted if all its bytes have arrived', async () => {
    const { app, sweep } = await startWithClock()
    const begun = await createUpload(app, { size: 10, body: hello })
    await app.service.deps.db.updateTable('artifacts').set({ size_bytes: 5 }).execute()
    await sweep()
    await waitForState(app, begun.id, 'ready')
    expect(await readArtifact(app, begun.id)).toEqual(hello)
  })
})

test('the sweeper never deletes finished uploads', async () => {
  const { app, clock, sweep } = await startWithClock()
  const begun = await uploadWhole(app, hello)
  for (let days = 0; days < 3; days++) {
    clock.advance(400 * DAY)
    await sweep()
  }
  expect((await headUpload(app, begun)).status).toBe(200)
  expect(await readArtifact(app, begun.id)).toEqual(hello)
})

test('the sweeper deletes a reserved id when its tokens expire', async () => {
  const { app, clock, sweep, countRows } = await startWithClock()
  await app.call('POST', '/v1/artifacts', { body: { expires_in: HOUR } })
  clock.advance(HOUR - 1)
  await sweep()
  expect(await countRows()).toBe(1)
  clock.advance(1)
  await sweep()
  expect(await countRows()).toBe(0)
})

test('the sweeper deletes a large number of expired uploads in several runs', async () => {
  const { app, clock, sweep, countRows } = await startWithClock()
  await createUpload(app)
  const { db } = app.service.deps
  const row = await db.selectFrom('artifacts').selectAll().executeTakeFirstOrThrow()
  for (let index = 0; index < 1_100; index++) {
    const copy = { id: randomUUID(), blob: randomUUID(), segment: `segment${index}` }
    await db
      .insertInto('artifacts')
      .values({ ...row, ...copy })
      .execute()
  }
  clock.advance(DAY)
  await sweep()
  expect(await countRows()).toBe(101)
  await sweep()
  expect(await countRows()).toBe(0)
})

test('the sweeper deletes orphaned bytes after an hour and leaves other bytes in place', async () => {
  const { app, clock, dataDir, sweep } = await startWithClock()
  const begun = await uploadWhole(app, hello)
  await createUpload(app, { size: 10, body: hello })
  const owned = await listArtifactBytes(dataDir)
  const [kept, growing] = [randomUUID(), randomUUID()]
  await writeFile(join(dataDir, 'artifacts', kept), 'lost')
  await writeFile(join(dataDir, 'artifacts', 'growing', growing), 'lost')
  await sweep()
  expect((await listArtifactBytes(dataDir)).kept).toHaveLength(owned.kept.length + 1)
  clock.advance(HOUR + 60)
  await sweep()
  expect(await listArtifactBytes(dataDir)).toEqual(owned)
  expect(await readArtifact(app, begun.id)).toEqual(hello)
})

test('the sweeper deletes nothing when it finds more than 100 orphans', async () => {
  const { app, clock, dataDir, sweep } = await startWithClock()
  await createUpload(app, { size: 10, body: hello })
  const before = await listArtifactBytes(dataDir)
  const folders = [join(dataDir, 'artifacts'), join(dataDir, 'artifacts', 'growing')]
  const paths = Array.from({ length: 101 }, (_, index) => join(folders[index % 2] as string, randomUUID()))
  await Promise.all(paths.map((path) => writeFile(path, 'lost')))
  clock.advance(HOUR + 60)
  await sweep()
  const { kept, growing } = await listArtifactBytes(dataDir)
  expect([kept.length, growing.length]).toEqual([51, 51])
  // With 100 orphans left, the sweeper must delete them.
  await rm(paths[0] as string)
  clock.advance(HOUR)
  await sweep()
  expect(await listArtifactBytes(dataDir)).toEqual(before)
})

test('the sweeper deletes an acknowledged original that a crash left next to its converted file', async () => {
  const { app, clock, dataDir, sweep } = await startWithClock()
  const srt = Buffer.from('1\n00:00:01,000 --> 00:00:02,000\nHi\n')
  // Sets the conversion's result directly because a conversion times out on the fake clock.
  await uploadWhole(app, srt, { metadata: { kind: 'captions' } })
  const { db } = app.service.deps
  const [{ blob }, served] = [await getRow(app), randomUUID()]
  await writeFile(join(dataDir, 'artifacts', served), 'WEBVTT')
  await db.updateTable('artifacts').set({ served_blob: served, acknowledged: 0 }).execute()
  clock.advance(2 * HOUR)
  await sweep()
  expect((await listArtifactBytes(dataDir)).kept.sort()).toEqual([blob, served].sort())
  await db.updateTable('artifacts').set({ acknowledged: 1 }).execute()
  clock.advance(2 * HOUR)
  await sweep()
  expect((await listArtifactBytes(dataDir)).kept).toEqual([served])
})
