/** Tests that requests and background work still get database connections while one table is locked. */
import pg from 'pg'
import { expect, onTestFinished, test } from 'vitest'
import { startApp, type TestApp } from '../support/app.ts'
import { createTestDatabase } from '../support/postgres.ts'
import { callProcedure } from '../support/rpc.ts'
import { createUpload, headUpload } from '../support/uploads.ts'

const chat = { model: 'mock', messages: [{ role: 'user', content: 'Hello.' }] }
const REQUESTS = 60

async function startAlone(): Promise<TestApp> {
  const app = await startApp({ DATABASE_URL: await createTestDatabase() })
  await expect.poll(async () => (await app.call('GET', '/v1/agents')).status).toBe(200)
  return app
}

/** Locks a table until the returned function is called. */
async function lockTable(app: TestApp, table: string): Promise<() => Promise<unknown>> {
  const other = new pg.Client({ connectionString: app.service.deps.config.databaseUrl })
  await other.connect()
  onTestFinished(() => other.end())
  await other.query(`begin; lock table ${table} in access exclusive mode`)
  return () => other.query('rollback')
}

async function countLockWaits(app: TestApp): Promise<number> {
  const other = new pg.Client({ connectionString: app.service.deps.config.databaseUrl })
  await other.connect()
  const { rows } = await other.query('select pid from pg_locks where not granted')
  await other.end()
  return rows.length
}

test.each([
  ['agents', '/v1/agents'],
  ['files', '/v1/files'],
])('a lock on the table %s delays only the requests that need the table', async (table, path) => {
  const app = await startAlone()
  const upload = await createUpload(app)
  const unlock = await lockTable(app, table)
  const answers: number[] = []
  const asking = Array.from({ length: REQUESTS }, async () =>
    answers.push((await app.call('GET', path)).status),
  )
  await expect.poll(() => countLockWaits(app)).toBeGreaterThan(0)

  const others = [
    await app.call('POST', '/v1/chat/completions', { body: chat }),
    await app.call('GET', '/v1/usage'),
    await app.call('GET', '/v1/artifacts'),
    await app.call('GET', `/artifacts/${upload.id}/status`),
    await app.call('GET', table === 'files' ? '/v1/agents' : '/v1/files'),
    await callProcedure(app, 'keys.validate'),
  ]
  expect(others.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200, 200])
  expect((await headUpload(app, upload)).status).toBe(200)
  expect((await app.call('GET', '/readyz')).status).toBe(200)

  await unlock()
  await Promise.all(asking)
  expect(answers).toHaveLength(REQUESTS)
  expect(answers.filter((status) => status !== 200 && status !== 503)).toEqual([])
})

test('background work does not wait for database connections that requests use', async () => {
  const app = await startAlone()
  const unlock = await lockTable(app, 'agents, files, usage_days, usage_calls')
  const paths = ['/v1/agents', '/v1/files', '/v1/usage']
  const asking = Array.from({ length: REQUESTS }, (_, at) => app.call('GET', paths[at % 3] as string))
  await expect.poll(() => countLockWaits(app)).toBeGreaterThan(10)
  const { limiter } = app.service.deps.shared
  expect(await limiter.hit([{ key: 'area', limit: 5 }])).toMatchObject({ isLimited: false })
  expect(app.service.deps.shared.health()).toEqual({ replicas: 'up' })
  await unlock()
  await Promise.all(asking)
})
