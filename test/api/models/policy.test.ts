/** Tests how an agent's model policy is stored and validated, and which models it allows. */
import { describe, expect, test } from 'vitest'
import { createTenant } from '../../support/agents.ts'
import type { TestApp } from '../../support/app.ts'
import { startChatHarness } from '../../support/chat-harness.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import { createTypedClient } from '../../support/rpc.ts'

const harness = await startChatHarness()
const chat = { provider: 'gateway', model: 'up-chat' }
const small = { provider: 'gateway', model: 'up-small' }
const pathOf = (id: string) => `/v1/agents/${id}/model-policy`

async function startAgent(more = ''): Promise<{ app: TestApp; id: string; path: string }> {
  const app = await harness.start()
  const { agent_id: id } = await app.createAgent(`name: A\ninstructions: B\n${more}`)
  return { app, id, path: pathOf(id) }
}

const defaults = {
  default_model: null,
  allowed_models: [],
  fallback_models: [],
  max_output_tokens: null,
  degrade: [],
  budget: { day: null, month: null },
  budget_used: { day: null, month: null },
  model_policy_updated_at: null,
}

describe('without a stored policy', () => {
  test('an agent may use every model, and the policy lists those models', async () => {
    const { app, id, path } = await startAgent()
    const { status, body } = await app.call('GET', path)
    expect(status).toBe(200)
    expect(body).toEqual({
      agent_id: id,
      ...defaults,
      source: 'none',
      effective_models: [
        { ...chat, role: 'default' },
        { ...small, role: 'allowed' },
      ],
    })
  })

  test('the model in the definition is the default', async () => {
    const { app, path } = await startAgent('model: up-small\n')
    expect((await app.call('GET', path)).body).toMatchObject({
      default_model: small,
      source: 'yaml',
      effective_models: [
        { ...small, role: 'default' },
        { ...chat, role: 'allowed' },
      ],
    })
  })

  test('an unknown model in the definition is not the default', async () => {
    const { app, path } = await startAgent('model: gone\n')
    expect((await app.call('GET', path)).body).toMatchObject({ default_model: null, source: 'none' })
  })
})

describe('a stored policy', () => {
  const full = {
    default_model: small,
    allowed_models: [small, { provider: 'gateway', model: 'up-chat' }],
    fallback_models: [chat],
    max_output_tokens: 100,
    degrade: [{ at: 80, to: chat }],
    budget: { day: 1_000, month: 20_000 },
  }

  test('is returned unchanged', async () => {
    const clock = createFakeClock(1_800_000_000)
    const app = await harness.start({}, { clock })
    const { agent_id } = await app.createAgent()
    const put = await app.call('PUT', pathOf(agent_id), { body: full })
    expect(put).toMatchObject({ status: 200 })
    expect(put.body).toEqual({
      agent_id,
      ...full,
      budget_used: { day: 0, month: 0 },
      model_policy_updated_at: 1_800_000_000,
      source: 'policy',
      effective_models: [
        { ...small, role: 'default' },
        { ...chat, role: 'fallback' },
      ],
    })
    expect((await app.call('GET', pathOf(agent_id))).body).toEqual(put.body)
  })

  test('is accepted again exactly as it was returned', async () => {
    const { app, path } = await startAgent()
    const { body } = await app.call('PUT', path, { body: full })
    expect((await app.call('PUT', path, { body })).body).toEqual(body)
  })

  test('is replaced as a whole', async () => {
    const { app, id, path } = await startAgent()
    await app.call('PUT', path, { body: full })
    const { body } = await app.call('PUT', path, { body: {} })
    expect(body).toMatchObject({ agent_id: id, ...defaults, model_policy_updated_at: expect.any(Number) })
  })

  test("remains in effect after the definition changes and determines the agent's model", async () => {
    const { app, id, path } = await startAgent()
    await app.call('PUT', path, { body: { default_model: small } })
    const yaml = 'name: A\ninstructions: other\n'
    const replaced = await app.call('PUT', `/v1/agents/${id}`, { body: { yaml } })
    expect(replaced.body.model).toBe('up-small')
    expect((await app.call('GET', '/v1/agents')).body.data[0].model).toBe('up-small')
    expect((await app.call('GET', path)).body.default_model).toEqual(small)
  })

  test('may allow every model of a provider', async () => {
    const { app, path } = await startAgent()
    const { body } = await app.call('PUT', path, { body: { allowed_models: [{ provider: 'gateway' }] } })
    expect(body.allowed_models).toEqual([{ provider: 'gateway', model: null }])
    expect(body.effective_models.map(({ model }: { model: string }) => model)).toEqual([
      'up-chat',
      'up-small',
    ])
  })

  test('is deleted with its agent', async () => {
    const { app, id, path } = await startAgent()
    await app.call('PUT', path, { body: full })
    await app.call('DELETE', `/v1/agents/${id}`)
    expect(await app.call('GET', path)).toMatchObject({ status: 404, body: { error: 'Agent not found.' } })
    expect((await app.call('PUT', path, { body: full })).status).toBe(404)
  })

  test('is not accessible to other tenants', async () => {
    const { app, path } = await startAgent()
    const key = await createTenant(app)
    for (const method of ['GET', 'PUT'])
      expect((await app.call(method, path, { key, ...(method === 'PUT' && { body: full }) })).status).toBe(
        404,
      )
    expect((await app.call('GET', path)).body).toMatchObject(defaults)
  })

  test('can be read and written over tRPC', async () => {
    const { app, id } = await startAgent()
    const { agents } = createTypedClient(app)
    const written = await agents.replaceModelPolicy.mutate({ agent_id: id, default_model: small })
    expect(await agents.modelPolicy.query({ agent_id: id })).toEqual(written)
    expect(written.source).toBe('policy')
  })
})

describe('an invalid policy', () => {
  const many = (count: number) => Array.from({ length: count }, () => chat)
  test.each([
    [
      'an unknown provider',
      { default_model: { provider: 'x', model: 'y' } },
      'default_model.provider',
      /must be one of gateway/,
    ],
    [
      'a model that its provider does not list',
      { fallback_models: [chat, { provider: 'gateway', model: 'y' }] },
      'fallback_models[1].model',
      /must be a model that gateway lists \(got 'y'\)/,
    ],
    [
      'an unknown allowed model',
      { allowed_models: [{ provider: 'gateway', model: 'y' }] },
      'allowed_models[0].model',
      /'y'/,
    ],
    [
      'a default outside the allowed models',
      { default_model: small, allowed_models: [chat] },
      'default_model',
      /must be one of the allowed models/,
    ],
    [
      'a fallback outside the allowed models',
      { fallback_models: [small], allowed_models: [chat] },
      'fallback_models[0]',
      /must be one of the allowed models/,
    ],
    [
      'a default without a model',
      { default_model: { provider: 'gateway' } },
      'default_model.model',
      /required/,
    ],
    ['an output limit of 0', { max_output_tokens: 0 }, 'max_output_tokens', /more than 0/],
    ['a fractional output limit', { max_output_tokens: 1.5 }, 'max_output_tokens', /int/],
    ['a negative budget', { budget: { day: -1 } }, 'budget.day', /at least 0/],
    ['a budget for an unknown period', { budget: { week: 1 } }, 'budget', /week/],
    ['too many fallbacks', { fallback_models: many(11) }, 'fallback_models', /10/],
    ['too many allowed models', { allowed_models: many(201) }, 'allowed_models', /200/],
    ['an unknown field', { default: 'up-small' }, '', /default/],
    ['a list as its body', [], '', /object/],
  ])('with %s is rejected and does not replace the stored policy', async (_what, body, param, message) => {
    const { app, path } = await startAgent()
    await app.call('PUT', path, { body: { default_model: small, budget: { day: 5 } } })
    const answer = await app.call('PUT', path, { body })
    expect(answer.status).toBe(400)
    expect(answer.body.error).toMatch(message)
    if (param !== '') expect(answer.body.error).toContain(`${param}: `)
    expect((await app.call('GET', path)).body).toMatchObject({ default_model: small, budget: { day: 5 } })
  })

  test('with a default model that is not allowed is rejected with the code default_model_not_allowed', async () => {
    const { app, path } = await startAgent()
    const body = { default_model: small, allowed_models: [chat] }
    expect((await app.call('PUT', path, { body })).body.code).toBe('default_model_not_allowed')
  })
})

describe('a policy with an unknown model', () => {
  test("is accepted while the provider's model list is unavailable", async () => {
    await harness.upstream.script('/v1/models', '{{up:status 500}}')
    const { app, path } = await startAgent()
    const default_model = { provider: 'gateway', model: 'later' }
    expect((await app.call('PUT', path, { body: { default_model } })).status).toBe(200)
  })
})

test('an agent key cannot read or write a policy', async () => {
  const { app, path, id } = await startAgent()
  const { body } = await app.call('POST', `/v1/agents/${id}/rotate-key`, { body: {} })
  expect((await app.call('GET', path, { key: body.agent_key })).status).toBe(401)
  expect((await app.call('PUT', path, { key: body.agent_key, body: {} })).status).toBe(401)
})

test('an agent key can list only the models that its agent may use', async () => {
  const app = await harness.start()
  const { agent_id, agent_key: key } = await app.createAgent()
  const list = async () =>
    (await app.call('GET', '/v1/models', { key })).body.data.map(({ id }: { id: string }) => id)
  expect(await list()).toEqual(['up-chat', 'up-small', 'up-embedding', `agent/${agent_id}`])
  await app.call('PUT', pathOf(agent_id), { body: { allowed_models: [small] } })
  expect(await list()).toEqual(['up-small', `agent/${agent_id}`])
  for (const [id, status] of [
    ['up-small', 200],
    ['gateway/up-small', 200],
    ['up-chat', 404],
  ] as const)
    expect((await app.call('GET', `/v1/models/${id}`, { key })).status).toBe(status)
  expect((await app.call('GET', '/v1/models/up-chat')).status).toBe(200)
})
