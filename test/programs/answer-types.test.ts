/** Compiles responses about stored conversations against the types of OpenAI's official client. */
import { describe, expect, test, vi } from 'vitest'
import { ResponseEvent } from '../../src/conversations/response-schema.ts'
import { readEvents, startApp, type TestApp } from '../support/app.ts'
import { startChatHarness } from '../support/chat-harness.ts'
import { STORING } from '../support/conversations.ts'
import { createFakeClock } from '../support/fake-clock.ts'
import { type AnswerType, compileAnswers, type TypedAnswer } from '../support/openai-types.ts'

// The compiler is slow on a busy machine.
vi.setConfig({ testTimeout: 60_000 })

const harness = await startChatHarness()
const EVERYTHING = '{{up:reasoning Hm.}}{{up:text One two.}}{{up:tool f {"a":1}}}'
const TOOLS = [{ type: 'function', name: 'f', parameters: { type: 'object' } }]
const REFUSAL = [
  chunk({ role: 'assistant', content: '' }),
  chunk({ refusal: 'I must not ' }),
  chunk({ refusal: 'do that.' }),
  chunk({}, 'stop'),
]

function chunk(delta: object, finish_reason: string | null = null): object {
  const head = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'up-chat' }
  return { ...head, choices: [{ index: 0, delta, finish_reason }] }
}

async function start(env: Readonly<Record<string, string>> = {}) {
  const clock = createFakeClock()
  const app = await harness.start(env, { clock })
  const { agent_id } = await app.createAgent(STORING)
  const model = `agent/${agent_id}`
  const respond = async (input: unknown, more: object = {}) => {
    const { status, body, text } = await app.call('POST', '/v1/responses', {
      body: { model, input, ...more },
    })
    if (status !== 200) throw new Error(text)
    return { body, events: readEvents(text).events }
  }
  return { app, clock, model, respond }
}

type Started = Awaited<ReturnType<typeof start>>

const typed = (type: AnswerType, ...jsons: readonly unknown[]): TypedAnswer[] =>
  jsons.map((json) => ({ type, json }))

async function read(app: TestApp, path: string, method = 'GET', body?: object) {
  const answer = await app.call(method, path, { ...(body !== undefined && { body }) })
  if (answer.status !== 200) throw new Error(answer.text)
  return answer.body
}

/** Streams responses until every event type has been sent; returns the events. */
async function collectEvents({ respond }: Started): Promise<{ type: string }[]> {
  const all = [(await respond(EVERYTHING, { stream: true, tools: TOOLS })).events]
  await harness.answerWith(REFUSAL, 1)
  all.push((await respond('refuse', { stream: true })).events)
  all.push((await respond('{{up:error-frame 2}}', { stream: true })).events)
  all.push((await respond('{{up:status 400}}', { stream: true, background: true })).events)
  await harness.answerWith([chunk({ content: 'One' }), chunk({}, 'length')], 1)
  all.push((await respond('cut', { stream: true })).events)
  return all.flat()
}

/** Returns a response of every status. */
async function collectResponses({ app, respond }: Started): Promise<unknown[]> {
  const { body: whole } = await respond(EVERYTHING, { tools: TOOLS, metadata: { a: '1' } })
  const { body: next } = await respond('next', { previous_response_id: whole.id })
  await harness.answerWith(
    { choices: [{ message: { role: 'assistant', content: 'One' }, finish_reason: 'length' }] },
    1,
  )
  const { body: cut } = await respond('cut')
  const { body: queued } = await respond('{{up:hang-after 2}}', { background: true })
  const path = `/v1/responses/${queued.id}`
  const stream = await app.fetch(`${app.url}${path}?stream=true`, {
    headers: { Authorization: `Bearer ${app.key}` },
  })
  const reader = (stream.body as ReadableStream<Uint8Array>).getReader()
  for (let text = ''; !text.includes('output_text.delta'); )
    text += new TextDecoder().decode((await reader.read()).value)
  const running = await read(app, path)
  const cancelled = await read(app, `${path}/cancel`, 'POST')
  await reader.cancel()
  const { body: failing } = await respond('{{up:status 400}}', { background: true })
  await app.call('GET', `/v1/responses/${failing.id}?stream=true`)
  const failed = await read(app, `/v1/responses/${failing.id}`)
  return [whole, next, cut, queued, running, cancelled, failed]
}

const statuses = ['cancelled', 'completed', 'failed', 'in_progress', 'incomplete', 'queued']

describe('the types of the official client accept', () => {
  test('responses of every status, a deleted response, and the input items of a response', async () => {
    const started = await start()
    const responses = await collectResponses(started)
    const found = new Set((responses as { status: string }[]).map(({ status }) => status))
    expect([...found].sort()).toEqual(statuses)
    const { app, respond } = started
    const input = [
      { role: 'user', content: 'a' },
      { role: 'user', content: [{ type: 'input_text', text: 'b' }] },
      { type: 'message', role: 'assistant', content: 'c' },
      { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' },
      { type: 'function_call_output', call_id: 'c', output: 'x' },
    ]
    const { body } = await respond(input)
    const inputItems = await read(app, `/v1/responses/${body.id}/input_items`)
    expect(inputItems.data).toHaveLength(input.length)
    const deleted = await read(app, `/v1/responses/${body.id}`, 'DELETE')
    expect(
      await compileAnswers([
        ...typed('Response', ...responses),
        ...typed('InputItems', inputItems),
        ...typed('ResponseDeleted', deleted),
      ]),
    ).toBe('')
  })

  test('every event of a response, even after PARLEY_REPLAY_HOURS', async () => {
    const started = await start({ PARLEY_REPLAY_HOURS: '1' })
    const events = await collectEvents(started)
    const types = ResponseEvent.options.map(({ shape }) => shape.type.value)
    expect([...new Set(events.map(({ type }) => type))].sort()).toEqual([...types].sort())
    const { app, clock } = started
    const created = events.filter(({ type }) => type === 'response.created') as unknown as {
      response: { id: string }
    }[]
    clock.advance(2 * 3600)
    const short = []
    for (const { response } of created) {
      const { text } = await app.call('GET', `/v1/responses/${response.id}?stream=true`)
      short.push(...readEvents(text).events)
    }
    expect(short.length).toBeGreaterThan(created.length)
    expect(await compileAnswers(typed('ResponseEvent', ...events, ...short))).toBe('')
  })

  test('conversations, items of every type, and deleted conversations', async () => {
    const { app, respond } = await start()
    const items = [
      { type: 'message', role: 'user', content: 'Hello.' },
      { type: 'message', role: 'assistant', content: 'Hi.' },
      { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' },
      { type: 'function_call_output', call_id: 'c', output: 'x' },
      { type: 'reasoning', id: 'rs_1', summary: [] },
    ]
    const created = await read(app, '/v1/conversations', 'POST', { items, metadata: { a: '1' } })
    const path = `/v1/conversations/${created.id}`
    const added = await read(app, `${path}/items`, 'POST', { items })
    await respond(EVERYTHING, { conversation: created.id, tools: TOOLS })
    const updated = await read(app, path, 'POST', { metadata: { b: '2' } })
    const listed = await read(app, `${path}/items?limit=100`)
    expect(listed.data).toHaveLength(2 * items.length + 4)
    const item = await read(app, `${path}/items/${listed.data[0].id}`)
    const without = await read(app, `${path}/items/${listed.data[0].id}`, 'DELETE')
    const deleted = await read(app, path, 'DELETE')
    expect(
      await compileAnswers([
        ...typed('Conversation', created, updated, without),
        ...typed('ItemList', added, listed),
        ...typed('Item', item),
        ...typed('ConversationDeleted', deleted),
      ]),
    ).toBe('')
  })

  test('chat completions and the chunks of their streams', async () => {
    const app = await startApp()
    const { agent_id } = await app.createAgent(STORING)
    const answers: TypedAnswer[] = []
    for (const content of ['Hello there', '[[tool:f {"a":1}]]']) {
      const messages = [{ role: 'user', content }]
      const tools = [{ type: 'function', function: { name: 'f', parameters: { type: 'object' } } }]
      const request = { model: `agent/${agent_id}`, messages, tools }
      answers.push(...typed('ChatCompletion', await read(app, '/v1/chat/completions', 'POST', request)))
      const { events, headers } = await app.stream({ ...request, stream_options: { include_usage: true } })
      expect([headers.get('x-parley-stored'), events.length > 2]).toEqual(['true', true])
      answers.push(...typed('ChatChunk', ...events))
    }
    expect(await compileAnswers(answers)).toBe('')
  })
})

test('the compiler reports missing fields, unknown fields and fields of the wrong type', async () => {
  const { app, respond } = await start()
  const created = await read(app, '/v1/conversations', 'POST', {})
  const { id: _, ...missing } = created
  const added = await read(app, `/v1/conversations/${created.id}/items`, 'POST', {
    items: [{ role: 'user', content: 'a' }],
  })
  const { body: response } = await respond('a')
  const unknown = { unknown: 1 }
  const report = await compileAnswers([
    ...typed(
      'Conversation',
      created,
      missing,
      { ...created, ...unknown },
      { ...created, created_at: 'today' },
    ),
    ...typed('Response', response, { ...response, ...unknown }),
    ...typed('ResponseEvent', {
      ...{ type: 'response.completed', sequence_number: 1 },
      response: { ...response, ...unknown },
    }),
    ...typed('Item', added.data[0], { ...added.data[0], ...unknown }),
  ])
  expect(report.match(/answers\.ts\(\d+/g)).toHaveLength(6)
})
