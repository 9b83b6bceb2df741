/** Tests the file sweeper, which deletes expired files and orphaned bytes. */
import { randomUUID } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pino } from 'pino'
import { describe, expect, test } from 'vitest'
import { createFileSweeper } from '../../../src/files/files.ts'
import { startApp, type TestApp } from '../../support/app.ts'
import { createFakeClock, type FakeClock } from '../../support/fake-clock.ts'
import { download, field, filePart, listStored, purpose, upload } from '../../support/files.ts'
import { makeFolder } from '../../support/process.ts'

const HOUR = 3600
const expiry = (seconds: number) => [
  field('expires_after[anchor]', 'created_at'),
  field('expires_after[seconds]', String(seconds)),
]

interface Setup {
  readonly app: TestApp
  readonly clock: FakeClock
  readonly dataDir: string
  sweep(): Promise<void>
}

/** Starts a server whose fake clock begins at the current time, because file timestamps are real. */
async function startSweeper(): Promise<Setup> {
  const clock = createFakeClock(Math.floor(Date.now() / 1000))
  const dataDir = join(await makeFolder(), 'data')
  const app = await startApp({ PARLEY_DATA_DIR: dataDir, PARLEY_RATE_LIMIT_PARENT: '0' }, { clock })
  const sweeper = createFileSweeper(app.service.deps)
  return { app, clock, dataDir, sweep: () => sweeper.run() }
}

async function countRows({ app }: Setup): Promise<number> {
  const { count } = await app.service.deps.db
    .selectFrom('files')
    .select((query) => query.fn.countAll<number>().as('count'))
    .executeTakeFirstOrThrow()
  return count
}

describe('an expired file', () => {
  test('is readable until its last second and returns 404 afterwards', async () => {
    const { app, clock } = await startSweeper()
    const { body: file } = await upload(app, [filePart(), purpose, ...expiry(HOUR)])
    clock.advance(HOUR - 1)
    expect((await app.call('GET', `/v1/files/${file.id}`)).status).toBe(200)
    expect((await app.call('GET', '/v1/files')).body.data).toEqual([file])
    clock.advance(1)
    expect((await app.call('GET', `/v1/files/${file.id}`)).status).toBe(404)
    expect((await app.call('GET', '/v1/files')).body.data).toEqual([])
    expect((await download(app, file.id)).status).toBe(404)
    expect((await app.call('DELETE', `/v1/files/${file.id}`)).status).toBe(404)
  })

  test('is deleted with its bytes, without affecting other files', async () => {
    const setup = await startSweeper()
    const { app, clock, dataDir, sweep } = setup
    const { body: stays } = await upload(app)
    const { body: later } = await upload(app, [filePart(), purpose, ...expiry(2 * HOUR)])
    await upload(app, [filePart(), purpose, ...expiry(HOUR)])
    await sweep()
    expect((await listStored(dataDir)).kept).toHaveLength(3)
    clock.advance(HOUR)
    await sweep()
    expect((await listStored(dataDir)).kept).toHaveLength(2)
    expect(await countRows(setup)).toBe(2)
    expect((await app.call('GET', '/v1/files')).body.data).toEqual([later, stays])
    expect(await (await download(app, stays.id)).text()).toBe('hello')
  })

  test('is deleted a day after a clock jump made it expire, unless the clock is corrected', async () => {
    const setup = await startSweeper()
    const { app, clock, sweep } = setup
    await upload(app, [filePart(), purpose, ...expiry(100 * HOUR)])
    // Changes only the wall clock; the monotonic clock does not jump.
    const { now } = clock
    const jump = (hours: number) => {
      clock.now = () => now() + hours * HOUR * 1000
    }
    const countAfter = async (hours: number) => {
      clock.advance(hours * HOUR)
      await sweep()
      return countRows(setup)
    }
    jump(200)
    expect([await countAfter(0), await countAfter(0), await countAfter(23)]).toEqual([1, 1, 1])
    jump(0)
    expect(await countAfter(2)).toBe(1)
    jump(200)
    expect([await countAfter(1), await countAfter(23)]).toEqual([1, 1])
    expect(await countAfter(1)).toBe(0)
  })
})

describe('more than a thousand expired files', () => {
  test('are deleted 1,000 at a time', async () => {
    const setup = await startSweeper()
    const { app, clock, sweep } = setup
    const { body: file } = await upload(app, [filePart(), purpose, ...expiry(HOUR)])
    const row = await app.service.deps.db
      .selectFrom('files')
      .selectAll()
      .where('id', '=', file.id)
      .executeTakeFirstOrThrow()
    for (let index = 0; index < 1100; index++) {
      const copy = { ...row, id: `file-${index}`, blob: randomUUID(), position: row.position + index + 1 }
      await app.service.deps.db.insertInto('files').values(copy).execute()
    }
    clock.advance(HOUR)
    await sweep()
    expect(await countRows(setup)).toBe(101)
    await sweep()
    expect(await countRows(setup)).toBe(0)
  })
})

describe('orphaned bytes in the file store', () => {
  test('are deleted by the first sweep after an hour', async () => {
    const { app, clock, dataDir, sweep } = await startSweeper()
    const { body: file } = await upload(app)
    const [owned] = (await listStored(dataDir)).kept
    const orphan = randomUUID()
    await writeFile(join(dataDir, 'files', orphan), 'lost')
    await writeFile(join(dataDir, 'files', 'notes.txt'), 'not ours')
    await sweep()
    expect((await listStored(dataDir)).kept.sort()).toEqual([owned, orphan, 'notes.txt'].sort())
    clock.advance(HOUR + 60)
    await sweep()
    expect((await listStored(dataDir)).kept.sort()).toEqual([owned, 'notes.txt'].sort())
    expect(await (await download(app, file.id)).text()).toBe('hello')
  })

  test.each([
    [100, 0],
    [101, 101],
  ])(
    'in a small store are deleted only if there are at most 100 (%i found, %i left)',
    async (count, left) => {
      const { clock, dataDir, sweep } = await startSweeper()
      await writeOrphans(dataDir, count)
      clock.advance(HOUR + 60)
      await sweep()
      expect((await listStored(dataDir)).kept).toHaveLength(left)
    },
  )

  test('in a large store are deleted only if they are at most 5% of all objects', async () => {
    const { app, clock, dataDir, sweep } = await startSweeper()
    const { body: file } = await upload(app)
    const { db } = app.service.deps
    const row = await db.selectFrom('files').selectAll().where('id', '=', file.id).executeTakeFirstOrThrow()
    const owned = await writeOrphans(dataDir, 1_999)
    const copies = owned.map((blob, index) => ({
      ...row,
      id: `file-${index}`,
      blob,
      position: row.position + index + 1,
    }))
    for (let at = 0; at < copies.length; at += 500)
      await db
        .insertInto('files')
        .values(copies.slice(at, at + 500))
        .execute()
    await writeOrphans(dataDir, 105)
    clock.advance(HOUR + 60)
    await sweep()
    expect((await listStored(dataDir)).kept).toHaveLength(2_000)
    await writeOrphans(dataDir, 106)
    clock.advance(HOUR + 60)
    await sweep()
    expect((await listStored(dataDir)).kept).toHaveLength(2_106)
  })

  test('above the limit are logged with their number and the command that deletes them', async () => {
    const { app, clock, dataDir } = await startSweeper()
    await writeOrphans(dataDir, 150)
    clock.advance(HOUR + 60)
    const lines: string[] = []
    const log = pino({}, { write: (line: string) => void lines.push(line) })
    await createFileSweeper({ ...app.service.deps, log }).run()
    expect(lines.map((line) => JSON.parse(line))).toEqual([
      expect.objectContaining({
        what: 'files',
        objects: 150,
        orphans: 150,
        limit: 100,
        msg: expect.stringContaining('`parley store orphans --delete`'),
      }),
    ])
    expect((await listStored(dataDir)).kept).toHaveLength(150)
  })
})

async function writeOrphans(dataDir: string, count: number): Promise<string[]> {
  const names = Array.from({ length: count }, () => randomUUID())
  await Promise.all(names.map((name) => writeFile(join(dataDir, 'files', name), '')))
  return names
}
