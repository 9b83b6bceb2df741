/** Tests the events of streamed responses, and how the streams end. */
import { describe, expect, onTestFinished, test } from 'vitest'
import { startApp, type TestApp } from '../../support/app.ts'
import { startChatHarness } from '../../support/chat-harness.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import { createLineLog } from '../../support/log-lines.ts'
import {
  listEventTypes,
  RESPONSES,
  readResponseEvents,
  respond,
  streamResponse,
} from '../../support/responses.ts'
import { totalUsage } from '../../support/usage.ts'

const harness = await startChatHarness()

const started = ['created', 'in_progress']
const message = (...deltas: string[]) => [
  'output_item.added',
  'content_part.added',
  ...deltas,
  ...deltas.map((type) => type.replace('delta', 'done')),
  'content_part.done',
  'output_item.done',
]
const text = message('output_text.delta')

describe('the events of a streamed response', () => {
  test('are the documented events for one message, in order and without [DONE]', async () => {
    const app = await startApp()
    const { status, headers, events, types, text: received } = await streamResponse(app, { input: 'one two' })
    expect(status).toBe(200)
    expect(headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
    expect(headers.get('x-parley-provider')).toBe('mock')
    expect(listEventTypes(types)).toEqual([...started, ...text, 'completed'])
    expect(received).not.toContain('[DONE]')
    const [, , added, part] = events
    const place = { output_index: 0, item_id: added?.item.id, content_index: 0 }
    const whole = { type: 'output_text', text: 'You said: one two', annotations: [], logprobs: [] }
    const item = { type: 'message', id: place.item_id, role: 'assistant' }
    expect(added).toMatchObject({ output_index: 0, item: { ...item, status: 'in_progress', content: [] } })
    expect(part).toMatchObject({ ...place, part: { ...whole, text: '' } })
    expect(events.slice(4, 8).map(({ delta }) => delta)).toEqual(['You', ' said:', ' one', ' two'])
    expect(events.slice(4)).toMatchObject([
      ...Array(4).fill({ ...place, logprobs: [] }),
      { ...place, text: whole.text },
      { ...place, part: whole },
      { output_index: 0, item: { ...item, status: 'completed', content: [whole] } },
      { response: { status: 'completed', output: [{ ...item, content: [whole] }] } },
    ])
  })

  test('end with the same response as a non-streaming request', async () => {
    const app = await startApp({}, { clock: createFakeClock() })
    const request = {
      input: 'weather city=Oslo',
      tools: [
        { type: 'function', name: 'weather', parameters: { properties: { city: { type: 'string' } } } },
      ],
      metadata: { a: 'b' },
    }
    const { body } = await respond(app, request)
    const { events, last } = await streamResponse(app, request)
    const ids = { id: expect.any(String), call_id: expect.any(String) }
    const output = body.output.map((item: object) => ({ ...item, ...ids }))
    expect(last.response).toEqual({ ...body, id: expect.any(String), output })
    for (const { response } of events.slice(0, 2)) {
      expect(response).toEqual({
        ...last.response,
        status: 'in_progress',
        completed_at: null,
        output: [],
        usage: null,
      })
    }
    expect(await totalUsage(app)).toMatchObject({ requests: 2 })
  })

  test('report reasoning, text and tool calls as separate items', async () => {
    const app = await harness.start()
    const input = '{{up:reasoning Let me see.}}{{up:text Wait.}}{{up:tool f {"a":1}}}{{up:tool g {}}}'
    const { events, types, last } = await streamResponse(app, { input })
    const call = 'function_call_arguments'
    expect(listEventTypes(types)).toEqual([
      ...started,
      ...message('reasoning_text.delta'),
      ...text,
      ...['output_item.added', `${call}.delta`, 'output_item.added', `${call}.delta`],
      ...[`${call}.done`, 'output_item.done', `${call}.done`, 'output_item.done'],
      'completed',
    ])
    const deltas = events.filter(({ type }) => type === 'response.function_call_arguments.delta')
    expect(deltas.map(({ delta }) => delta).join('')).toBe('{"a":1}{}')
    const items = last.response.output
    const done = events.filter(({ type }) => type === 'response.output_item.done')
    expect(done.map(({ item }) => item)).toEqual(items)
    expect(done.map(({ output_index }) => output_index)).toEqual([0, 1, 2, 3])
    expect(items.map(({ type }: { type: string }) => type)).toEqual([
      ...['reasoning', 'message'],
      ...['function_call', 'function_call'],
    ])
  })

  test('end with response.incomplete at the output limit', async () => {
    const app = await startApp()
    const request = { input: 'a b c d', max_output_tokens: 3 }
    const { types, last } = await streamResponse(app, request)
    expect(listEventTypes(types)).toEqual([...started, ...text, 'incomplete'])
    expect(last.response).toMatchObject({
      status: 'incomplete',
      incomplete_details: { reason: 'max_output_tokens' },
      output: [{ status: 'incomplete', content: [{ text: 'You said: a' }] }],
      usage: { output_tokens: 3 },
    })
  })

  test('include log probabilities on request', async () => {
    const app = await startApp()
    const { events, last } = await streamResponse(app, { input: 'a', top_logprobs: 2 })
    const deltas = events.filter(({ type }) => type === 'response.output_text.delta')
    expect(
      deltas.map(({ delta, logprobs }) => [delta, logprobs[0].token, logprobs[0].top_logprobs.length]),
    ).toEqual(['You', ' said:', ' a'].map((word) => [word, word, 2]))
    expect(last.response.output[0].content[0].logprobs).toEqual(deltas.flatMap(({ logprobs }) => logprobs))
  })
})

describe('a streamed response that fails', () => {
  test.each([
    ['an event that is not JSON', '{{up:bad-json}}', 502, 'backend_error'],
    ['an error response', '{{up:status 400}}', 400, 'scripted'],
    ['no response', '{{up:close}}', 503, 'backend_unavailable'],
  ])(
    'returns an error status if the backend fails before the first event: %s',
    async (_what, script, status, code) => {
      const app = await harness.start()
      const answer = await respond(app, { input: script, stream: true })
      expect(answer).toMatchObject({ status, body: { error: { code, param: null } } })
    },
  )

  test.each([
    ['the connection is reset', '{{up:reset-after 3}}', 'stream_interrupted'],
    ['the body ends without a finish reason', '{{up:end-after 3}}', 'stream_interrupted'],
    ['the backend reports an error', '{{up:error-frame 3}}', 'stream_interrupted'],
    ['the backend stops sending', '{{up:hang-after 3}}', 'backend_timeout'],
  ])('ends with a failed event if a failure occurs midway: %s', async (_what, script, code) => {
    const { log, lines } = createLineLog()
    const app = await harness.start({ PARLEY_BACKEND_IDLE_SECONDS: '0.3' }, { log })
    const { status, types, last, text: received } = await streamResponse(app, { input: `a b c ${script}` })
    expect(status).toBe(200)
    expect(listEventTypes(types)).toEqual([...started, ...text.slice(0, 3), 'failed'])
    expect(last.response).toMatchObject({
      status: 'failed',
      error: { code, message: expect.stringMatching(/^The model provider/) },
      output: [{ status: 'incomplete', content: [{ text: 'Upstream heard:' }] }],
      completed_at: null,
      usage: null,
    })
    expect(received).not.toContain('scripted failure')
    expect(lines.map((line) => JSON.parse(line)).filter(({ level }) => level >= 40)).toMatchObject([
      { path: RESPONSES },
    ])
  })

  test('marks open items as incomplete and does not change completed ones', async () => {
    const app = await harness.start()
    const input = '{{up:reasoning Hm.}}{{up:text Wait.}}{{up:tool f {"aaaaaa":1}}}{{up:error-frame 5}}'
    const { last } = await streamResponse(app, { input })
    expect(
      last.response.output.map(({ type, status }: { type: string; status: string }) => [type, status]),
    ).toEqual([
      ['reasoning', 'completed'],
      ['message', 'completed'],
      ['function_call', 'incomplete'],
    ])
  })

  test('sends its first events before the failure, even after a keep-alive comment', async () => {
    const app = await harness.start({ PARLEY_HEARTBEAT_SECONDS: '0.1', PARLEY_BACKEND_ATTEMPTS: '1' })
    const input = '{{up:slow-head 1000}}{{up:status 500}}'
    const { status, text: received, types, last } = await streamResponse(app, { model: 'up-chat', input })
    expect(status).toBe(200)
    expect(received).toMatch(/^(: keep-alive\n\n)+event: /)
    expect(listEventTypes(types)).toEqual([...started, 'failed'])
    expect(last.response).toMatchObject({ model: 'up-chat', error: { code: 'backend_error' }, output: [] })
  })

  test('ends with service_unavailable when the server shuts down', async () => {
    const app = await harness.start()
    const { first, rest } = await hold(app, '{{up:hang-after 2}}')
    await first
    const [received] = await Promise.all([rest(), app.service.close()])
    const events = readResponseEvents(received)
    expect(events.at(-1)).toMatchObject({
      type: 'response.failed',
      response: { error: { code: 'service_unavailable' } },
    })
  })
})

test('a client that does not read a streamed response applies backpressure to the backend', async () => {
  const app = await harness.start()
  const { rest } = await hold(app, '{{up:no-done}}{{up:flood 15000000}}')
  const { id } = await harness.upstream.waitForRequest('flood')
  expect((await harness.upstream.waitForStall(id, 300)).endedBy).toBe(null)
  const received = await rest()
  expect((await harness.upstream.waitForEnd(id)).endedBy).toBe('answer')
  expect(received.slice(received.lastIndexOf('event: '))).toMatch(/^event: response.completed\n/)
})

describe('an open streamed response', () => {
  test('aborts the backend request and is included in usage if the client abandons it', async () => {
    const app = await harness.start()
    const { first, leave } = await hold(app, 'x {{up:hang-after 3}}')
    await first
    leave()
    const { id } = await harness.upstream.waitForRequest('hang-after')
    expect((await harness.upstream.waitForEnd(id)).endedBy).toBe('client')
    const usage = await totalUsage(app)
    expect(usage).toMatchObject({ requests: 1, errors: 0, estimated_requests: 1 })
    expect(usage.completion_tokens).toBeGreaterThan(0)
  })

  test('uses a stream slot of its key', async () => {
    const app = await harness.start({ PARLEY_MAX_STREAMS_PARENT: '1' })
    const { first } = await hold(app, 'x {{up:hang-after 3}}')
    await first
    const answer = await respond(app, { input: 'hello', stream: true })
    expect(answer).toMatchObject({ status: 429, body: { error: { code: 'rate_limit_exceeded' } } })
    expect((await respond(app, { input: 'hello' })).status).toBe(200)
  })
})

/** Starts a stream that remains open until it is abandoned or read to its end. */
async function hold(app: TestApp, input: string) {
  const leaving = new AbortController()
  onTestFinished(() => leaving.abort())
  const response = await fetch(app.url + RESPONSES, {
    method: 'POST',
    headers: { Authorization: `Bearer ${app.key}`, 'Content-Type': 'application/json' },
    body: JSON.stringify({ input, stream: true }),
    signal: leaving.signal,
  })
  const reader = (response.body as ReadableStream<Uint8Array>).getReader()
  const decoder = new TextDecoder()
  let received = ''
  const read = async () => {
    const { value, done } = await reader.read()
    received += decoder.decode(value)
    return !done
  }
  return {
    /** Resolves when the first text arrives. */
    first: (async () => {
      while (!received.includes('output_text.delta') && (await read()));
    })(),
    /** Reads the stream to its end and returns its text. */
    async rest() {
      while (await read());
      return received
    },
    leave: () => leaving.abort(),
  }
}
