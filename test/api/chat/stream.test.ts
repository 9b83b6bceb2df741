/** Tests that the backend's events are forwarded unchanged, and that usage is included only on request. */
import { once } from 'node:events'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { describe, expect, onTestFinished, test } from 'vitest'
import { chatRequest, startChatHarness } from '../../support/chat-harness.ts'

const harness = await startChatHarness()

describe('a stream', () => {
  test.each([
    ['text', ''],
    ['many words in each read', '{{up:chunks 500}}{{up:batch 200}}'],
    ['text in single bytes', '{{up:drip}}'],
    ['text split at arbitrary positions', '{{up:cut 5}}'],
    ['JSON as written by Python', '{{up:python}}{{up:cut 9}}'],
    ['reasoning', '{{up:reasoning let me think}}'],
    ['a tool call', '{{up:tool weather {"city":"Oslo","days":[1,2]}}}'],
    ['a long line', '{{up:giant 900000}}'],
    ['a body without framing', '{{up:until-close}}'],
    ['several choices', '{{up:cut 3}}', { n: 3 }],
  ])('forwards exactly the events that the backend sends: %s', async (_what, script, more?: object) => {
    const app = await harness.start()
    const answer = await app.stream(chatRequest(`ünïcödé 🎈 {{up:usage never}}${script}`, more))
    const [chat] = await harness.listChats()
    expect(answer.text).toBe(await harness.readDirectly(chat?.body))
    expect(answer.isDone).toBe(true)
  })

  test.each([
    ['a space before [DONE]', '{{up:tight}}', (text: string) => text.replace('data:[', 'data: [')],
    ['line feeds as line endings', '{{up:crlf}}', (text: string) => text.replaceAll('\r\n', '\n')],
    ['its comments removed', '{{up:comments}}', (text: string) => text.replaceAll(': ping\n\n', '')],
    ['a final [DONE]', '{{up:no-done}}', (text: string) => `${text}data: [DONE]\n\n`],
  ])('is normalized to have %s', async (_how, script, change) => {
    const app = await harness.start()
    const answer = await app.stream(chatRequest(`hello {{up:usage never}}${script}`))
    const [chat] = await harness.listChats()
    expect(answer.text).toBe(change(await harness.readDirectly(chat?.body)))
  })

  test('is returned with the headers of an event stream', async () => {
    const app = await harness.start()
    const { headers } = await app.stream(chatRequest('hello'))
    expect(Object.fromEntries(headers)).toMatchObject({
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store, no-transform',
      'x-accel-buffering': 'no',
      'x-parley-provider': 'gateway',
      'x-parley-attempts': '1',
    })
  })
})

describe("a stream's usage", () => {
  const usages = (events: readonly { usage?: unknown; choices: unknown[] }[]) =>
    events.filter(({ usage }) => usage)

  test.each([
    ['not requested', undefined, ''],
    ['disabled', { include_usage: false }, ''],
    ['not requested but always sent by the backend', undefined, '{{up:usage always}}'],
  ])('is omitted if it is %s', async (_how, stream_options, script) => {
    const app = await harness.start()
    const { events, isDone } = await app.stream(chatRequest(`hello${script}`, { stream_options }))
    expect(usages(events)).toEqual([])
    expect(events.every(({ choices }) => choices.length === 1)).toBe(true)
    expect(isDone).toBe(true)
  })

  test.each([
    ['a backend that reports it', 'a b c', 5],
    ['a backend that does not report it', 'a b c {{up:usage never}}', 0],
  ])('is in the last chunk, which has no choices (%s)', async (_who, text, completion_tokens) => {
    const app = await harness.start()
    const { events } = await app.stream(chatRequest(text, { stream_options: { include_usage: true } }))
    expect(usages(events)).toEqual([events.at(-1)])
    expect(events.at(-1)).toMatchObject({
      id: events[0].id,
      object: 'chat.completion.chunk',
      model: 'up-chat',
      choices: [],
      usage: { completion_tokens },
    })
  })
})

test('a client that stops reading applies backpressure to the backend', async () => {
  const app = await harness.start()
  const request = httpRequest(`${app.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${app.key}`, 'Content-Type': 'application/json' },
  })
  onTestFinished(() => void request.destroy())
  request.end(JSON.stringify({ ...chatRequest('{{up:no-done}}{{up:flood 15000000}}'), stream: true }))
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  const { id } = await harness.upstream.waitForRequest('flood')
  const stalled = await harness.upstream.waitForStall(id, 300)
  expect(stalled.endedBy).toBe(null)

  let text = ''
  for await (const read of response.setEncoding('utf8')) text += read
  expect((await harness.upstream.waitForEnd(id)).endedBy).toBe('answer')
  expect(text.length).toBeGreaterThan(15_000_000)
  expect(text.endsWith('data: [DONE]\n\n')).toBe(true)
})

test('consecutive streams share a backend connection, even if the backend ends a body some time after [DONE]', async () => {
  const app = await harness.start()
  for (const text of ['one', 'two', 'three']) {
    await app.stream(chatRequest(`${text} {{up:delay 5}}`))
    const { id } = await harness.upstream.waitForRequest(text)
    expect((await harness.upstream.waitForEnd(id)).endedBy).toBe('answer')
  }
  const connections = (await harness.listChats()).map(({ connection }) => connection)
  expect(new Set(connections).size).toBe(1)
})

describe('after [DONE]', () => {
  test('a stream ends even if the backend stays connected', async () => {
    const app = await harness.start()
    const { isDone } = await app.stream(chatRequest('hello {{up:hang-after 99}}'))
    expect(isDone).toBe(true)
  })

  test('a stream ignores further data from the backend', async () => {
    const app = await harness.start()
    const { isDone, events } = await app.stream(chatRequest('hello {{up:flood 15000000}}'))
    expect(isDone).toBe(true)
    expect(events).toHaveLength(5)
    const { id } = await harness.upstream.waitForRequest('flood')
    expect((await harness.upstream.waitForEnd(id)).endedBy).toBe('client')
  })
})
