/** Tests the costs of calls, and which responses contain them. */
import { describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../support/app.ts'
import { writeConfigFile } from '../../support/config-file.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import { type Plan, startMeteredProvider } from '../../support/metered-provider.ts'
import { agentWith, tool } from '../../support/tools.ts'
import { listUsage, sendChat, totalUsage } from '../../support/usage.ts'

const NOON = Date.UTC(2026, 10, 20, 12) / 1000
const prices = `
prices:
  gateway/metered:
    - per_million: { input: 1, output: 1 }
    - since: 2026-11-20T12:00:01Z
      per_million: { input: 0.25, cached_input: 0.025, output: 2 }
      per_call: "0.0001"
      tiers: { flex: 0.5 }
`
const usage = {
  prompt_tokens: 1000,
  completion_tokens: 100,
  total_tokens: 1100,
  prompt_tokens_details: { cached_tokens: 600 },
  completion_tokens_details: { reasoning_tokens: 40 },
}
const model = { model: 'metered' }

async function startPriced(plan: Plan = { usage }, clock = createFakeClock(NOON)): Promise<TestApp> {
  const provider = await startMeteredProvider((body) =>
    plan.tool !== undefined && body.messages.length > 2 ? { ...plan, tool: undefined } : plan,
  )
  return startApp(
    {
      PARLEY_CONFIG: await writeConfigFile(prices),
      PARLEY_BACKEND: 'gateway',
      PARLEY_GATEWAY_URL: provider.url,
    },
    { clock, tools: { lookup: tool(() => 'found') } },
  )
}

const snapshots = (app: TestApp) => app.service.deps.db.selectFrom('price_snapshots').selectAll().execute()
const lastCall = async (app: TestApp) => (await app.call('GET', '/v1/usage/calls')).body.data[0]

describe('the cost of a call', () => {
  test('is shown in the response, the calls and the totals for a parent key', async () => {
    const app = await startPriced({ usage }, createFakeClock(NOON + 1))
    const { body, headers } = await sendChat(app, 'hello', model)
    expect(headers.get('x-parley-cost')).toBe('0.000415000')
    expect(body.usage).toEqual({
      ...usage,
      cost: 0.000415,
      cost_details: { input: 0.000115, output: 0.0002, other: 0.0001 },
    })
    const sums = { cost: '0.000415', unpriced_requests: 0, cached_tokens: 600, reasoning_tokens: 40 }
    expect(await totalUsage(app)).toMatchObject(sums)
    const key = app.key.slice(4, 16)
    expect((await listUsage(app, '?group_by=key')).data).toMatchObject([{ key, ...sums }])
    expect(await lastCall(app)).toMatchObject({ cost: '0.000415', rounds: 1, cached_tokens: 600 })
  })

  test('contains the fee for an answer without tokens', async () => {
    const none = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 }
    const app = await startPriced({ tokens: 0, usage: none }, createFakeClock(NOON + 1))
    await sendChat(app, '', model)
    expect(await lastCall(app)).toMatchObject({ cost: '0.0001', prompt_tokens: 0, completion_tokens: 0 })
  })

  test('uses the price at the start of the request, which is stored with the call', async () => {
    const clock = createFakeClock(NOON)
    const app = await startPriced({ usage }, clock)
    await sendChat(app, 'before', model)
    const before = await lastCall(app)
    clock.advance(1)
    await sendChat(app, 'after', { ...model, service_tier: 'flex' })
    const after = await lastCall(app)
    expect([before.cost, after.cost]).toEqual(['0.0011', '0.0002575'])
    const kept = await snapshots(app)
    expect(new Set(kept.map(({ id }) => id))).toEqual(new Set([before.price_id, after.price_id]))
    const entry = JSON.parse(kept.find(({ id }) => id === after.price_id)?.entry ?? '')
    expect(entry).toMatchObject({ per_million: { input: '0.25' }, tiers: { flex: '0.5' } })
  })

  test('is the sum of all requests of a turn', async () => {
    const app = await startPriced({ usage, tool: 'lookup' })
    const { agent_id } = await app.createAgent(agentWith(['lookup'], 'Guide'))
    const { body } = await sendChat(app, 'hello', { model: `agent/${agent_id}` })
    expect(body.usage).toMatchObject({ prompt_tokens: 2000, cost: 0.0022 })
    expect(await lastCall(app)).toMatchObject({ cost: '0.0022', rounds: 2, attempts: 2 })
  })

  test('is in the last chunk of a stream and in a response from the Responses API', async () => {
    const app = await startPriced()
    const request = { ...model, messages: [{ role: 'user', content: 'hello' }] }
    const { events } = await app.stream({ ...request, stream_options: { include_usage: true } })
    expect(events.at(-1).usage).toMatchObject({ cost: 0.0011 })
    const { body } = await app.call('POST', '/v1/responses', { body: { ...model, input: 'hello' } })
    expect(body.usage).toMatchObject({
      cost: 0.0011,
      cost_details: { input: 0.001, output: 0.0001, other: 0 },
    })
  })

  test('is null and counted as unpriced for a model without a price', async () => {
    const app = await startPriced()
    const { body, headers } = await sendChat(app, 'hello', { model: 'spare' })
    expect([headers.get('x-parley-cost'), body.usage]).toEqual([null, usage])
    expect(await lastCall(app)).toMatchObject({ cost: null, price_id: null, rounds: 1 })
    expect(await totalUsage(app)).toMatchObject({ cost: '0', unpriced_requests: 1 })
  })

  test('is 0 for a mock model', async () => {
    const app = await startApp()
    await sendChat(app, 'hello')
    expect(await lastCall(app)).toMatchObject({ cost: '0', rounds: 1 })
    expect(await totalUsage(app)).toMatchObject({ cost: '0', unpriced_requests: 0 })
  })

  test('can be filtered with min_cost', async () => {
    const app = await startPriced()
    await sendChat(app, 'hello', model)
    const count = async (least: string) =>
      (await app.call('GET', `/v1/usage/calls?min_cost=${least}`)).body.data.length
    expect([await count('0.0011'), await count('0.001100001')]).toEqual([1, 0])
    const { status, body } = await app.call('GET', '/v1/usage/calls?min_cost=-1')
    expect([status, body.error.param]).toEqual([400, 'min_cost'])
  })
})

describe('GET /v1/prices', () => {
  test('returns the price in force and its source', async () => {
    const clock = createFakeClock(NOON)
    const app = await startPriced({ usage }, clock)
    const read = async (id: string) => (await app.call('GET', `/v1/prices?model=${id}`)).body
    expect(await read('gateway/metered')).toEqual({
      ...{ object: 'price', provider: 'gateway', model: 'metered', priced: true, source: 'config' },
      price_id: expect.stringMatching(/^[0-9a-f]{64}$/),
      entry: { per_million: { input: '1', output: '1' } },
      ...{ date: null, at: NOON },
    })
    clock.advance(1)
    expect(await read('metered')).toMatchObject({ entry: { per_call: '0.0001', tiers: { flex: '0.5' } } })
    const nothing = { source: null, price_id: null, entry: null }
    expect(await read('spare')).toMatchObject({ priced: false, ...nothing })
  })

  test('rejects agent keys and unknown models', async () => {
    const app = await startPriced()
    const { agent_key } = await app.createAgent()
    const path = '/v1/prices?model=metered'
    expect((await app.call('GET', path, { key: agent_key })).status).toBe(403)
    expect((await app.call('GET', '/v1/prices?model=gateway/nothing')).status).toBe(404)
  })
})

describe('an agent key', () => {
  test.each([
    ['complete', {}],
    ['streamed', { stream: true, stream_options: { include_usage: true } }],
  ])('receives no cost, even if the provider reports one (%s)', async (_how, more) => {
    const app = await startPriced({ usage: { ...usage, cost: 0.5, cost_details: { upstream: 1 } } })
    const { agent_key } = await app.createAgent()
    const { text, headers } = await sendChat(app, 'hello', { ...model, ...more }, agent_key)
    expect(text).toContain('"prompt_tokens":1000')
    expect(`${text} ${JSON.stringify([...headers])}`).not.toMatch(/cost/i)
    expect(await lastCall(app)).toMatchObject({ cost: '0.0011' })
  })
})
