/** Tests how workers take, renew and release jobs in the database. */
import { pino } from 'pino'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { createRunner } from '../../src/artifacts/jobs/queue.ts'
import {
  clearTakenJobs,
  deleteJob,
  deleteJobs,
  findNextDue,
  type JobRow,
  renewJob,
  returnJob,
} from '../../src/artifacts/jobs/store.ts'
import { insertArtifact, raiseProgress } from '../../src/artifacts/store.ts'
import { applyMigrations } from '../../src/db/migrate.ts'
import { migrations } from '../../src/db/migrations/index.ts'
import { openSqlite, toKysely } from '../../src/db/sqlite.ts'
import { Metrics } from '../../src/telemetry/metrics.ts'
import { createFakeClock } from '../support/fake-clock.ts'
import { insertUploads, openWithJobs } from '../support/job-rows.ts'
import { waitUntil } from '../support/jobs.ts'

const owner = 'a'.repeat(12)

describe('a job', () => {
  test('is taken by one worker at a time, the oldest due job first', async () => {
    const { take } = await openWithJobs(['one', 'two'])
    expect(await take(99)).toBeUndefined()
    expect((await take(101))?.blob).toBe('one')
    expect((await take(101))?.blob).toBe('two')
    expect(await take(129)).toBeUndefined()
  })

  test('can be taken by another worker once its lease expires, and the first worker can no longer change it', async () => {
    const { db, take } = await openWithJobs(['one'])
    const before = (await take(100)) as JobRow
    expect(await renewJob(db, before, 140)).toBe(true)
    expect(await take(139)).toBeUndefined()
    const after = (await take(140)) as JobRow
    expect(after.fence).toBe(before.fence + 1)
    expect(await renewJob(db, before, 500)).toBe(false)
    await returnJob(db, before, { next_at: 0 })
    expect(await deleteJob(db, before)).toBe(false)
    expect(await findNextDue(db, 'convert', [])).toBe(170)
    expect(await deleteJob(db, after)).toBe(true)
    expect(await findNextDue(db, 'convert', [])).toBeUndefined()
  })

  test('is not taken again by the process that runs it, even if the process renews its lease late', async () => {
    const { take } = await openWithJobs(['one', 'two'])
    expect((await take(1_000, ['one']))?.blob).toBe('two')
    expect(await take(1_000, ['one', 'two'])).toBeUndefined()
  })

  test('is due immediately if it is scheduled more than an hour ahead, as after a clock change', async () => {
    const { db, take } = await openWithJobs(['one'])
    await returnJob(db, (await take(90_000)) as JobRow, { next_at: 90_600 })
    expect(await take(90_000 - 3_000)).toBeUndefined()
    expect(await take(90_000 - 3_001)).toMatchObject({ blob: 'one' })
  })

  test('is deleted with the other jobs of its upload', async () => {
    const { db, take } = await openWithJobs(['one', 'two'])
    await deleteJobs(db, 'one')
    expect(await take(1_000)).toMatchObject({ blob: 'two' })
    expect(await take(1_000)).toBeUndefined()
  })

  test('is released immediately with one more failure if its process has died', async () => {
    const { db, take } = await openWithJobs(['one', 'two'])
    await take(100)
    await returnJob(db, { kind: 'convert', blob: 'two', fence: 0 }, { next_at: 900, failures: 4 })
    await clearTakenJobs(db, 105)
    expect(await take(105)).toMatchObject({ blob: 'one', failures: 1 })
    expect(await take(105)).toBeUndefined()
  })
})

test("a conversion's progress never decreases and does not change after the conversion", async () => {
  const { db } = await openWithJobs(['one'])
  const raise = (permille: number) => raiseProgress(db, { blob: 'one' }, permille)
  expect([await raise(300), await raise(300), await raise(200), await raise(301)]).toEqual([
    true,
    false,
    false,
    true,
  ])
  await db.updateTable('artifacts').set({ state: 'ready' }).execute()
  expect(await raise(900)).toBe(false)
})

test("a worker aborts a job that another worker has taken and does not change the job's row", async () => {
  const { db } = await openWithJobs(['one'])
  vi.useFakeTimers({ toFake: ['setInterval'] })
  onTestFinished(() => void vi.useRealTimers())
  const reasons: unknown[] = []
  const work = (_job: JobRow, signal: AbortSignal) =>
    new Promise<void>((_resolve, reject) => {
      signal.addEventListener('abort', () => {
        reasons.push(signal.reason)
        reject(signal.reason)
      })
    })
  const deps = {
    db,
    clock: createFakeClock(100),
    random: () => Uint8Array.of(0),
    log: pino({ level: 'silent' }),
    metrics: new Metrics(() => false),
    tracing: undefined,
  }
  const onFailure = () => void reasons.push('failed')
  const runner = createRunner(deps, { kind: 'convert', atOnce: 1, work, onFailure })
  onTestFinished(() => runner.close())
  runner.wake()
  const read = () => db.selectFrom('jobs').selectAll().executeTakeFirstOrThrow()
  await waitUntil(async () => (await read()).is_taken === 1, 'it is taken')
  vi.advanceTimersByTime(10_000)
  expect(reasons).toEqual([])
  await db.updateTable('jobs').set({ fence: 7, next_at: 1_000 }).execute()
  vi.advanceTimersByTime(10_000)
  await waitUntil(async () => reasons.length > 0, 'it is stopped')
  await runner.close()
  expect(reasons).toEqual(['lost'])
  expect(await read()).toMatchObject({ fence: 7, next_at: 1_000, is_taken: 1, failures: 0 })
})

test('a migration creates missing jobs for the uploads in an older database', async () => {
  const connection = openSqlite(':memory:')
  onTestFinished(() => void connection.close())
  const db = toKysely(connection)
  const { '0010_create_jobs': _jobs, ...older } = migrations
  const before = Object.fromEntries(Object.entries(older).filter(([name]) => name < '0010'))
  await applyMigrations(connection, db, before)
  await insertUploads(db, 'processing')
  for (const [id, state, acknowledged] of [
    ['unacknowledged', 'processing', 0],
    ['done', 'ready', 1],
    ['ready', 'ready', 0],
    ['growing', 'uploading', 0],
  ] as const) {
    const more = { parent_key_id: owner, created_at: 1, blob: id }
    await insertArtifact(db, { id, state, acknowledged, ...more })
  }
  await db.updateTable('artifacts').set({ acknowledged: 1 }).where('id', '=', 'processing').execute()
  await applyMigrations(connection, db, migrations)
  const jobs = await db.selectFrom('jobs').select(['kind', 'blob']).orderBy('kind').orderBy('blob').execute()
  expect(jobs.map(({ kind, blob }) => `${kind} ${blob}`)).toEqual([
    'convert processing',
    'convert unacknowledged',
    'hook ready',
    'hook unacknowledged',
  ])
})
