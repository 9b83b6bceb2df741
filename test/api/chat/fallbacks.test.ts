/** Tests which model answers a call, given an agent's model policy and its fallbacks. */
import { describe, expect, test } from 'vitest'
import type { TestApp } from '../../support/app.ts'
import { chatRequest, startChatHarness } from '../../support/chat-harness.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import {
  createFallbackHarness,
  defaultModel,
  fallbackModel,
  noRetries,
  onlyForModel,
  routingHeadersOf,
} from '../../support/fallbacks.ts'
import { listUsage } from '../../support/usage.ts'

const harness = await startChatHarness()
const path = '/v1/chat/completions'
const { startAgent, askedModels } = createFallbackHarness(harness)

describe('the model for an agent call without a model field', () => {
  test.each([
    ['is the default of the policy', { default_model: fallbackModel }, undefined, 'up-small'],
    [
      'is the one in the definition if the policy has no default',
      { default_model: null },
      'up-small',
      'up-small',
    ],
    [
      "is the first allowed one if neither the definition's nor the default model is allowed",
      { default_model: null, allowed_models: [fallbackModel], fallback_models: [] },
      'up-chat',
      'up-small',
    ],
    [
      'is the first chat model if a whole provider is allowed',
      { default_model: null, allowed_models: [{ provider: 'gateway' }], fallback_models: [] },
      undefined,
      'up-chat',
    ],
  ])('%s', async (_which, policy, own, model) => {
    const yaml = `name: A\ninstructions: B\n${own === undefined ? '' : `model: ${own}\n`}`
    const { ask } = await startAgent(policy, {}, createFakeClock(), yaml)
    const answer = await ask('hello')
    expect(answer).toMatchObject({ status: 200, body: { model } })
    expect(routingHeadersOf(answer)).toEqual(['gateway', '1', 'false'])
  })

  test('must be available, or the call returns 503', async () => {
    // The model list cannot be read, and the policy does not contain a model.
    const app = await harness.start({ PARLEY_GATEWAY_URL: 'http://127.0.0.1:1/v1' })
    const { agent_id, agent_key: key } = await app.createAgent()
    const policy = { allowed_models: [{ provider: 'gateway' }] }
    await app.call('PUT', `/v1/agents/${agent_id}/model-policy`, { body: policy })
    const answer = await app.call('POST', path, { key, body: chatRequest('hello', { model: undefined }) })
    expect(answer).toMatchObject({ status: 503, body: { error: { code: 'service_unavailable' } } })
  })
})

describe('a model that the caller chooses', () => {
  const policy = { default_model: fallbackModel, allowed_models: [fallbackModel], fallback_models: [] }

  test.each(['up-chat', 'gateway/up-chat'])(
    'is rejected with 403 if the policy does not allow it: %s',
    async (model) => {
      const { ask, app, id } = await startAgent(policy)
      const error = { type: 'permission_error', code: 'model_not_allowed', param: 'model' }
      for (const stream of [false, true])
        expect(await ask('hello', { model, stream })).toMatchObject({ status: 403, body: { error } })
      expect((await app.call('POST', path, { body: chatRequest('hello', { model }) })).status).toBe(200)
      const asAgent = await app.call('POST', path, { body: chatRequest('hello', { model: `agent/${id}` }) })
      expect(asAgent.body.model).toBe('up-small')
    },
  )

  test('answers if the policy allows it', async () => {
    const { ask } = await startAgent(policy)
    expect((await ask('hello', { model: 'gateway/up-small' })).body.model).toBe('up-small')
  })

  test('is rejected with 404 if it does not exist', async () => {
    const { ask } = await startAgent(policy)
    expect((await ask('hello', { model: 'nope' })).status).toBe(404)
  })
})

/** Returns settings that limit both the total response time and the time until the first event. */
function withinSeconds(seconds: string) {
  return { PARLEY_BACKEND_TOTAL_SECONDS: seconds, PARLEY_BACKEND_FIRST_EVENT_SECONDS: seconds }
}

describe.each([
  ['a complete response', false],
  ['a streamed response', true],
])('%s', (_kind, stream) => {
  test.each([
    ['fails', '{{up:status 500}}'],
    ['is overloaded', '{{up:status 429}}'],
    ['rejects the API key', '{{up:status 401}}'],
    ['no longer has the model', '{{up:status 404}}'],
    ['resets the connection', '{{up:reset}}'],
    ['returns an HTML page', '{{up:type text/html}}{{up:body <p>}}'],
  ])("comes from the fallback if the first model's backend %s", async (_what, script) => {
    const { ask } = await startAgent({}, noRetries)
    const answer = await ask(`hello ${onlyForModel(script)}`, { stream })
    expect(answer.status).toBe(200)
    expect(answer.text).toContain('up-small')
    expect(routingHeadersOf(answer)).toEqual(['gateway', '2', 'true'])
    expect(await askedModels()).toEqual(['up-chat', 'up-small'])
  })

  test("comes from the fallback if the first model's response is nested too deeply", async () => {
    const { ask } = await startAgent({}, noRetries)
    const extra = '['.repeat(200_000) + ']'.repeat(200_000)
    const body = `{"choices":[{"message":{"content":"a"},"delta":{"content":"a"},"extra":${extra}}]}`
    const script = stream
      ? `{{up:type text/event-stream}}{{up:body data: ${body}\n\n}}`
      : `{{up:body ${body}}}`
    await harness.upstream.script(path, script, 1)
    expect(routingHeadersOf(await ask('hello', { stream }))).toEqual(['gateway', '2', 'true'])
  })

  test('is recorded in the usage of the model that produced it', async () => {
    const { ask, app } = await startAgent({}, noRetries)
    await ask(`hello ${onlyForModel('{{up:status 500}}')}`, { stream })
    const { data } = await listUsage(app, '?group_by=model')
    expect(data).toMatchObject([{ model: 'up-small', requests: 1, errors: 0 }])
  })

  test('comes from the fallback after all retries of the first model', async () => {
    const { ask } = await startAgent()
    expect(routingHeadersOf(await ask(`hello ${onlyForModel('{{up:status 500}}')}`, { stream }))).toEqual([
      'gateway',
      '4',
      'true',
    ])
    expect(await askedModels()).toEqual(['up-chat', 'up-chat', 'up-chat', 'up-small'])
  })

  test("comes from the fallback without delay if the first model's Retry-After is long", async () => {
    const { ask } = await startAgent()
    await ask(`hello ${onlyForModel('{{up:status 429}}{{up:retry-after 15}}')}`, { stream })
    expect(await askedModels()).toEqual(['up-chat', 'up-small'])
  })

  test('is an error, without a call to the fallback, if the request is invalid', async () => {
    const { ask } = await startAgent()
    const answer = await ask(`hello ${onlyForModel('{{up:status 400}}{{up:message too long}}')}`, { stream })
    expect(answer).toMatchObject({ status: 400, body: { error: { message: 'too long' } } })
    expect(await askedModels()).toEqual(['up-chat'])
  })

  test("is the last model's error if all models fail", async () => {
    const { ask } = await startAgent({}, noRetries)
    const answer = await ask('hello {{up:status 503}}', { stream })
    expect(answer).toMatchObject({ status: 502, body: { error: { code: 'backend_error' } } })
    expect(await askedModels()).toEqual(['up-chat', 'up-small'])
  })

  test('must arrive before a deadline that all models share', async () => {
    const { ask } = await startAgent({}, withinSeconds('0.4'))
    const answer = await ask('hello {{up:hang}}', { stream })
    expect(answer).toMatchObject({ status: 504, body: { error: { code: 'backend_timeout' } } })
    expect(await askedModels()).toEqual(['up-chat', 'up-small'])
  })

  test('comes from the fallback if the first model hangs for half of the time limit', async () => {
    const { ask } = await startAgent({}, withinSeconds('4'))
    expect(routingHeadersOf(await ask(`hello ${onlyForModel('{{up:hang}}')}`, { stream }))).toEqual([
      'gateway',
      '2',
      'true',
    ])
  })

  test('comes from the fallback without a retry if the first byte is late', async () => {
    const { ask } = await startAgent({}, { PARLEY_BACKEND_FIRST_BYTE_SECONDS: '0.2' })
    expect(routingHeadersOf(await ask(`hello ${onlyForModel('{{up:hang}}')}`, { stream }))).toEqual([
      'gateway',
      '2',
      'true',
    ])
  })

  test('comes from the fallback even if the caller chooses the first model', async () => {
    const { ask } = await startAgent({ fallback_models: [fallbackModel, defaultModel] }, noRetries)
    const script = onlyForModel('{{up:status 500}}', 'up-small')
    const answer = await ask(`hello ${script}`, { stream, model: 'up-small' })
    expect(routingHeadersOf(answer)).toEqual(['gateway', '2', 'true'])
    expect(await askedModels()).toEqual(['up-small', 'up-chat'])
  })
})

test('a stream that fails after its first event is not continued by another model', async () => {
  const { ask } = await startAgent()
  const answer = await ask(`one two three {{up:reset-after 2}}`, { stream: true })
  expect(answer.status).toBe(200)
  expect(answer.text).toContain('stream_interrupted')
  expect(await askedModels()).toEqual(['up-chat'])
})

describe("a policy's token limit", () => {
  test.each([
    ['is applied if the caller does not set one', {}, { max_tokens: 50 }],
    ["reduces the caller's higher limit", { max_tokens: 80 }, { max_tokens: 50 }],
    ["does not raise the caller's lower limit", { max_tokens: 20 }, { max_tokens: 20 }],
    ['applies to max_completion_tokens too', { max_completion_tokens: 80 }, { max_completion_tokens: 50 }],
    ['is applied if the caller sends null', { max_tokens: null }, { max_tokens: 50 }],
  ])('%s', async (_what, requested, expected) => {
    const { ask } = await startAgent({ max_output_tokens: 50 })
    expect((await ask('hello', requested)).status).toBe(200)
    const [chat] = await harness.listChats()
    const { max_tokens, max_completion_tokens } = (chat?.body ?? {}) as Record<string, unknown>
    expect(JSON.parse(JSON.stringify({ max_tokens, max_completion_tokens }))).toEqual(expected)
  })
})

test("a call to an agent returns 429 once the agent's budget is spent", async () => {
  const { ask, app } = await startAgent({ budget: { day: 1_000 } })
  // The provider ignores its token limit.
  expect((await ask('{{up:chunks 2000}}')).status).toBe(200)
  expect(await ask('hello')).toMatchObject({ status: 429, body: { error: { code: 'insufficient_quota' } } })
  expect((await app.call('POST', path, { body: chatRequest('hello') })).status).toBe(200)
})

test('a failed embeddings request is retried', async () => {
  const app: TestApp = await harness.start()
  await harness.upstream.script('/v1/embeddings', '{{up:status 500}}', 2)
  const body = { model: 'up-embedding', input: 'hello' }
  const answer = await app.call('POST', '/v1/embeddings', { body })
  expect(answer.status).toBe(200)
  expect(answer.headers.get('x-parley-attempts')).toBe('3')
})
