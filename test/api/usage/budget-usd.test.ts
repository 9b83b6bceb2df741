/** Tests budgets in US dollars: what calls reserve and cost, and which calls have no known limit. */
import { describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../support/app.ts'
import { writeConfigFile } from '../../support/config-file.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import {
  type ChatBody,
  type MeteredProvider,
  type Plan,
  startMeteredProvider,
} from '../../support/metered-provider.ts'
import { agentWith, tool } from '../../support/tools.ts'
import { ownerOf, sendChat } from '../../support/usage.ts'

const NOON = Date.UTC(2026, 10, 20, 12) / 1000
const PRICES = `
prices:
  gateway/metered:
    - per_million: { input: 1, cache_write: 1.25, output: 2, reasoning: 3, input_audio: 10, output_audio: 20 }
      per_call: "0.001"
      per_web_search: 0.01
      above: [{ input_tokens: 100000, per_million: { input: 4, output: 6 } }]
      tiers: { priority: 2 }
      windows: [{ from: "16:30", to: "18:00", per_million: { output: 5 } }]
      bounds: { image_tokens: 1445, audio_tokens_per_kib: 16, file_tokens: 40000, overhead_tokens: 300 }
      output_field: max_completion_tokens
  gateway/thrifty:
    - per_million: { input: 0.01, output: 0.01 }
`
/** Nano-dollars for each token at the highest rates of the price above. */
const [INPUT, OUTPUT, PER_CALL] = [1_250, 5_000, 1_000_000]
const METERED = { model: 'metered' }
const hello = [{ role: 'user', content: 'hello' }]

interface Priced {
  readonly app: TestApp
  readonly provider: MeteredProvider
}

async function startPriced(
  plan: (body: ChatBody) => Plan | Promise<Plan> = () => ({}),
  env: Record<string, string> = {},
  config = PRICES,
): Promise<Priced> {
  const provider = await startMeteredProvider(plan)
  const app = await startApp(
    {
      PARLEY_CONFIG: await writeConfigFile(config),
      PARLEY_BACKEND: 'gateway',
      PARLEY_GATEWAY_URL: provider.url,
      PARLEY_BUDGET_WAIT_SECONDS: '0',
      ...env,
    },
    { clock: createFakeClock(NOON), tools: { lookup: tool(() => 'x'.repeat(2_000)) } },
  )
  return { app, provider }
}

async function create(app: TestApp, more: object = {}): Promise<string> {
  const scope = { type: 'key', id: ownerOf(app).tenantId }
  const body = { scope, unit: 'usd', period: 'day', limit: '1', ...more }
  const { status, text, body: created } = await app.call('POST', '/v1/budgets', { body })
  if (status !== 201) throw new Error(text)
  return created.id
}

const read = async (app: TestApp, id: string) => (await app.call('GET', `/v1/budgets/${id}`)).body

/** Sends a chat, and returns what the budget has reserved while the provider answers. */
async function readReserved(request: object): Promise<{ reserved: string; sent: ChatBody | undefined }> {
  const reading = Promise.withResolvers<string>()
  const started: { app?: TestApp; id?: string } = {}
  const { app, provider } = await startPriced(async () => {
    const { app, id } = started as Required<typeof started>
    reading.resolve((await read(app, id)).reserved)
    return {}
  })
  Object.assign(started, { app, id: await create(app) })
  const { status, text } = await sendChat(app, 'hello', { ...METERED, ...request })
  if (status !== 200) throw new Error(text)
  return { reserved: await reading.promise, sent: provider.requests[0] }
}

/** Renders nano-dollars as the API does. */
function usd(nano: number): string {
  return (nano / 1e9).toFixed(9).replace(/\.?0+$/, '')
}

/** Bytes of the JSON that the input bound counts, and 16 tokens for each message. */
function inputOf(messages: readonly object[], more: object = {}): number {
  return Buffer.byteLength(JSON.stringify({ messages, ...more })) + 16 * messages.length
}

describe('a US dollar budget', () => {
  test('has decimal amounts, and starts with the cost already booked in the current period', async () => {
    const { app } = await startPriced(() => ({ usage: { prompt_tokens: 1000, completion_tokens: 100 } }))
    await sendChat(app, 'before', METERED)
    const id = await create(app, { limit: 12.5 })
    expect(await read(app, id)).toMatchObject({
      ...{ unit: 'usd', limit: '12.5', granted: '0', booked: '0.0022', reserved: '0', remaining: '12.4978' },
    })
    const path = `/v1/budgets/${id}`
    const grant = await app.call('POST', `${path}/grants`, { body: { amount: '0.000000001', reason: 'r' } })
    expect([grant.status, grant.body.amount]).toEqual([201, '0.000000001'])
    const adjustment = { amount: '-0.0002', reason: 'refund' }
    const adjusted = await app.call('POST', `${path}/adjustments`, { body: adjustment })
    expect([adjusted.status, adjusted.body.amount]).toEqual([201, '-0.0002'])
    expect((await app.call('PATCH', path, { body: { limit: 1e-7 } })).body).toMatchObject({
      ...{ limit: '0.0000001', granted: '0.000000001', booked: '0.002', remaining: '0' },
    })
  })

  test.each([['-1'], ['1000000.1'], ['0.0000000001'], ['1e3'], ['']])(
    'is rejected with the limit %s',
    async (limit) => {
      const { app } = await startPriced()
      const scope = { type: 'key', id: ownerOf(app).tenantId }
      const { status, body } = await app.call('POST', '/v1/budgets', {
        body: { scope, unit: 'usd', period: 'day', limit },
      })
      expect([status, body.error.param]).toEqual([400, 'limit'])
    },
  )

  test('can exist in addition to a token budget, and both must admit a call', async () => {
    const { app } = await startPriced()
    const tokens = await create(app, { unit: 'tokens', limit: 100_000 })
    const money = await create(app)
    expect((await sendChat(app, 'hello', METERED)).status).toBe(200)
    expect((await read(app, money)).booked).not.toBe('0')
    await app.call('PATCH', `/v1/budgets/${tokens}`, { body: { limit: 0 } })
    const refused = await sendChat(app, 'hello', METERED)
    expect(refused.body.error.message).toBe('The token budget of this key for this day is used up.')
    await app.call('PATCH', `/v1/budgets/${tokens}`, { body: { limit: 100_000 } })
    await app.call('PATCH', `/v1/budgets/${money}`, { body: { limit: 0 } })
    const { body, headers } = await sendChat(app, 'hello', METERED)
    expect(body.error).toMatchObject({
      ...{ code: 'insufficient_quota', message: 'The budget of this key for this day is used up.' },
    })
    expect(headers.get('x-should-retry')).toBe('false')
  })

  test('books the exact cost of the reported usage, once for each request of a turn', async () => {
    const usage = { prompt_tokens: 1000, completion_tokens: 10 }
    const { app } = await startPriced((body) => ({
      usage,
      tool: body.messages.length > 2 ? undefined : 'lookup',
    }))
    const id = await create(app)
    const { agent_id } = await app.createAgent(agentWith(['lookup'], 'Guide'))
    const question = 'hello '.repeat(200)
    expect((await sendChat(app, question, { model: `agent/${agent_id}` })).status).toBe(200)
    expect(await read(app, id)).toMatchObject({
      booked: usd(2 * (1_000_000 + 20_000 + PER_CALL)),
      reserved: '0',
    })
    const { body } = await app.call('GET', '/v1/usage/calls')
    expect(body.data[0].cost).toBe('0.00404')
  })

  test('books the reservation rates for an answer without usage', async () => {
    const { app } = await startPriced(() => ({ tokens: 4, usage: undefined }))
    const id = await create(app)
    await sendChat(app, 'hello', METERED)
    const bytes = 'word '.length * 4
    expect((await read(app, id)).booked).toBe(usd(inputOf(hello) * INPUT + bytes * OUTPUT + PER_CALL))
  })

  test.each<[string, unknown]>([
    ['is 0', { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 }],
    ['is null', null],
    ['is negative', { prompt_tokens: -5, completion_tokens: 20, total_tokens: 15 }],
    ['is 1e308', { prompt_tokens: 1e308, completion_tokens: 1e308, total_tokens: 1e308 }],
    ['is text', { prompt_tokens: '12', completion_tokens: '12', total_tokens: '24' }],
  ])('books the bytes of an answer whose usage %s', async (_what, usage) => {
    for (const stream of [false, true]) {
      const { app } = await startPriced(() => ({ tokens: 20, usage }))
      const id = await create(app)
      expect((await sendChat(app, 'hello', { ...METERED, stream })).status).toBe(200)
      const nano = inputOf(hello) * INPUT + 'word '.length * 20 * OUTPUT + PER_CALL
      expect(await read(app, id)).toMatchObject({ booked: usd(nano), reserved: '0' })
      const { body } = await app.call('GET', '/v1/usage/calls')
      expect(body.data[0].estimated).toBe(true)
    }
  })

  test('books a usage that is smaller than its parts without counting a token twice', async () => {
    const usage = {
      ...{ prompt_tokens: 100, completion_tokens: 10, total_tokens: 110 },
      prompt_tokens_details: { cached_tokens: 5_000, audio_tokens: 900 },
      completion_tokens_details: { reasoning_tokens: 77, audio_tokens: -1 },
    }
    const { app } = await startPriced(() => ({ usage }))
    const id = await create(app)
    await sendChat(app, 'hello', METERED)
    expect((await read(app, id)).booked).toBe(usd(100 * 10_000 + 10 * 3_000 + PER_CALL))
  })

  test('grants the remaining amount, sends it as the token limit, and never costs more than the limit', async () => {
    const { app, provider } = await startPriced(() => ({ tokens: 100_000 }))
    const input = inputOf(hello) * INPUT + PER_CALL
    const id = await create(app, { limit: usd(input + 300 * OUTPUT + OUTPUT - 1) })
    const { headers, body } = await sendChat(app, 'hello', METERED)
    expect(headers.get('x-parley-budget')).toBe('limited')
    expect(body.choices[0].finish_reason).toBe('length')
    expect(provider.requests[0]).toMatchObject({ max_completion_tokens: 300 })
    expect(provider.requests[0]?.max_tokens).toBeUndefined()
    const { booked, limit } = await read(app, id)
    expect(Number(booked)).toBeLessThanOrEqual(Number(limit))
  })

  test('rejects a call that could cost more than is left, without a request to the provider', async () => {
    const { app, provider } = await startPriced()
    await create(app, { limit: usd(inputOf(hello) * INPUT + PER_CALL + 255 * OUTPUT) })
    const { status, body } = await sendChat(app, 'hello', METERED)
    expect([status, body.error.code]).toEqual([429, 'insufficient_quota'])
    expect(provider.requests).toEqual([])
    expect((await sendChat(app, 'hello', { ...METERED, max_tokens: 100 })).status).toBe(200)
  })
})

describe('the reservation of a call', () => {
  const image = { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' } }
  const audio = {
    type: 'input_audio',
    input_audio: { data: Buffer.alloc(3_000).toString('base64'), format: 'wav' },
  }
  const file = { type: 'file', file: { file_data: 'x', filename: 'a.pdf' } }
  const withMedia = (part: object) => [{ role: 'user', content: [{ type: 'text', text: 'a' }, part] }]
  const bare = (type: string) => inputOf([{ role: 'user', content: [{ type: 'text', text: 'a' }, { type }] }])
  const lookup = [{ type: 'function', function: { name: 'lookup' } }]
  const prediction = { type: 'content', content: 'hello' }

  test.each<[string, object, number]>([
    ['without a limit', {}, inputOf(hello) * INPUT + 4096 * OUTPUT],
    ['with max_tokens', { max_tokens: 100 }, inputOf(hello) * INPUT + 100 * OUTPUT],
    ['with n', { max_tokens: 100, n: 4 }, inputOf(hello) * INPUT + 400 * OUTPUT],
    [
      'with a service tier',
      { max_tokens: 100, service_tier: 'priority' },
      2 * (inputOf(hello) * INPUT + 100 * OUTPUT),
    ],
    [
      'with tools',
      { max_tokens: 100, tools: lookup },
      (inputOf(hello, { tools: lookup }) + 300) * INPUT + 100 * OUTPUT,
    ],
    [
      'with a predicted output',
      { max_tokens: 100, prediction },
      inputOf(hello) * INPUT + (100 + Buffer.byteLength(JSON.stringify(prediction))) * OUTPUT,
    ],
    [
      'with web search',
      { max_tokens: 100, web_search_options: {} },
      inputOf(hello) * INPUT + 100 * OUTPUT + 10_000_000,
    ],
    [
      'with an image',
      { max_tokens: 100, messages: withMedia(image) },
      (bare('image_url') + 1445) * INPUT + 100 * OUTPUT,
    ],
    [
      'with audio',
      { max_tokens: 100, messages: withMedia(audio) },
      bare('input_audio') * INPUT + 47 * 10_000 + 100 * OUTPUT,
    ],
    [
      'with a file',
      { max_tokens: 100, messages: withMedia(file) },
      (bare('file') + 40_000) * INPUT + 100 * OUTPUT,
    ],
    [
      'that asks for audio',
      { max_tokens: 100, modalities: ['text', 'audio'], audio: { voice: 'alloy', format: 'wav' } },
      inputOf(hello) * INPUT + 100 * 20_000,
    ],
    [
      'with an input that can reach a higher rate',
      { max_tokens: 100, messages: [{ role: 'user', content: 'a'.repeat(100_000) }] },
      inputOf([{ role: 'user', content: 'a'.repeat(100_000) }]) * 4_000 + 100 * 6_000,
    ],
  ])('%s is the most that it can cost', async (_what, request, nano) => {
    const { reserved } = await readReserved(request)
    expect(reserved).toBe(usd(nano + PER_CALL))
  })
})

describe('a request without a known cost', () => {
  const part = (type: string, fields: object) => [
    { role: 'system', content: 'a' },
    {
      role: 'user',
      content: [
        { type: 'text', text: 'b' },
        { type, ...fields },
      ],
    },
  ]
  const config = `
prices:
  gateway/metered:
    - per_million: { input: 1, output: 2 }
`

  test.each<[string, object, string, string]>([
    ['a model without a price', { model: 'spare' }, 'model_not_priced', 'model'],
    [
      'an image without a bound',
      { messages: part('image_url', { image_url: { url: 'https://example.com/a.png' } }) },
      ...(['content_not_priced', 'messages[1].content[1]'] as const),
    ],
    [
      'audio without a bound',
      { messages: part('input_audio', { input_audio: { data: 'AAAA', format: 'wav' } }) },
      ...(['content_not_priced', 'messages[1].content[1]'] as const),
    ],
    [
      'a file without a bound',
      { messages: part('file', { file: { file_id: 'file-1' } }) },
      ...(['content_not_priced', 'messages[1].content[1]'] as const),
    ],
    [
      'a part of an unknown type',
      { messages: part('hologram', {}) },
      ...(['content_not_priced', 'messages[1].content[1]'] as const),
    ],
    ['web search', { web_search_options: {} }, 'content_not_priced', 'web_search_options'],
    ['a service tier', { service_tier: 'priority' }, 'content_not_priced', 'service_tier'],
    ['a tool of the provider', { tools: [{ type: 'web_search' }] }, 'content_not_priced', 'tools[0]'],
    ['other models', { models: ['spare'] }, 'content_not_priced', 'models'],
  ])('is rejected before the provider is called (%s)', async (_what, request, code, param) => {
    const { app, provider } = await startPriced(undefined, {}, config)
    const id = await create(app)
    for (const stream of [false, true]) {
      const { status, body, headers } = await sendChat(app, 'hello', { ...METERED, ...request, stream })
      expect(status).toBe(403)
      expect(body.error).toMatchObject({ type: 'permission_error', code, param })
      expect(headers.get('x-should-retry')).toBe('false')
    }
    expect(provider.requests).toEqual([])
    expect(await read(app, id)).toMatchObject({ booked: '0', reserved: '0', refused: 2 })
  })

  test('is rejected by every API, even for agent keys', async () => {
    const { app, provider } = await startPriced()
    await create(app)
    const yaml = 'name: A\ninstructions: B\nmodel: spare\n'
    const { agent_id, agent_key } = await app.createAgent(yaml)
    const spare = { model: 'spare' }
    const answers = await Promise.all([
      app.call('POST', '/v1/responses', { body: { ...spare, input: 'hello' } }),
      app.call('POST', '/v1/embeddings', { body: { ...spare, input: 'hello' } }),
      sendChat(app, 'hello', spare, agent_key),
      sendChat(app, 'hello', { model: `agent/${agent_id}` }),
    ])
    for (const { status, body } of answers)
      expect([status, body.error.code]).toEqual([403, 'model_not_priced'])
    expect(provider.requests).toEqual([])
  })

  test('is served if only budgets in observe mode apply, and is counted by them', async () => {
    const { app } = await startPriced()
    const id = await create(app, { mode: 'observe' })
    expect((await sendChat(app, 'hello', { model: 'spare' })).status).toBe(200)
    expect(await read(app, id)).toMatchObject({ booked: '0', reserved: '0', refused: 1 })
  })

  test('is served if only token budgets apply', async () => {
    const { app } = await startPriced()
    await create(app, { unit: 'tokens', limit: 100_000 })
    const { status } = await sendChat(app, '', { model: 'spare', messages: part('hologram', {}) })
    expect(status).toBe(200)
  })
})

describe('fallbacks under a US dollar budget', () => {
  async function startWithFallbacks(
    plan: (body: ChatBody) => Plan,
    models: readonly string[],
  ): Promise<Priced & { key: string }> {
    const { app, provider } = await startPriced(plan, { PARLEY_BACKEND_ATTEMPTS: '1' })
    const { agent_id, agent_key: key } = await app.createAgent()
    const toName = (model: string) => ({ provider: 'gateway', model })
    const [default_model, ...fallback_models] = models.map(toName)
    const policy = { default_model, fallback_models }
    const path = `/v1/agents/${agent_id}/model-policy`
    const { status, text } = await app.call('PUT', path, { body: policy })
    if (status !== 200) throw new Error(text)
    return { app, provider, key }
  }

  const modelsOf = ({ requests }: MeteredProvider) => requests.map(({ model }) => model)

  test('are skipped if they have no price', async () => {
    const fail = ({ model }: ChatBody): Plan => (model === 'metered' ? { status: 500 } : {})
    const { app, provider, key } = await startWithFallbacks(fail, ['metered', 'spare', 'thrifty'])
    await create(app)
    expect((await sendChat(app, 'hello', { model: undefined }, key)).status).toBe(200)
    expect(modelsOf(provider)).toEqual(['metered', 'thrifty'])
  })

  test('answer if the budget does not cover the first model', async () => {
    const { app, provider, key } = await startWithFallbacks(() => ({}), ['metered', 'spare', 'thrifty'])
    await create(app, { limit: '0.001' })
    const { status, headers } = await sendChat(app, 'hello', { model: undefined }, key)
    expect([status, headers.get('x-parley-attempts')]).toEqual([200, '1'])
    expect(modelsOf(provider)).toEqual(['thrifty'])
  })

  test('do not replace a first model without a price', async () => {
    const { app, provider, key } = await startWithFallbacks(() => ({}), ['spare', 'thrifty'])
    await create(app)
    const { body } = await sendChat(app, 'hello', { model: undefined }, key)
    expect(body.error.code).toBe('model_not_priced')
    expect(modelsOf(provider)).toEqual([])
  })

  test("do not replace the first model's error if none of them can answer", async () => {
    const { app, provider, key } = await startWithFallbacks(() => ({ status: 500 }), ['metered', 'spare'])
    await create(app)
    expect((await sendChat(app, 'hello', { model: undefined }, key)).body.error.code).toBe('backend_error')
    expect(modelsOf(provider)).toEqual(['metered'])
  })
})

test('free models answer when the US dollar budget is spent', async () => {
  const app = await startApp()
  await create(app, { limit: 0 })
  expect((await sendChat(app, 'hello')).status).toBe(200)
})

test('an agent key sees no amount, cost or budget id', async () => {
  const { app } = await startPriced()
  const id = await create(app, { limit: '0.01' })
  const { agent_key } = await app.createAgent()
  const more = { ...METERED, stream_options: { include_usage: true } }
  const answers = [
    await sendChat(app, 'hello', more, agent_key),
    await sendChat(app, 'hello', { ...more, stream: true }, agent_key),
    await sendChat(app, 'hello', { model: 'spare' }, agent_key),
  ]
  await app.call('PATCH', `/v1/budgets/${id}`, { body: { limit: 0 } })
  answers.push(await sendChat(app, 'hello', more, agent_key))
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 403, 429])
  for (const { text, headers } of answers) {
    const all = `${text} ${JSON.stringify([...headers])}`
    expect(all).not.toMatch(/cost|bud_|0\.0\d/i)
  }
})
