/** Which model answers an agent's call: by policy, and by its fallbacks when one fails. */
import { describe, expect, test } from 'vitest'
import type { TestApp } from '../../support/app.ts'
import { say, startChatStand } from '../../support/chat-stand.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import { CHAT, createFallbackStand, ONCE, only, SMALL, told } from '../../support/fallbacks.ts'
import { listUsage } from '../../support/usage.ts'

const stand = await startChatStand()
const path = '/v1/chat/completions'
const { startAgent, askedModels } = createFallbackStand(stand)

describe('the model of a call that names none', () => {
  test.each([
    ['is the one of the policy', { default_model: SMALL }, undefined, 'up-small'],
    ["is the definition's where the policy names none", { default_model: null }, 'up-small', 'up-small'],
    [
      "is the first allowed one where neither the definition's nor the common one is allowed",
      { default_model: null, allowed_models: [SMALL], fallback_models: [] },
      'up-chat',
      'up-small',
    ],
    [
      'is the first that chats where all of a provider is allowed',
      { default_model: null, allowed_models: [{ provider: 'gateway' }], fallback_models: [] },
      undefined,
      'up-chat',
    ],
  ])('%s', async (_which, policy, own, model) => {
    const yaml = `name: A\ninstructions: B\n${own === undefined ? '' : `model: ${own}\n`}`
    const { ask } = await startAgent(policy, {}, createFakeClock(), yaml)
    const answer = await ask('hello')
    expect(answer).toMatchObject({ status: 200, body: { model } })
    expect(told(answer)).toEqual(['gateway', '1', 'false'])
  })

  test('is refused with 503 where none that is allowed is there', async () => {
    // Nothing is known of the provider's models, and the policy names none.
    const app = await stand.start({ PARLEY_GATEWAY_URL: 'http://127.0.0.1:1/v1' })
    const { agent_id, agent_key: key } = await app.createAgent()
    const policy = { allowed_models: [{ provider: 'gateway' }] }
    await app.call('PUT', `/v1/agents/${agent_id}/model-policy`, { body: policy })
    const answer = await app.call('POST', path, { key, body: say('hello', { model: undefined }) })
    expect(answer).toMatchObject({ status: 503, body: { error: { code: 'service_unavailable' } } })
  })
})

describe('a model the caller names', () => {
  const policy = { default_model: SMALL, allowed_models: [SMALL], fallback_models: [] }

  test.each(['up-chat', 'gateway/up-chat'])('is 403 where it is not allowed: %s', async (model) => {
    const { ask, app, id } = await startAgent(policy)
    const error = { type: 'permission_error', code: 'model_not_allowed', param: 'model' }
    for (const stream of [false, true])
      expect(await ask('hello', { model, stream })).toMatchObject({ status: 403, body: { error } })
    // A parent key that names the model itself is bound by no agent's policy.
    expect((await app.call('POST', path, { body: say('hello', { model }) })).status).toBe(200)
    const asAgent = await app.call('POST', path, { body: say('hello', { model: `agent/${id}` }) })
    expect(asAgent.body.model).toBe('up-small')
  })

  test('answers where it is allowed', async () => {
    const { ask } = await startAgent(policy)
    expect((await ask('hello', { model: 'gateway/up-small' })).body.model).toBe('up-small')
  })

  test('that does not exist is 404', async () => {
    const { ask } = await startAgent(policy)
    expect((await ask('hello', { model: 'nope' })).status).toBe(404)
  })
})

describe.each([
  ['whole', false],
  ['as a stream', true],
])('an answer asked for %s', (_way, stream) => {
  test.each([
    ['breaks', '{{up:status 500}}'],
    ['is overloaded', '{{up:status 429}}'],
    ['refuses our key', '{{up:status 401}}'],
    ['has lost the model', '{{up:status 404}}'],
    ['resets the connection', '{{up:reset}}'],
    ['answers with a page', '{{up:type text/html}}{{up:body <p>}}'],
  ])('comes from the fallback when the first model %s', async (_what, script) => {
    const { ask } = await startAgent({}, ONCE)
    const answer = await ask(`hello ${only(script)}`, { stream })
    expect(answer.status).toBe(200)
    expect(answer.text).toContain('up-small')
    expect(told(answer)).toEqual(['gateway', '2', 'true'])
    expect(await askedModels()).toEqual(['up-chat', 'up-small'])
  })

  test('is booked on the model that gave it', async () => {
    const { ask, app } = await startAgent({}, ONCE)
    await ask(`hello ${only('{{up:status 500}}')}`, { stream })
    const { data } = await listUsage(app, '?group_by=model')
    expect(data).toMatchObject([{ model: 'up-small', requests: 1, errors: 0 }])
  })

  test('comes from the fallback once the first model has used up the retries', async () => {
    const { ask } = await startAgent()
    expect(told(await ask(`hello ${only('{{up:status 500}}')}`, { stream }))).toEqual([
      'gateway',
      '4',
      'true',
    ])
    expect(await askedModels()).toEqual(['up-chat', 'up-chat', 'up-chat', 'up-small'])
  })

  test('comes from the fallback at once where the first model wants to rest for long', async () => {
    const { ask } = await startAgent()
    await ask(`hello ${only('{{up:status 429}}{{up:retry-after 15}}')}`, { stream })
    expect(await askedModels()).toEqual(['up-chat', 'up-small'])
  })

  test("is not looked for elsewhere when the mistake is the caller's", async () => {
    const { ask } = await startAgent()
    const answer = await ask(`hello ${only('{{up:status 400}}{{up:message too long}}')}`, { stream })
    expect(answer).toMatchObject({ status: 400, body: { error: { message: 'too long' } } })
    expect(await askedModels()).toEqual(['up-chat'])
  })

  test('fails as the last of them did when all fail', async () => {
    const { ask } = await startAgent({}, ONCE)
    const answer = await ask('hello {{up:status 503}}', { stream })
    expect(answer).toMatchObject({ status: 502, body: { error: { code: 'backend_error' } } })
    expect(await askedModels()).toEqual(['up-chat', 'up-small'])
  })

  test('has one deadline over all of them', async () => {
    const { ask } = await startAgent(
      {},
      { PARLEY_BACKEND_TOTAL_SECONDS: '0.3', PARLEY_BACKEND_FIRST_EVENT_SECONDS: '0.3' },
    )
    const answer = await ask(`hello ${only('{{up:hang}}')}`, { stream })
    expect(answer).toMatchObject({ status: 504, body: { error: { code: 'backend_timeout' } } })
    expect(await askedModels()).toEqual(['up-chat'])
  })

  test('comes from the fallback of a model the caller names, too', async () => {
    const { ask } = await startAgent({ fallback_models: [SMALL, CHAT] }, ONCE)
    const script = only('{{up:status 500}}', 'up-small')
    const answer = await ask(`hello ${script}`, { stream, model: 'up-small' })
    expect(told(answer)).toEqual(['gateway', '2', 'true'])
    expect(await askedModels()).toEqual(['up-small', 'up-chat'])
  })
})

test('a stream that breaks after its first event is not gone on with by another model', async () => {
  const { ask } = await startAgent()
  const answer = await ask(`one two three {{up:reset-after 2}}`, { stream: true })
  expect(answer.status).toBe(200)
  expect(answer.text).toContain('stream_interrupted')
  expect(await askedModels()).toEqual(['up-chat'])
})

describe('the most tokens of an answer', () => {
  test.each([
    ['are asked for where the caller asks for none', {}, { max_tokens: 50 }],
    ['bound what the caller asks for', { max_tokens: 80 }, { max_tokens: 50 }],
    ['leave less as it is', { max_tokens: 20 }, { max_tokens: 20 }],
    ['count in the newer field too', { max_completion_tokens: 80 }, { max_completion_tokens: 50 }],
    ['are asked for where null is', { max_tokens: null }, { max_tokens: 50 }],
  ])('%s', async (_what, asked, wanted) => {
    const { ask } = await startAgent({ max_output_tokens: 50 })
    expect((await ask('hello', asked)).status).toBe(200)
    const [chat] = await stand.listChats()
    const { max_tokens, max_completion_tokens } = (chat?.body ?? {}) as Record<string, unknown>
    expect(JSON.parse(JSON.stringify({ max_tokens, max_completion_tokens }))).toEqual(wanted)
  })
})

test("a call is refused once the agent's budget is spent", async () => {
  const { ask, app } = await startAgent({ budget: { day: 1 } })
  expect((await ask('hello')).status).toBe(200)
  expect(await ask('hello')).toMatchObject({ status: 429, body: { error: { code: 'insufficient_quota' } } })
  expect((await app.call('POST', path, { body: say('hello') })).status).toBe(200)
})

test('embeddings are asked for again', async () => {
  const app: TestApp = await stand.start()
  await stand.upstream.script('/v1/embeddings', '{{up:status 500}}', 2)
  const body = { model: 'up-embedding', input: 'hello' }
  const answer = await app.call('POST', '/v1/embeddings', { body })
  expect(answer.status).toBe(200)
  expect(answer.headers.get('x-parley-attempts')).toBe('3')
})
