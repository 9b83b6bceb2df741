/** Tests which spans the server sends to a trace collector, and the settings for tracing. */
import sharp from 'sharp'
import { describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../support/app.ts'
import { chatRequest as sayTo, startChatHarness } from '../../support/chat-harness.ts'
import { type CollectedSpan, type Collector, startCollector } from '../../support/collector.ts'
import { writeConfigFile } from '../../support/config-file.ts'
import { findFreePort } from '../../support/free-port.ts'
import { createLineLog } from '../../support/log-lines.ts'
import { promisedSpans } from '../../support/observability-doc.ts'
import { eventually } from '../../support/process.ts'
import { agentWith, CHAT, tool } from '../../support/tools.ts'
import { createUpload, patchUpload, postUpload, waitForState } from '../../support/uploads.ts'
import { ownerOf } from '../../support/usage.ts'

const harness = await startChatHarness()
const TRACE = '0af7651916cd43dd8448eb211c80319c'
const traceparent = `00-${TRACE}-b7ad6b7169203331-01`

const say = (content: string, more: object = {}) => ({
  model: 'mock',
  messages: [{ role: 'user', content }],
  ...more,
})

const asked = {
  max_tokens: 50,
  temperature: 0.5,
  top_p: 0.75,
  frequency_penalty: 0.25,
  presence_penalty: 0.125,
  n: 2,
  seed: 7,
}

const prices = `
prices:
  gateway/up-chat: [{ per_million: { input: 1, output: 2 } }]
`
/** A completion whose usage has all details. */
const detailed = {
  ...{ id: 'chatcmpl-9', object: 'chat.completion', created: 1, model: 'up-chat' },
  choices: [{ index: 0, message: { role: 'assistant', content: 'a lot' }, finish_reason: 'stop' }],
  usage: {
    ...{ prompt_tokens: 9, completion_tokens: 5, total_tokens: 14 },
    prompt_tokens_details: { cached_tokens: 3, cache_write_tokens: 2 },
    completion_tokens_details: { reasoning_tokens: 4 },
  },
}

const toEnv = ({ url }: Collector) => ({ OTEL_EXPORTER_OTLP_ENDPOINT: url })

/** Returns the spans whose names match a documented name, which may contain placeholders in braces. */
function findSpans(spans: readonly CollectedSpan[], promised: string): CollectedSpan[] {
  const pattern = new RegExp(`^${promised.replaceAll(/\{[^}]+\}/g, '\\S.*')}$`)
  const isRequest = promised.startsWith('{')
  return spans.filter(({ name, kind }) => pattern.test(name) && (kind === 'server') === isRequest)
}

/** Sends every kind of gateway request that is traced. */
async function useGateway(collector: Collector): Promise<void> {
  const app = await harness.start({ ...toEnv(collector), PARLEY_CONFIG: await writeConfigFile(prices) })
  const scope = { type: 'key', id: ownerOf(app).tenantId }
  await app.call('POST', '/v1/budgets', { body: { scope, period: 'day', limit: 1_000_000 } })
  await app.call('POST', CHAT, { body: sayTo('What is there to see?', asked), headers: { traceparent } })
  await app.stream(sayTo('And what is there to hear?'))
  await app.call('POST', CHAT, { body: sayTo('{{up:status 500}} Nothing at all?') })
  await harness.answerWith(detailed, 1)
  await app.call('POST', CHAT, { body: sayTo('What does it cost?') })
  const input = ['what there is']
  await app.call('POST', '/v1/embeddings', { body: { model: 'up-embedding', input, dimensions: 8 } })
  await app.call('POST', '/v1/embeddings', { body: { model: 'up-embedding', input: '{{up:status 400}} x' } })
  await app.close()
}

async function uploadPicture(app: TestApp): Promise<string> {
  const picture = await sharp({ create: { width: 8, height: 8, channels: 3, background: 'red' } })
    .png()
    .toBuffer()
  const metadata = { filename: 'my-secret-name.png', kind: 'thumbnail' }
  const upload = await createUpload(app, { size: picture.length, metadata })
  await patchUpload(app, upload, 0, picture)
  await waitForState(app, upload.id, 'ready')
  return upload.id
}

/** Runs the traced work that does not need a gateway: tools, jobs and uploads. */
async function useMock(collector: Collector): Promise<void> {
  const hooks = { called: 0 }
  const app = await startApp(toEnv(collector), {
    tools: {
      look: tool(() => 'there is a room with a view'),
      fall: tool(() => {
        throw new Error('it fell')
      }),
    },
    onUploadComplete: async () => {
      hooks.called += 1
      if (hooks.called === 1) throw new Error('not yet')
    },
  })
  const { agent_key: key } = await app.createAgent(agentWith(['look', 'fall'], 'Guide'))
  await app.call('POST', CHAT, { key, body: say('[[tool:look {}]] Please look around.') })
  await app.stream(say('[[tool:fall {}]] Please look around again.'), key)
  await app.call('POST', CHAT, { key, body: say('[[error:400]] Please.') })
  await uploadPicture(app)
  await eventually(async () => hooks.called, 2)
  await app.close()
}

/** All spans, and the headers of the first chat at the gateway; undefined until the first test needs them. */
let traffic: Promise<{ spans: readonly CollectedSpan[]; sent: unknown }> | undefined

async function makeTraffic() {
  const collector = await startCollector()
  await Promise.all([useGateway(collector), useMock(collector)])
  const [first] = await harness.listChats()
  return { spans: collector.spans, sent: first?.headers }
}

function readTraffic() {
  traffic ??= makeTraffic()
  return traffic
}

describe('a trace', () => {
  test('consists of the documented spans and attributes and does not contain user content or keys', async () => {
    const { spans } = await readTraffic()
    for (const { name, kind, attributes } of promisedSpans) {
      const found = findSpans(spans, name)
      const recorded = new Set(found.flatMap((span) => Object.keys(span.attributes)))
      expect([name, [...recorded].sort()]).toEqual([name, [...attributes].sort()])
      // Spans for in-process models have a different kind from spans for remote models.
      expect(found.map((span) => span.kind)).toContain(kind)
    }
    const named = new Set(promisedSpans.flatMap(({ name }) => findSpans(spans, name)))
    expect(spans.filter((span) => !named.has(span))).toEqual([])
    const all = JSON.stringify(spans)
    for (const said of [
      'to see',
      'to hear',
      'look around',
      'a view',
      'what there is',
      'my-secret-name',
      'svc_',
      'agnt_key',
    ]) {
      expect([said, all.includes(said)]).toEqual([said, false])
    }
  })

  test('records the model, provider, limits, tokens and finish reasons of a chat', async () => {
    const { spans } = await readTraffic()
    const chat = spans.find(({ name, traceId }) => name === 'chat up-chat' && traceId === TRACE)
    expect(chat?.attributes).toMatchObject({
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': 'gateway',
      'gen_ai.request.model': 'up-chat',
      'gen_ai.request.max_tokens': 50,
      'gen_ai.request.temperature': 0.5,
      'gen_ai.request.choice.count': 2,
      'gen_ai.request.seed': 7,
      'gen_ai.response.model': 'up-chat',
      'gen_ai.response.finish_reasons': ['stop', 'stop'],
      'server.address': '127.0.0.1',
      'server.port': Number(new URL(harness.upstream.origin).port),
      'parley.attempt': 1,
      'parley.budget.granted_tokens': 50,
    })
    expect(chat?.attributes['gen_ai.usage.output_tokens']).toBeGreaterThan(0)
  })

  test("uses the caller's trace id, which is also sent to the backend", async () => {
    const { spans, sent } = await readTraffic()
    const own = spans.filter(({ traceId }) => traceId === TRACE)
    const [request] = findSpans(own, '{method} {route}')
    const [chat] = findSpans(own, 'chat {model}')
    expect(request).toMatchObject({ name: 'POST /v1/chat/completions', parentSpanId: 'b7ad6b7169203331' })
    expect(chat?.parentSpanId).toBe(request?.spanId)
    expect(sent).toMatchObject({ traceparent: `00-${TRACE}-${chat?.spanId}-01` })
    expect(own[0]?.resource).toMatchObject({
      'service.name': 'parley',
      'service.version': expect.any(String),
    })
  })

  test('includes a span with the outcome of each attempt', async () => {
    const collector = await startCollector()
    const app = await harness.start(toEnv(collector))
    await harness.upstream.script(CHAT, '{{up:status 503}}', 1)
    await app.stream(sayTo('Twice, if need be.'))
    await app.close()
    const attempts = findSpans(collector.spans, 'chat {model}')
    expect(
      attempts.map(({ attributes, isError }) => [
        attributes['parley.attempt'],
        attributes['error.type'],
        isError,
      ]),
    ).toEqual([
      [1, 'status_5xx', true],
      [2, undefined, false],
    ])
    const [request] = findSpans(collector.spans, '{method} {route}')
    expect([request?.attributes['http.response.status_code'], request?.isError]).toEqual([200, false])
  })

  test("includes an agent's model calls and tool calls in one turn", async () => {
    const { spans } = await readTraffic()
    const [turn] = findSpans(spans, 'invoke_agent {agent}')
    expect(turn).toMatchObject({ name: 'invoke_agent Guide', isError: false })
    const within = spans.filter(({ parentSpanId }) => parentSpanId === turn?.spanId)
    expect(within.map(({ name }) => name).sort()).toEqual(['chat mock', 'chat mock', 'execute_tool look'])
    const [fallen] = spans.filter(({ name }) => name === 'execute_tool fall')
    expect([fallen?.isError, fallen?.attributes['error.type']]).toEqual([true, 'tool_failed'])
  })

  test('links a job to the request that completed the upload', async () => {
    const { spans } = await readTraffic()
    const [patch] = spans.filter(({ name }) => name === 'PATCH /upload/{segment}')
    const jobs = findSpans(spans, 'job {kind}')
    expect(jobs.map(({ name, attributes }) => `${name}: ${attributes['parley.job.result']}`).sort()).toEqual([
      'job convert: done',
      'job hook: done',
      'job hook: failed',
    ])
    for (const job of jobs) expect([job.parentSpanId, job.links]).toEqual([undefined, [patch?.spanId]])
  })
})

describe('the tracing settings', () => {
  test('determine the service name, the endpoint and the headers', async () => {
    const collector = await startCollector()
    const app = await startApp({
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1',
      OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${collector.url}/v1/traces`,
      OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20for-the-collector,x-tenant=one',
      OTEL_SERVICE_NAME: 'the-house',
    })
    await app.call('GET', '/v1/models')
    await app.close()
    expect(collector.spans[0]?.resource).toMatchObject({ 'service.name': 'the-house' })
    expect(collector.headers[0]).toMatchObject({
      authorization: 'Bearer for-the-collector',
      'x-tenant': 'one',
    })
  })

  test.each([
    ['parentbased_always_off', [TRACE]],
    ['parentbased_traceidratio', [TRACE]],
    ['always_off', []],
    ['always_on', [TRACE, expect.any(String)]],
  ])('with the sampler %s determine which requests are traced', async (sampler, traces) => {
    const collector = await startCollector()
    const app = await startApp({
      ...toEnv(collector),
      OTEL_TRACES_SAMPLER: sampler,
      OTEL_TRACES_SAMPLER_ARG: '0',
    })
    await app.call('GET', '/v1/models', { headers: { traceparent } })
    await app.call('GET', '/v1/models')
    await app.close()
    expect(collector.spans.map(({ traceId }) => traceId)).toEqual(traces)
  })

  test('do not enable tracing without a collector', async () => {
    const app = await startApp()
    expect(app.service.deps.tracing).toBeUndefined()
  })
})

test('an unavailable trace collector does not affect requests and is logged in one warning until it recovers', async () => {
  const collector = await startCollector()
  const { log, lines } = createLineLog()
  const read = (text: string) => lines.filter((line) => line.includes(text)).length
  const app = await startApp(toEnv(collector), { log })
  collector.answerWith(400)
  for (const _ of [1, 2]) {
    const before = collector.headers.length
    expect((await app.call('GET', '/v1/models')).status).toBe(200)
    await expect.poll(() => collector.headers.length).toBeGreaterThan(before)
  }
  await expect.poll(() => read('trace collector unavailable')).toBe(1)
  collector.answerWith(200)
  await app.call('GET', '/v1/models')
  await expect.poll(() => read('trace collector available again')).toBe(1)
  expect(read('trace collector unavailable')).toBe(1)
})

test('an unreachable trace collector does not prevent the server from stopping', async () => {
  const app = await startApp({ OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${await findFreePort()}` })
  await app.call('GET', '/v1/models')
  await app.close()
  await expect(fetch(`${app.url}/healthz`)).rejects.toThrow()
})

test('every log line of a traced request contains its trace id', async () => {
  const collector = await startCollector()
  const { log, lines } = createLineLog()
  const app = await startApp(toEnv(collector), { log })
  await app.call('GET', '/v1/nowhere', { headers: { traceparent } })
  await postUpload(app, { size: -1 })
  await expect.poll(() => lines.filter((line) => line.includes('"msg":"request"')).length).toBe(2)
  const own = lines.map((line) => JSON.parse(line)).filter(({ requestId }) => requestId !== undefined)
  expect(own.length).toBeGreaterThan(2)
  expect(own.filter(({ traceId }) => !/^[0-9a-f]{32}$/.test(traceId))).toEqual([])
  expect(own[0].traceId).toBe(TRACE)
})
