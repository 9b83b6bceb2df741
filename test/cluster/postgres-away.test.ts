/** Tests requests, streams and uploads during a PostgreSQL outage and after it. */

import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { setBudget } from '../../src/budgets/token-budgets.ts'
import { serviceActor } from '../../src/identity/audit.ts'
import { createTenant } from '../support/agents.ts'
import { readEvents, startApp, type TestApp } from '../support/app.ts'
import { createFakeClock } from '../support/fake-clock.ts'
import { createTestDatabase, type PostgresServer, startPostgres } from '../support/postgres.ts'
import { callProcedure } from '../support/rpc.ts'
import {
  createUpload,
  headUpload,
  patchUpload,
  readArtifact,
  readOffset,
  waitForState,
} from '../support/uploads.ts'
import { listBudgetCounters, ownerOf } from '../support/usage.ts'

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

let server: PostgresServer

beforeEach(async () => {
  server = await startPostgres()
  return () => server.remove()
})

const startOnServer = () => startApp({ DATABASE_URL: server.urlOf('postgres') })

const readReady = async (app: TestApp) => {
  const { status, body } = await app.call('GET', '/readyz')
  return [status, body.status, body.checks.database]
}

const untilServed = (app: TestApp) =>
  expect.poll(async () => (await app.call('GET', '/v1/agents')).status).toBe(200)

const chat = { model: 'mock', messages: [{ role: 'user', content: '[[tokens:60]][[delay:50]]' }] }

/** Starts a chat completion that streams for three seconds. */
async function openStream(app: TestApp): Promise<ReadableStreamDefaultReader<string>> {
  const response = await fetch(`${app.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${app.key}`, 'Content-Type': 'application/json' },
    body: JSON.stringify({ ...chat, stream: true }),
  })
  expect(response.status).toBe(200)
  return (response.body as ReadableStream<Uint8Array<ArrayBuffer>>)
    .pipeThrough(new TextDecoderStream())
    .getReader()
}

describe('during a database outage', () => {
  test('every API returns 503 in its own error format, and routes that need no database still respond', async () => {
    const app = await startOnServer()
    const { agent_key: key } = await app.createAgent()
    const upload = await createUpload(app)
    await server.stop()

    const inOneShape = [
      await app.call('POST', '/v1/agents', {
        body: 'name: Guide\ninstructions: Guide.\n',
        headers: { 'Content-Type': 'application/yaml' },
      }),
      await app.call('GET', '/v1/agents'),
      await app.call('GET', `/artifacts/${upload.id}/status`),
    ]
    for (const { status, headers, body } of inOneShape) {
      expect([status, headers.get('retry-after')]).toEqual([503, '1'])
      expect(JSON.stringify(body)).toContain('The data store is busy or unavailable; try again.')
    }
    const asked = await app.call('POST', '/v1/chat/completions', { key, body: chat })
    expect([asked.status, asked.headers.get('retry-after'), asked.body.error.code]).toEqual([
      503,
      '1',
      'service_unavailable',
    ])
    const typed = await callProcedure(app, 'agents.list')
    expect([typed.status, typed.body.error.json.data.code]).toEqual([503, 'service_unavailable'])
    const head = await headUpload(app, upload)
    expect([head.status, head.headers.get('retry-after'), head.headers.get('tus-resumable')]).toEqual([
      503,
      '1',
      '1.0.0',
    ])

    expect((await app.call('GET', '/healthz')).status).toBe(200)
    expect((await app.call('GET', '/openapi.json', { key: null })).status).toBe(200)
    expect(await readReady(app)).toEqual([503, 'unavailable', 'down'])

    await server.start()
    await untilServed(app)
    // The notification connection is restored slightly later than the query connections.
    await expect.poll(() => readReady(app)).toEqual([200, 'ready', 'up'])
    expect((await headUpload(app, upload)).status).toBe(200)
  })

  test.each(['stop', 'kill'] as const)(
    'an open stream completes, and its usage is recorded afterwards (PostgreSQL outage: %s)',
    async (how) => {
      const app = await startOnServer()
      const reader = await openStream(app)
      let text = (await reader.read()).value ?? ''
      await server[how]()
      expect(readEvents(text).isDone).toBe(false)
      for (let piece = await reader.read(); !piece.done; piece = await reader.read()) text += piece.value
      const { isDone, events } = readEvents(text)
      expect(isDone).toBe(true)
      expect(events.filter((event) => event.error !== undefined)).toEqual([])
      await server.start()
      await untilServed(app)
      const countCalls = () => app.service.deps.db.selectFrom('usage_calls').select('status').execute()
      await expect.poll(countCalls).toEqual([{ status: 'ok' }])
    },
  )

  test('only calls with a budget need the database to be checked', async () => {
    const clock = createFakeClock()
    const app = await startApp({ DATABASE_URL: server.urlOf('postgres') }, { clock })
    const limited = await createTenant(app)
    const { deps } = app.service
    await setBudget(deps, serviceActor, { kind: 'parent', tenantId: limited.slice(4, 16) }, { day: 9_000 })
    const reserve = (key: string) => {
      const owner = { tenantId: key.slice(4, 16), agentId: undefined }
      return Promise.resolve(
        deps.budgets.reserve(owner, { messages: [] }, { price: undefined, metering: 'reported' }),
      ).then(
        (reservation) => (reservation === undefined ? 'no budget' : 'reserved'),
        ({ reason }) => reason,
      )
    }
    expect([await reserve(app.key), await reserve(limited)]).toEqual(['no budget', 'reserved'])
    await server.stop()
    clock.advance(60)
    expect([await reserve(app.key), await reserve(limited)]).toEqual(['no budget', 'service_unavailable'])
  })

  test('calls without a budget are answered for the two seconds in which keys are cached, and others get 503', async () => {
    const clock = createFakeClock()
    const app = await startApp({ DATABASE_URL: server.urlOf('postgres') }, { clock })
    const limited = await createTenant(app)
    const { deps } = app.service
    await setBudget(deps, serviceActor, { kind: 'parent', tenantId: limited.slice(4, 16) }, { day: 9_000 })
    const ask = async (key: string) => {
      const body = { model: 'mock', messages: [{ role: 'user', content: 'hello' }] }
      return (await app.call('POST', '/v1/chat/completions', { key, body })).status
    }
    expect([await ask(app.key), await ask(limited)]).toEqual([200, 200])
    await server.stop()
    expect([await ask(app.key), await ask(limited)]).toEqual([200, 503])
    clock.advance(2)
    expect([await ask(app.key), await ask(limited)]).toEqual([503, 503])
  })

  test('a running call settles its budget once when the database is available again', async () => {
    const app = await startOnServer()
    await setBudget(app.service.deps, serviceActor, ownerOf(app), { day: 90_000 })
    const reader = await openStream(app)
    await reader.read()
    await server.stop()
    for (let piece = await reader.read(); !piece.done; piece = await reader.read());
    await server.start()
    await untilServed(app)
    await expect.poll(async () => (await listBudgetCounters(app))[0]?.reserved).toBe(0)
    const [call] = await app.service.deps.db.selectFrom('usage_calls').selectAll().execute()
    const used = (call?.prompt_tokens ?? 0) + (call?.completion_tokens ?? 0)
    expect(await listBudgetCounters(app)).toEqual([{ period: 'day', used, reserved: 0 }])
  })

  test('an upload fails with 503 and later resumes from the recorded offset', async () => {
    const app = await startOnServer()
    const bytes = randomBytes(300_000)
    const upload = await createUpload(app, { size: bytes.length })
    expect((await patchUpload(app, upload, 0, bytes.subarray(0, 100_000))).status).toBe(204)

    const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>()
    const sending = patchUpload(app, upload, 100_000, readable)
    const writer = writable.getWriter()
    await writer.write(bytes.subarray(100_000, 150_000))
    const leased = () => app.service.deps.db.selectFrom('artifacts').select('fence').executeTakeFirst()
    await expect.poll(leased).toEqual({ fence: 2 })
    await server.stop()
    await writer.write(bytes.subarray(150_000))
    await writer.close()
    const { status, headers } = await sending
    expect([status, headers.get('retry-after')]).toEqual([503, '1'])

    await server.start()
    await untilServed(app)
    const offset = await readOffset(app, upload)
    expect(offset).toBe(100_000)
    // The interrupted request holds its lease until the server can write to the database again.
    const rest = () => patchUpload(app, upload, offset, bytes.subarray(offset))
    await expect.poll(async () => (await rest()).status).toBe(204)
    await waitForState(app, upload.id, 'ready')
    expect((await readArtifact(app, upload.id)).equals(bytes)).toBe(true)
  })
})

test('a database that does not respond is reported as unavailable until it responds again', async () => {
  const app = await startOnServer()
  await untilServed(app)
  await server.signal('SIGSTOP')
  expect((await app.call('GET', '/v1/agents')).status).toBe(503)
  expect(await readReady(app)).toEqual([503, 'unavailable', 'down'])
  await server.signal('SIGCONT')
  await untilServed(app)
})

test('requests return 503 while all database connections are in use', async () => {
  const app = await startApp({ DATABASE_URL: await createTestDatabase() })
  await untilServed(app)
  const other = new pg.Client({ connectionString: app.service.deps.config.databaseUrl })
  await other.connect()
  onTestFinished(() => other.end())
  await other.query('begin; lock table agents in access exclusive mode')
  const answers: number[] = []
  const asking = Array.from({ length: 25 }, async () => {
    const { status, headers } = await app.call('GET', '/v1/agents')
    if (status === 503) expect(headers.get('retry-after')).toBe('1')
    answers.push(status)
  })
  await expect.poll(() => answers).toEqual(Array(18).fill(503))
  await other.query('rollback')
  await Promise.all(asking)
  expect(answers.filter((status) => status === 200)).toHaveLength(7)
})
