/** What goes by itself: unfinished uploads, reserved ids, bytes that belong to nothing; and what never does. */
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
  beginUpload,
  headUpload,
  listArtifactBytes,
  patchUpload,
  postUpload,
  readArtifact,
  readStatus,
  untilState,
  uploadWhole,
} from '../../support/uploads.ts'

const DAY = 86_400
const HOUR = 3_600
const hello = Buffer.from('hello')

/** Its clock agrees with the one that files are dated by. */
async function startWorld() {
  const clock = createFakeClock(Math.floor(Date.now() / 1000))
  const dataDir = join(await makeFolder(), 'data')
  const app = await startApp({ PARLEY_DATA_DIR: dataDir }, { clock })
  const sweeper = createArtifactSweeper(app.service.deps)
  const countRows = async () =>
    (await app.service.deps.db.selectFrom('artifacts').select('id').execute()).length
  return { app, clock, dataDir, countRows, sweep: () => sweeper.run() }
}

describe('an unfinished upload', () => {
  test('goes a day after its last bytes, and is unknown from that second on', async () => {
    const { app, clock, dataDir, sweep, countRows } = await startWorld()
    const begun = await beginUpload(app, { size: 10 })
    clock.advance(DAY - 1)
    expect((await patchUpload(app, begun, 0, hello)).status).toBe(204)
    clock.advance(DAY - 1)
    expect((await headUpload(app, begun)).status).toBe(200)
    clock.advance(1)
    expect((await headUpload(app, begun)).status).toBe(404)
    expect((await patchUpload(app, begun, 5, hello)).status).toBe(404)
    expect(await readStatus(app, begun.id)).toEqual({ artifactId: begun.id, state: 'unknown' })
    expect(await countRows()).toBe(1)
    await sweep()
    expect(await countRows()).toBe(0)
    expect((await listArtifactBytes(dataDir)).growing).toEqual([])
  })

  test('that has expired leaves its id to others, swept or not', async () => {
    const { app, clock } = await startWorld()
    const metadata = { artifactId: randomUUID() }
    await postUpload(app, { metadata })
    clock.advance(DAY)
    expect((await postUpload(app, { metadata })).status).toBe(201)
    expect((await postUpload(app, { metadata })).status).toBe(409)
  })

  test('stays while somebody writes into it, and while one cannot know what time it is', async () => {
    const { app, clock, sweep, countRows } = await startWorld()
    await beginUpload(app, { size: 10 })
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
    // Somebody sets the clock: only one of its faces moves.
    const before = clock.now
    clock.now = () => before() + HOUR * 1000
    await sweep()
    expect(await countRows()).toBe(1)
    await sweep()
    expect(await countRows()).toBe(0)
  })

  test('with all its bytes is completed instead', async () => {
    const { app, sweep } = await startWorld()
    const begun = await beginUpload(app, { size: 10, body: hello })
    await app.service.deps.db.updateTable('artifacts').set({ size_bytes: 5 }).execute()
    await sweep()
    await untilState(app, begun.id, 'ready')
    expect(await readArtifact(app, begun.id)).toEqual(hello)
  })
})

test('finished uploads stay for good. R2.', async () => {
  const { app, clock, sweep } = await startWorld()
  const begun = await uploadWhole(app, hello)
  for (let days = 0; days < 3; days++) {
    clock.advance(400 * DAY)
    await sweep()
  }
  expect((await headUpload(app, begun)).status).toBe(200)
  expect(await readArtifact(app, begun.id)).toEqual(hello)
})

test('a reserved id goes when its tokens do', async () => {
  const { app, clock, sweep, countRows } = await startWorld()
  await app.call('POST', '/v1/artifacts', { body: { expires_in: HOUR } })
  clock.advance(HOUR - 1)
  await sweep()
  expect(await countRows()).toBe(1)
  clock.advance(1)
  await sweep()
  expect(await countRows()).toBe(0)
})

test('more than a run may sweep is swept in several', async () => {
  const { app, clock, sweep, countRows } = await startWorld()
  await beginUpload(app)
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

test('bytes that belong to nothing go after an hour, the others stay', async () => {
  const { app, clock, dataDir, sweep } = await startWorld()
  const begun = await uploadWhole(app, hello)
  await beginUpload(app, { size: 10, body: hello })
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

test('more orphans than a hundred, whole and unfinished together, all stay', async () => {
  const { app, clock, dataDir, sweep } = await startWorld()
  await beginUpload(app, { size: 10, body: hello })
  const before = await listArtifactBytes(dataDir)
  const folders = [join(dataDir, 'artifacts'), join(dataDir, 'artifacts', 'growing')]
  const paths = Array.from({ length: 101 }, (_, index) => join(folders[index % 2] as string, randomUUID()))
  await Promise.all(paths.map((path) => writeFile(path, 'lost')))
  clock.advance(HOUR + 60)
  await sweep()
  const { kept, growing } = await listArtifactBytes(dataDir)
  expect([kept.length, growing.length]).toEqual([51, 51])
  // One fewer is what crashes may leave.
  await rm(paths[0] as string)
  clock.advance(HOUR)
  await sweep()
  expect(await listArtifactBytes(dataDir)).toEqual(before)
})

test('uploaded bytes that a crash left behind their conversion go too, once the host was told', async () => {
  const { app, clock, dataDir, sweep } = await startWorld()
  const srt = Buffer.from('1\n00:00:01,000 --> 00:00:02,000\nHi\n')
  // On this clock everything takes too long, so that it is left to the test to say what came of it.
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
