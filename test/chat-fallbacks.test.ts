/** Which model answers an agent's call: by policy, by its fallbacks when one fails, and past those that are resting. */
import { describe, expect, test } from 'vitest'
import type { Answer, TestApp } from './support/app.ts'
import { say, startChatStand } from './support/chat-stand.ts'
import { createFakeClock } from './support/fake-clock.ts'
import { listUsage } from './support/usage.ts'

const stand = await startChatStand()
const path = '/v1/chat/completions'
const chat = { provider: 'gateway', model: 'up-chat' }
const small = { provider: 'gateway', model: 'up-small' }
const ONCE = { PARLEY_BACKEND_ATTEMPTS: '1' }

/** An agent whose default is `up-chat`, with `up-small` behind it. */
async function startAgent(policy: object = {}, env = {}, clock = createFakeClock(), yaml?: string) {
  const app = await stand.start(env, { clock })
  const { agent_id: id, agent_key: key } = await app.createAgent(yaml)
  const body = { default_model: chat, fallback_models: [small], ...policy }
  const put = await app.call('PUT', `/v1/agents/${id}/model-policy`, { body })
  if (put.status !== 200) throw new Error(put.text)
  const ask = (text: string, more: object = {}): Promise<Answer> =>
    app.call('POST', path, { key, body: say(text, { model: undefined, ...more }) })
  return { app, id, key, ask }
}

async function askedModels(): Promise<unknown[]> {
  return (await stand.listChats()).map(({ body }) => (body as { model: unknown }).model)
}

const told = ({ headers }: Answer) => [
  headers.get('x-parley-provider'),
  headers.get('x-parley-attempts'),
  headers.get('x-parley-fallback'),
]
const only = (script: string, model = 'up-chat') => `{{up:only ${model}}}${script}`

describe('the model of a call that names none', () => {
  test.each([
    ['is the one of the policy', { default_model: small }, undefined, 'up-small'],
    ["is the definition's where the policy names none", { default_model: null }, 'up-small', 'up-small'],
    [
      "is the first allowed one where neither the definition's nor the common one is allowed",
      { default_model: null, allowed_models: [small], fallback_models: [] },
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
  const policy = { default_model: small, allowed_models: [small], fallback_models: [] }

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
    const { ask } = await startAgent({ fallback_models: [small, chat] }, ONCE)
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

describe('a model that keeps failing', () => {
  const fail = only('{{up:status 500}}')
  const times = async (count: number, call: () => Promise<unknown>) => {
    for (let done = 0; done < count; done++) await call()
  }
  const modelOf = async (call: Promise<Answer>) => (await call).body.model

  async function startFailing(failures = 10, env: Readonly<Record<string, string>> = ONCE) {
    const clock = createFakeClock()
    const agent = await startAgent({}, { PARLEY_RATE_LIMIT_AGENT_ADDRESS: '0', ...env }, clock)
    await times(failures, () => agent.ask(`hello ${fail}`))
    await stand.upstream.clear()
    return { ...agent, clock }
  }

  test('rests after ten calls, and its fallback answers at once', async () => {
    const { ask } = await startFailing()
    const answer = await ask('hello')
    expect(told(answer)).toEqual(['gateway', '1', 'true'])
    expect(await askedModels()).toEqual(['up-small'])
  })

  test('does not rest after nine', async () => {
    const { ask } = await startFailing(9)
    expect(await modelOf(ask('hello'))).toBe('up-chat')
  })

  test('does not rest when fewer than half of its calls failed', async () => {
    const { ask } = await startFailing(0)
    await times(6, () => ask('hello'))
    await times(5, () => ask(`hello ${fail}`))
    expect(await modelOf(ask('hello'))).toBe('up-chat')
    await times(2, () => ask(`hello ${fail}`))
    expect(await modelOf(ask('hello'))).toBe('up-small')
  })

  test('does not rest for what failed more than ten seconds ago', async () => {
    const { ask, clock } = await startFailing(9)
    clock.advance(10)
    await ask(`hello ${fail}`)
    expect(await modelOf(ask('hello'))).toBe('up-chat')
  })

  test('counts a call once, however often it was tried', async () => {
    const { ask } = await startFailing(9, { PARLEY_BACKEND_ATTEMPTS: '3' })
    expect(await modelOf(ask('hello'))).toBe('up-chat')
  })

  test.each([
    ["callers' mistakes", '{{up:status 400}}'],
    ['429s', '{{up:status 429}}'],
  ])('does not rest for %s', async (_what, script) => {
    const { ask } = await startFailing(0)
    await times(12, () => ask(`hello ${only(script)}`))
    expect(await modelOf(ask('hello'))).toBe('up-chat')
  })

  test('is tried by one call after 15 seconds, and is back when that is answered', async () => {
    const { ask, clock } = await startFailing()
    clock.advance(14.9)
    expect(await modelOf(ask('hello'))).toBe('up-small')
    clock.advance(0.1)
    expect(await modelOf(ask('hello'))).toBe('up-chat')
    expect(await modelOf(ask(`hello ${fail}`))).toBe('up-small')
    expect(await modelOf(ask('hello'))).toBe('up-chat')
  })

  test('rests on when that call fails', async () => {
    const { ask, clock } = await startFailing()
    clock.advance(15)
    expect(told(await ask(`hello ${fail}`))).toEqual(['gateway', '2', 'true'])
    clock.advance(14)
    expect(told(await ask('hello'))).toEqual(['gateway', '1', 'true'])
  })

  test('is tried by one call at a time', async () => {
    const { ask, clock, app, key } = await startFailing()
    clock.advance(15)
    const leaving = new AbortController()
    const body = say('{{up:hang}}', { model: undefined })
    const probe = app.call('POST', path, { key, body, signal: leaving.signal }).catch((error) => error.name)
    await stand.upstream.waitForRequest('up:hang')
    expect(await modelOf(ask('hello'))).toBe('up-small')
    leaving.abort()
    expect(await probe).toBe('AbortError')
    const [left] = await stand.listChats()
    await stand.upstream.waitForEnd(left?.id as number)
    // Whoever left has said nothing of the model: the next call tries it.
    expect(await modelOf(ask('hello'))).toBe('up-chat')
  })

  test('is asked all the same where there is nothing to fall back to, but not again', async () => {
    const { app } = await startFailing(10, { PARLEY_BACKEND_ATTEMPTS: '3' })
    const answer = await app.call('POST', path, { body: say(`hello ${fail}`) })
    expect(answer.status).toBe(502)
    expect(await askedModels()).toEqual(['up-chat'])
    expect((await app.call('POST', path, { body: say('hello') })).status).toBe(200)
  })

  test('is one whose streams break in the middle', async () => {
    const { ask } = await startFailing(0)
    await times(10, () => ask('hello you {{up:reset-after 1}}', { stream: true }))
    expect(await modelOf(ask('hello'))).toBe('up-small')
  })

  test('never rests when that is switched off', async () => {
    const { ask } = await startFailing(12, { ...ONCE, PARLEY_BREAKER_CALLS: '0' })
    expect(await modelOf(ask('hello'))).toBe('up-chat')
  })
})

test('embeddings are asked for again', async () => {
  const app: TestApp = await stand.start()
  await stand.upstream.script('/v1/embeddings', '{{up:status 500}}', 2)
  const body = { model: 'up-embedding', input: 'hello' }
  const answer = await app.call('POST', '/v1/embeddings', { body })
  expect(answer.status).toBe(200)
  expect(answer.headers.get('x-parley-attempts')).toBe('3')
})
