/** Tests calls and fallbacks without a known cost under a budget in US dollars. */

import { describe, expect, test } from 'vitest'
import { createUsdBudget, readBudget } from '../../support/budgets.ts'
import type { ChatBody, MeteredProvider, Plan } from '../../support/metered-provider.ts'
import { METERED, type Priced, startPriced } from '../../support/priced-provider.ts'
import { sendChat } from '../../support/usage.ts'

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
    const id = await createUsdBudget(app)
    for (const stream of [false, true]) {
      const { status, body, headers } = await sendChat(app, 'hello', { ...METERED, ...request, stream })
      expect(status).toBe(403)
      expect(body.error).toMatchObject({ type: 'permission_error', code, param })
      expect(headers.get('x-should-retry')).toBe('false')
    }
    expect(provider.requests).toEqual([])
    expect(await readBudget(app, id)).toMatchObject({ booked: '0', reserved: '0', refused: 2 })
  })

  test('is rejected by every API, even for agent keys', async () => {
    const { app, provider } = await startPriced()
    await createUsdBudget(app)
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
    const id = await createUsdBudget(app, { mode: 'observe' })
    expect((await sendChat(app, 'hello', { model: 'spare' })).status).toBe(200)
    expect(await readBudget(app, id)).toMatchObject({ booked: '0', reserved: '0', refused: 1 })
  })

  test('is served if only token budgets apply', async () => {
    const { app } = await startPriced()
    await createUsdBudget(app, { unit: 'tokens', limit: 100_000 })
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
    await createUsdBudget(app)
    expect((await sendChat(app, 'hello', { model: undefined }, key)).status).toBe(200)
    expect(modelsOf(provider)).toEqual(['metered', 'thrifty'])
  })

  test('answer if the budget does not cover the first model', async () => {
    const { app, provider, key } = await startWithFallbacks(() => ({}), ['metered', 'spare', 'thrifty'])
    await createUsdBudget(app, { limit: '0.001' })
    const { status, headers } = await sendChat(app, 'hello', { model: undefined }, key)
    expect([status, headers.get('x-parley-attempts')]).toEqual([200, '1'])
    expect(modelsOf(provider)).toEqual(['thrifty'])
  })

  test('do not replace a first model without a price', async () => {
    const { app, provider, key } = await startWithFallbacks(() => ({}), ['spare', 'thrifty'])
    await createUsdBudget(app)
    const { body } = await sendChat(app, 'hello', { model: undefined }, key)
    expect(body.error.code).toBe('model_not_priced')
    expect(modelsOf(provider)).toEqual([])
  })

  test("do not replace the first model's error if none of them can answer", async () => {
    const { app, provider, key } = await startWithFallbacks(() => ({ status: 500 }), ['metered', 'spare'])
    await createUsdBudget(app)
    expect((await sendChat(app, 'hello', { model: undefined }, key)).body.error.code).toBe('backend_error')
    expect(modelsOf(provider)).toEqual(['metered'])
  })
})
