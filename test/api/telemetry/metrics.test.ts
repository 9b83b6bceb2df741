/** Tests the contents of `/metrics` and which callers may read it. */
import sharp from 'sharp'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { openApp, startApp, type TestApp } from '../../support/app.ts'
import { writeConfigFile } from '../../support/config-file.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import { processMetrics, promisedMetrics } from '../../support/observability-doc.ts'
import { eventually } from '../../support/process.ts'
import { exchange, toRequest } from '../../support/raw-connection.ts'
import { callProcedure, createTypedClient } from '../../support/rpc.ts'
import { type ScrapedMetrics, scrape } from '../../support/scrape.ts'
import { createUpload, patchUpload, postUpload, waitForState } from '../../support/uploads.ts'

const TOKEN = 'a-token-for-the-scraper'
const CHAT = '/v1/chat/completions'

const say = (content: string, more: object = {}) => ({
  model: 'mock',
  messages: [{ role: 'user', content }],
  ...more,
})

/** Makes requests that update every metric. */
async function makeTraffic(app: TestApp): Promise<void> {
  const chat = (body: object, key = app.key) => app.call('POST', CHAT, { body, key })
  await chat(say('How many rooms are there?'))
  await app.stream(say('And how many of them are free?'))
  await chat(say('[[error:500]]'))
  await app.stream(say('This one breaks off. [[break:1]]'))
  await app.call('POST', '/v1/embeddings', { body: { model: 'mock-embedding', input: 'a room with a view' } })
  await createTypedClient(app).agents.list.query({})
  await callProcedure(app, 'keys.validate')
  await app.call('GET', '/v1/nowhere/at/all')
  const { agent_key: key } = await app.createAgent()
  for (const content of ['Good morning to you', 'Good evening to you']) await chat(say(content), key)
  for (const bad of ['not-a-key-at-all', 'nor-is-this-one']) await app.call('GET', '/v1/models', { key: bad })
  const picture = await sharp({ create: { width: 8, height: 8, channels: 3, background: 'red' } })
    .png()
    .toBuffer()
  const metadata = { filename: 'a.png', kind: 'thumbnail' }
  const upload = await createUpload(app, { size: picture.length, metadata })
  await patchUpload(app, upload, 0, picture)
  await waitForState(app, upload.id, 'ready')
  await postUpload(app, {
    size: 1,
    body: Buffer.from('x'),
    metadata: { checksum: `sha256:${'0'.repeat(64)}` },
  })
  await createUpload(app, { size: 20 })
}

describe('the response of /metrics after traffic', () => {
  let app: TestApp
  let metrics: ScrapedMetrics
  const delivered = Promise.withResolvers<void>()

  beforeAll(async () => {
    const env = {
      PARLEY_BACKEND_ATTEMPTS: '1',
      PARLEY_RATE_LIMIT_AGENT: '1',
      PARLEY_RATE_LIMIT_AUTH_FAILURES: '1',
      PARLEY_BREAKER_CALLS: '2',
    }
    app = await openApp(env, { onUploadComplete: async () => delivered.resolve() })
    await makeTraffic(app)
    await delivered.promise
    await eventually(async () => (await scrape(app.url)).sum('parley_hooks_total'), 1)
    metrics = await scrape(app.url)
  })
  afterAll(() => app.close())

  test.each(promisedMetrics.filter(({ isEverywhere }) => isEverywhere))(
    'contains $name with the type and labels in docs/observability.md',
    ({ name, type, labels }) => {
      expect(metrics.types.get(name)).toBe(type)
      const own = metrics.samples.filter((sample) => sample.name.replace(/_(bucket|sum|count)$/, '') === name)
      for (const sample of own) {
        const { le: _, ...rest } = sample.labels
        expect(Object.keys(rest).sort()).toEqual([...labels].sort())
      }
    },
  )

  test('contains exactly the metrics in docs/observability.md', () => {
    const promised = new Set([...promisedMetrics.map(({ name }) => name), ...processMetrics])
    expect([...metrics.types.keys()].filter((name) => !promised.has(name))).toEqual([])
    expect(processMetrics.filter((name) => !metrics.types.has(name))).toEqual([])
  })

  test.each([
    [
      'requests by operation',
      'parley_http_request_duration_seconds_count',
      { operation: 'chat.completions' },
      6,
    ],
    [
      'failed requests',
      'parley_http_request_duration_seconds_count',
      { operation: 'chat.completions', status: '5xx' },
      1,
    ],
    [
      'tRPC calls',
      'parley_http_request_duration_seconds_count',
      { operation: 'keys.validate', method: 'GET' },
      1,
    ],
    ['uploads', 'parley_http_request_duration_seconds_count', { operation: 'uploads.create' }, 3],
    [
      'complete and streamed chats',
      'parley_chat_duration_seconds_count',
      { model: 'mock', outcome: 'ok' },
      3,
    ],
    ['failed chats', 'parley_chat_duration_seconds_count', { outcome: 'failed' }, 2],
    ['first tokens', 'parley_chat_first_token_seconds_count', { provider: 'mock' }, 2],
    ['embeddings', 'parley_embeddings_duration_seconds_count', { model: 'mock-embedding' }, 1],
    ['attempts', 'parley_backend_attempts_total', { model: 'mock' }, 5],
    ['backend errors', 'parley_backend_errors_total', { reason: 'status_5xx' }, 1],
    ['broken streams', 'parley_backend_errors_total', { reason: 'unreachable' }, 1],
    ['models with an open circuit breaker', 'parley_breaker_resting', { model: 'mock' }, 1],
    ['open streams', 'parley_streams_open', {}, 0],
    ['requests over the limit', 'parley_limited_total', { limit: 'requests' }, 1],
    ['failed authentications over the limit', 'parley_limited_total', { limit: 'authentication' }, 1],
    ['rejected requests', 'parley_request_failures_total', { reason: 'rate_limit_exceeded' }, 2],
    ['started uploads', 'parley_uploads_created_total', {}, 3],
    ['complete uploads', 'parley_uploads_completed_total', {}, 1],
    ['rejected uploads', 'parley_uploads_failed_total', { reason: 'checksum' }, 1],
    ['open uploads', 'parley_uploads_open', {}, 1],
    ['conversions', 'parley_job_duration_seconds_count', { kind: 'convert', result: 'done' }, 1],
    ['delivered hooks', 'parley_hooks_total', { result: 'delivered' }, 1],
    ['waiting jobs', 'parley_jobs_waiting', {}, 0],
    ['running jobs', 'parley_jobs_running', {}, 0],
  ])('reports the number of %s', (_what, name, labels, value) => {
    expect(metrics.sum(name, labels)).toBe(value)
  })

  test('reports the sums of tokens and bytes', () => {
    expect(metrics.sum('parley_tokens_total', { direction: 'input', model: 'mock' })).toBeGreaterThan(10)
    expect(metrics.sum('parley_tokens_total', { direction: 'output', model: 'mock' })).toBeGreaterThan(10)
    expect(metrics.sum('parley_upload_received_bytes_total')).toBeGreaterThan(50)
  })

  test('contains no labels with paths, keys or user content', () => {
    const labels = new Set(metrics.samples.flatMap((sample) => Object.values(sample.labels)))
    const short = [...labels].filter((label) => !/^[\w.+-]{1,24}$/.test(label))
    expect(short).toEqual([])
    expect([...labels].filter((label) => label.includes('nowhere'))).toEqual([])
  })
})

test('models that no provider lists share one label value in the metrics', async () => {
  const config = await writeConfigFile('providers:\n  away: { url: http://127.0.0.1:1/v1 }\n')
  const app = await startApp(
    { PARLEY_CONFIG: config, PARLEY_BACKEND_ATTEMPTS: '1' },
    { clock: createFakeClock() },
  )
  for (const model of ['one', 'two', 'three']) {
    await app.call('POST', CHAT, { body: say('Is the server there?', { model }) })
  }
  const metrics = await scrape(app.url)
  expect(metrics.sum('parley_backend_attempts_total', { provider: 'away', model: 'other' })).toBe(3)
  expect(metrics.sum('parley_backend_attempts_total', { provider: 'away' })).toBe(3)
  expect(metrics.sum('parley_backend_errors_total', { provider: 'away', reason: 'unreachable' })).toBe(3)
  expect(metrics.sum('parley_backend_up', { provider: 'away' })).toBe(0)
})

test('two services in one process have separate metrics', async () => {
  const [one, other] = [await startApp(), await startApp()]
  await one.call('GET', '/v1/models')
  const count = async ({ url }: TestApp) =>
    (await scrape(url)).sum('parley_http_request_duration_seconds_count', { operation: 'models.list' })
  expect([await count(one), await count(other)]).toEqual([1, 0])
})

test('an unavailable MCP server appears in the metrics and makes /readyz report degraded', async () => {
  const config = await writeConfigFile('mcp:\n  gone: { command: /nowhere/at/all }\n')
  const app = await startApp({ PARLEY_CONFIG: config })
  const { status, body } = await app.call('GET', '/readyz')
  expect([status, body.status, body.checks.mcp]).toEqual([200, 'degraded', { gone: 'down' }])
  const { samples } = await scrape(app.url)
  expect(samples).toContainEqual({ name: 'parley_mcp_server_up', labels: { server: 'gone' }, value: 0 })
})

test('a metrics scrape does not wait for a blocked database', async () => {
  const app = await startApp({}, { clock: createFakeClock() })
  const { db } = app.service.deps
  const { promise, resolve } = Promise.withResolvers<void>()
  onTestFinished(() => resolve())
  const holding = db.transaction().execute(() => promise)
  const { types, samples } = await scrape(app.url)
  expect(types.has('parley_uploads_open')).toBe(false)
  expect(samples.some(({ name }) => name === 'parley_build_info')).toBe(true)
  resolve()
  await holding
  await expect.poll(async () => (await scrape(app.url)).types.has('parley_uploads_open')).toBe(true)
})

describe('a metrics scrape', () => {
  const ask = async (app: TestApp, headers: Readonly<Record<string, string>>) => {
    const answer = await fetch(`${app.url}/metrics`, { headers })
    return { status: answer.status, headers: answer.headers, text: await answer.text() }
  }
  const bearer = (token: string) => ({ Authorization: `Bearer ${token}` })

  test('from this machine returns the Prometheus text format with Cache-Control: no-store', async () => {
    const { status, headers, text } = await ask(await startApp(), {})
    expect([status, headers.get('content-type')]).toEqual([200, 'text/plain; version=0.0.4; charset=utf-8'])
    expect([headers.get('cache-control'), headers.get('x-content-type-options')]).toEqual([
      'no-store',
      'nosniff',
    ])
    expect(text).toMatch(/^# HELP parley_/m)
  })

  test.each(['X-Forwarded-For', 'X-Forwarded-Host', 'Forwarded', 'Via', 'X-Real-IP'])(
    'requires the token if a proxy sends %s',
    async (name) => {
      const app = await startApp({ PARLEY_METRICS_TOKEN: TOKEN })
      const forwarded = { [name]: '203.0.113.9' }
      const { status, text } = await ask(app, forwarded)
      expect([status, JSON.parse(text).error]).toEqual([
        401,
        expect.objectContaining({ type: 'authentication_error', code: 'missing_api_key' }),
      ])
      expect((await ask(app, { ...forwarded, ...bearer(TOKEN) })).status).toBe(200)
      expect((await ask(app, { ...forwarded, ...bearer(`${TOKEN}r`) })).status).toBe(401)
    },
  )

  test('is rejected if its Host header names another site, as in a DNS rebinding attack', async () => {
    const statusOf = async (host: string, app: TestApp) => {
      const answer = await exchange(app, toRequest('GET /metrics', [`Host: ${host}`, 'Connection: close']))
      return Number(/^HTTP\/1.1 (\d+)/.exec(answer)?.[1])
    }
    const app = await startApp()
    const foreign = [
      'attacker.test',
      'attacker.test:3000',
      'localhost.attacker.test',
      '',
      'a b',
      '127.0.0.1.nip.io',
    ]
    for (const host of foreign) expect([host, await statusOf(host, app)]).toEqual([host, 401])
    const own = ['localhost', 'LOCALHOST:3000', 'parley.localhost', '127.0.0.1:3000', '[::1]:3000', '[::1]']
    for (const host of own) expect([host, await statusOf(host, app)]).toEqual([host, 200])
    const named = await startApp({ PARLEY_ALLOWED_HOSTS: 'parley.internal:3000' })
    expect(await statusOf('parley.internal:3000', named)).toBe(200)
  })

  test('is rejected if it contains a wrong token or an API key, even if it comes from this machine', async () => {
    const app = await startApp({ PARLEY_METRICS_TOKEN: TOKEN })
    const { agent_key: agentKey } = await app.createAgent()
    for (const key of [app.key, agentKey, 'something-else-entirely']) {
      const { status, text } = await ask(app, bearer(key))
      expect([status, JSON.parse(text).error.code]).toEqual([401, 'invalid_api_key'])
    }
    expect((await ask(app, bearer(TOKEN))).status).toBe(200)
    const withoutToken = await startApp()
    expect((await ask(withoutToken, bearer(TOKEN))).status).toBe(401)
  })

  test('is rejected with 429 after repeated wrong tokens', async () => {
    const app = await startApp({ PARLEY_RATE_LIMIT_AUTH_FAILURES: '2' })
    const statuses: number[] = []
    for (let turn = 0; turn < 3; turn++) statuses.push((await ask(app, bearer(TOKEN))).status)
    expect(statuses).toEqual([401, 401, 429])
  })

  test('with an unsupported method returns 405 and the allowed methods', async () => {
    const { status, headers } = await (await startApp()).call('POST', '/metrics', { body: {} })
    expect([status, headers.get('allow')]).toEqual([405, 'GET, HEAD'])
  })
})
