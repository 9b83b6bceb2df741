/** Tests how backend failures are retried and which errors callers receive. */
import { describe, expect, test } from 'vitest'
import { chatRequest, PROVIDER_KEY, startChatHarness } from '../../support/chat-harness.ts'
import { createLineLog } from '../../support/log-lines.ts'

const harness = await startChatHarness()
const path = '/v1/chat/completions'

/** A streaming request that fails before its first event returns the same error as a non-streaming one. */
const kinds = [
  ['a non-streaming request', false],
  ['a streaming request', true],
] as const

describe.each(kinds)('%s', (_kind, stream) => {
  test.each([
    ['rejects the API key', '{{up:status 401}}', 502, 'backend_error'],
    ['forbids the call', '{{up:status 403}}', 502, 'backend_error'],
    ['does not know the model', '{{up:status 404}}', 502, 'backend_error'],
    ['redirects', '{{up:redirect http://127.0.0.1:1/}}', 502, 'backend_error'],
    ['fails', '{{up:status 500}}', 502, 'backend_error'],
    ['is overloaded', '{{up:status 503}}', 502, 'backend_error'],
    ['times out', '{{up:status 408}}', 504, 'backend_timeout'],
    ['returns an HTML page', '{{up:type text/html}}{{up:body <p>Hello}}', 502, 'backend_error'],
    ['resets the connection', '{{up:reset}}', 503, 'backend_unavailable'],
    ['closes the connection', '{{up:close}}', 503, 'backend_unavailable'],
  ])('fails if the backend %s', async (_what, script, status, code) => {
    const { log, lines } = createLineLog()
    const app = await harness.start({}, { log })
    const secret = `leaked ${PROVIDER_KEY}`
    const answer = await app.call('POST', path, {
      body: chatRequest(`${script}{{up:message ${secret}}}`, { stream }),
    })
    expect(answer).toMatchObject({ status, body: { error: { type: 'upstream_error', param: null, code } } })
    expect(answer.text).not.toContain('leaked')
    expect(lines.join('\n')).not.toContain(PROVIDER_KEY)
  })

  test('fails if the backend is unreachable', async () => {
    const app = await harness.start({ PARLEY_GATEWAY_URL: 'http://127.0.0.1:1/v1' })
    const answer = await app.call('POST', path, { body: chatRequest('hello', { stream }) })
    expect(answer).toMatchObject({ status: 503, body: { error: { code: 'backend_unavailable' } } })
  })

  test('fails if the first byte takes too long', async () => {
    const app = await harness.start({
      PARLEY_BACKEND_FIRST_BYTE_SECONDS: '0.2',
      PARLEY_BACKEND_ATTEMPTS: '1',
    })
    const answer = await app.call('POST', path, { body: chatRequest('{{up:hang}}', { stream }) })
    expect(answer).toMatchObject({ status: 504, body: { error: { code: 'backend_timeout' } } })
  })

  test('fails if the response takes too long in total', async () => {
    const app = await harness.start({
      PARLEY_BACKEND_TOTAL_SECONDS: '0.2',
      PARLEY_BACKEND_FIRST_EVENT_SECONDS: '0.2',
    })
    const answer = await app.call('POST', path, { body: chatRequest('{{up:hang}}', { stream }) })
    expect(answer).toMatchObject({ status: 504, body: { error: { code: 'backend_timeout' } } })
  })

  test("fails with 400 and the backend's message if the request is invalid", async () => {
    const app = await harness.start()
    const error = {
      message: `No such voice. ${PROVIDER_KEY}`,
      type: 'x',
      param: 'audio.voice',
      code: 'no_voice',
    }
    const script = `{{up:status 400}}{{up:body ${JSON.stringify({ error })}}}`
    const answer = await app.call('POST', path, { body: chatRequest(script, { stream }) })
    expect(answer.status).toBe(400)
    expect(answer.body.error).toEqual({
      message: 'No such voice. [redacted]',
      type: 'invalid_request_error',
      param: 'audio.voice',
      code: 'no_voice',
    })
    expect(await harness.listChats()).toHaveLength(1)
  })

  test.each([
    [409, 'conflict'],
    [413, 'too_large'],
    [415, 'unsupported_media_type'],
  ])("fails with %i and the backend's message if the backend returns that status", async (status, code) => {
    const app = await harness.start()
    const script = `{{up:status ${status}}}{{up:body {"error":{"message":"No."}}}}`
    const answer = await app.call('POST', path, { body: chatRequest(script, { stream }) })
    expect(answer).toMatchObject({ status, body: { error: { message: 'No.', code } } })
  })

  test("fails with 429 and the backend's Retry-After, without a retry, if the wait is long", async () => {
    const app = await harness.start()
    const body = chatRequest('{{up:status 429}}{{up:retry-after 33}}', { stream })
    const answer = await app.call('POST', path, { body })
    expect(answer).toMatchObject({
      status: 429,
      body: { error: { type: 'rate_limit_error', code: 'rate_limit_exceeded' } },
    })
    expect(answer.headers.get('retry-after')).toBe('33')
    expect(await harness.listChats()).toHaveLength(1)
  })
})

describe.each(kinds)('retrying %s', (_kind, stream) => {
  test.each([
    ['a 500', '{{up:status 500}}'],
    ['a 408', '{{up:status 408}}'],
    ['a 429', '{{up:status 429}}{{up:retry-after 2}}'],
    ['a reset connection', '{{up:reset}}'],
  ])('succeeds after %s', async (_what, script) => {
    const app = await harness.start()
    const { status, text, headers } = await app.call('POST', path, {
      body: chatRequest(`${script}{{up:first 2}}again`, { stream }),
    })
    expect(status).toBe(200)
    expect(text).toContain('heard')
    expect(headers.get('x-parley-attempts')).toBe('3')
    expect(await harness.listChats()).toHaveLength(3)
  })

  test('stops after the maximum number of attempts', async () => {
    const app = await harness.start({ PARLEY_BACKEND_ATTEMPTS: '2' })
    const { status } = await app.call('POST', path, {
      body: chatRequest('{{up:status 500}}{{up:first 2}}', { stream }),
    })
    expect(status).toBe(502)
    expect(await harness.listChats()).toHaveLength(2)
  })

  test.each([
    ['an invalid request', '{{up:status 400}}'],
    ['a rejected key', '{{up:status 401}}'],
    ['an invalid response', '{{up:body <}}{{up:type text/event-stream}}'],
  ])('is skipped after %s', async (_what, script) => {
    const app = await harness.start()
    await app.call('POST', path, { body: chatRequest(script, { stream }) })
    expect(await harness.listChats()).toHaveLength(1)
  })

  test("waits as long as the backend's Retry-After specifies", async () => {
    const pauses: number[] = []
    const app = await harness.start({}, { clock: recordPauses(pauses) })
    await app.call('POST', path, {
      body: chatRequest('{{up:status 429}}{{up:retry-after 20}}{{up:first 1}}', { stream }),
    })
    expect(pauses).toEqual([20_000])
  })
})

describe('the service returns 502 for a backend response', () => {
  const choices = (message: unknown) => ({ choices: [{ message }] })
  test.each<[string, object]>([
    ['no choices', {}],
    ['an empty list of choices', { choices: [] }],
    ['choices that are not a list', { choices: {} }],
    ['a choice that is not an object', { choices: [null] }],
    ['no message', { choices: [{}] }],
    ['a message that is not an object', choices('hello')],
    ['tool calls that are not a list', choices({ tool_calls: {} })],
    ['a tool call that is not an object', choices({ tool_calls: [7] })],
    ['a function that is not an object', choices({ tool_calls: [{ function: 'f' }] })],
    ['usage that is not an object', { ...choices({ content: 'a' }), usage: 7 }],
  ])('with %s', async (_what, sent) => {
    const app = await harness.start()
    const { agent_key } = await app.createAgent()
    await harness.answerWith(sent)
    for (const key of [app.key, agent_key]) {
      const answer = await app.call('POST', path, { key, body: chatRequest('hello') })
      expect(answer).toMatchObject({ status: 502, body: { error: { code: 'backend_error' } } })
    }
  })
})

function recordPauses(pauses: number[]) {
  return {
    now: () => Date.now(),
    monotonic: () => performance.now(),
    wait: async (ms: number) => void pauses.push(ms),
  }
}

test('the pause before each retry is random, with a maximum that doubles up to a limit', async () => {
  const pauses: number[] = []
  const env = { PARLEY_BACKEND_ATTEMPTS: '7' }
  const clock = recordPauses(pauses)
  const app = await harness.start(env, { clock, random: (size) => new Uint8Array(size).fill(128) })
  await app.call('POST', path, { body: chatRequest('{{up:status 500}}') })
  expect(pauses).toEqual([125, 250, 500, 1000, 2000, 2000])
})
