/** Tests how a stream ends when the backend fails or stalls, or when the client disconnects. */
import { describe, expect, test } from 'vitest'
import type { Clock } from '../../../src/lib/clock.ts'
import type { TestApp } from '../../support/app.ts'
import { chatRequest, startChatHarness } from '../../support/chat-harness.ts'
import { createLineLog } from '../../support/log-lines.ts'

const harness = await startChatHarness()
const path = '/v1/chat/completions'

const errorsIn = (events: readonly { error?: object }[]) => events.filter(({ error }) => error !== undefined)

describe('a failing stream', () => {
  test.each([
    ['the connection is reset', '{{up:reset-after 3}}', 'stream_interrupted'],
    ['the body is cut off', '{{up:cut-off 3}}', 'stream_interrupted'],
    ['the body ends without a finish reason', '{{up:end-after 3}}', 'stream_interrupted'],
    ['the body ends within a line', '{{up:half-line 3}}', 'stream_interrupted'],
    ['an event is not JSON', '{{up:bad-json 3}}', 'stream_interrupted'],
    ['the backend reports an error', '{{up:error-frame 3}}', 'stream_interrupted'],
    ['the backend stalls', '{{up:hang-after 3}}', 'backend_timeout'],
  ])('ends with one error frame and without [DONE] if %s', async (_what, script, code) => {
    const app = await harness.start({ PARLEY_BACKEND_IDLE_SECONDS: '0.3' })
    const { status, events, isDone, text } = await app.stream(
      chatRequest(`a b c d {{up:usage never}}${script}`),
    )
    expect(status).toBe(200)
    const [role, ...words] = events.slice(0, -1).map(({ choices }) => choices[0].delta)
    expect(role).toEqual({ role: 'assistant', content: '' })
    expect(words).toEqual([{ content: 'Upstream' }, { content: ' heard:' }])
    expect(errorsIn(events)).toEqual([events.at(-1)])
    expect(events.at(-1).error).toEqual({
      message: expect.stringMatching(/^The model provider/),
      type: 'upstream_error',
      param: null,
      code,
    })
    expect(isDone).toBe(false)
    expect(text).not.toContain('scripted failure')
    expect(await harness.listChats()).toHaveLength(1)
  })

  test('delivers everything before the failure, even if the failure arrives in the same read', async () => {
    const app = await harness.start()
    const { events } = await app.stream(
      chatRequest('a {{up:usage never}}{{up:batch 50}}{{up:error-frame 3}}'),
    )
    expect(events).toHaveLength(4)
    expect(events.at(-1).error.code).toBe('stream_interrupted')
  })

  test('ends with an error when it reaches the maximum duration', async () => {
    const app = await harness.start({ PARLEY_STREAM_MAX_SECONDS: '0.3' })
    const { events, isDone } = await app.stream(chatRequest('{{up:chunks 500}}{{up:delay 10}}'))
    expect(events.at(-1).error.code).toBe('backend_timeout')
    expect(isDone).toBe(false)
  })

  test.each([
    ['an event that is not JSON', '{{up:bad-json}}'],
    ['an incomplete line', '{{up:half-line}}'],
    ['no event at all', '{{up:end-after}}'],
    ['an error frame', '{{up:error-frame}}'],
  ])('causes a 502 response if it starts with %s', async (_what, script) => {
    const app = await harness.start()
    const answer = await app.call('POST', path, { body: chatRequest(script, { stream: true }) })
    expect(answer).toMatchObject({ status: 502, body: { error: { code: 'backend_error' } } })
  })
})

describe('a stream ends normally if, after the finish reason, the backend', () => {
  test.each([
    ['resets the connection', '{{up:reset-after 4}}', {}],
    ['cuts off the body', '{{up:cut-off 4}}', {}],
    ['stalls until the idle timeout', '{{up:hang-after 4}}', { PARLEY_BACKEND_IDLE_SECONDS: '0.3' }],
    ['stalls', '{{up:hang-after 4}}', {}],
  ])('%s', async (_what, script, env) => {
    const app = await harness.start(env)
    const { events, isDone } = await app.stream(chatRequest(`{{up:usage never}}${script}`))
    expect(errorsIn(events)).toEqual([])
    expect(events.at(-1).choices[0].finish_reason).toBe('stop')
    expect(isDone).toBe(true)
  })
})

describe('a stream from a slow backend', () => {
  const frequentHeartbeat = { PARLEY_HEARTBEAT_SECONDS: '0.1' }

  test('starts with keep-alive comments', async () => {
    const app = await harness.start(frequentHeartbeat)
    const answer = await app.stream(chatRequest('hello {{up:slow-head 1000}}{{up:usage never}}'))
    const [chat] = await harness.listChats()
    expect(answer.text).toMatch(/^(: keep-alive\n\n)+data: /)
    expect(answer.text.replaceAll(': keep-alive\n\n', '')).toBe(await harness.readDirectly(chat?.body))
  })

  test('sends keep-alive comments whenever the backend pauses', async () => {
    const app = await harness.start(frequentHeartbeat)
    const { text, events } = await app.stream(chatRequest('one two {{up:delay 250}}'))
    expect(text).toMatch(/^data: [\s\S]*\n\n: keep-alive\n\ndata: /)
    expect(events).toHaveLength(6)
  })

  test.each([
    ['fails', '{{up:status 500}}', 'upstream_error', 'backend_error'],
    ['rejects the request', '{{up:status 400}}', 'invalid_request_error', 'scripted'],
    ['is rate-limited', '{{up:status 429}}{{up:retry-after 60}}', 'rate_limit_error', 'rate_limit_exceeded'],
  ])(
    'ends with an error frame if the backend %s after a keep-alive comment',
    async (_what, script, type, code) => {
      const app = await harness.start({ ...frequentHeartbeat, PARLEY_BACKEND_ATTEMPTS: '1' })
      const { status, text, events, isDone } = await app.stream(chatRequest(`{{up:slow-head 1000}}${script}`))
      expect(status).toBe(200)
      expect(text).toMatch(/^(: keep-alive\n\n)+data: [^\n]*\n\n$/)
      expect(events).toMatchObject([{ error: { type, code } }])
      expect(isDone).toBe(false)
    },
  )

  test('is still retried after a keep-alive comment', async () => {
    const app = await harness.start(frequentHeartbeat)
    const { events, isDone } = await app.stream(
      chatRequest('x {{up:slow-head 1000}}{{up:status 500}}{{up:first 1}}'),
    )
    expect(errorsIn(events)).toEqual([])
    expect(isDone).toBe(true)
  })
})

/** Sends a request and aborts it once `hasSeen` resolves. */
async function abortWhen(
  app: TestApp,
  body: object,
  hasSeen: (text: string) => Promise<unknown>,
): Promise<void> {
  const controller = new AbortController()
  const { signal } = controller
  const response = app.call('POST', path, { body, signal })
  const aborted = expect(response).rejects.toThrow(/abort/i)
  await hasSeen(JSON.stringify(body))
  controller.abort()
  await aborted
}

/** Creates a clock whose pauses last until they are aborted. */
function createEndlessClock(onPause = () => {}): Clock {
  return {
    now: () => Date.now(),
    monotonic: () => performance.now(),
    wait(_ms, signal) {
      onPause()
      return new Promise((_, reject) =>
        signal?.addEventListener('abort', () => reject(new Error('The pause was aborted.'))),
      )
    },
  }
}

describe('a client that disconnects', () => {
  const seen = (text: string) => () => harness.upstream.waitForRequest(text)
  const sent = (text: string, bytes: number) => async () => {
    const { id } = await harness.upstream.waitForRequest(text)
    while (((await harness.listChats()).find((chat) => chat.id === id)?.sentBytes ?? 0) < bytes);
  }

  test.each([
    ['before the first byte of a stream', '{{up:hang}}', true, seen('hang')],
    ['between the headers and the first event', '{{up:hang-after}}', true, seen('hang-after')],
    ['in the middle of a stream', '{{up:hang-after 2}}', true, sent('hang-after', 200)],
    ['in the middle of a busy stream', '{{up:chunks 5000}}{{up:delay 1}}', true, sent('chunks', 5_000)],
    ['before a complete response', '{{up:hang}}', false, seen('hang')],
    ['in the middle of a complete response', '{{up:cut 1}}{{up:delay 20}}', false, sent('cut', 20)],
  ])('aborts the backend request (%s)', async (_when, script, stream, hasSeen) => {
    const { log, lines } = createLineLog()
    const app = await harness.start({}, { log })
    await abortWhen(app, chatRequest(script, { stream }), hasSeen)
    const [chat] = await harness.listChats()
    expect((await harness.upstream.waitForEnd(chat?.id ?? -1)).endedBy).toBe('client')
    expect(await harness.listChats()).toHaveLength(1)
    expect(lines.filter((line) => JSON.parse(line).level >= 40)).toEqual([])
  })

  test.each([true, false])('prevents further retries (stream: %s)', async (stream) => {
    const { log, lines } = createLineLog()
    const pause = Promise.withResolvers<void>()
    const clock = createEndlessClock(pause.resolve)
    const app = await harness.start({}, { clock, log })
    await abortWhen(app, chatRequest('{{up:status 500}}', { stream }), () => pause.promise)
    await app.call('POST', path, { body: chatRequest('another') })
    expect(await harness.listChats()).toHaveLength(2)
    expect(lines.filter((line) => JSON.parse(line).level >= 40)).toEqual([])
  })
})

test('a request that times out between two attempts returns 504', async () => {
  const clock = createEndlessClock()
  const app = await harness.start({ PARLEY_BACKEND_FIRST_EVENT_SECONDS: '0.2' }, { clock })
  const answer = await app.call('POST', path, { body: chatRequest('{{up:status 500}}', { stream: true }) })
  expect(answer).toMatchObject({ status: 504, body: { error: { code: 'backend_timeout' } } })
})
