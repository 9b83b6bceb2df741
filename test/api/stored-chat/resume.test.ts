/** Tests the event ids of stored chat streams, and how clients resume a stream after one of them. */
import { describe, expect, test } from 'vitest'
import { createTenant } from '../../support/agents.ts'
import { type Answer, readEvents } from '../../support/app.ts'
import { startChatHarness } from '../../support/chat-harness.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import {
  listTurns,
  openStream,
  resume,
  sendChat,
  splitStream,
  storingAgent,
} from '../../support/stored-chats.ts'

const harness = await startChatHarness()
const DONE = 'data: [DONE]\n\n'
const idOf = (capability: string, number: number) => `${capability}.${number}`

async function startStoring(env: Readonly<Record<string, string>> = {}, conversations: object = {}) {
  const clock = createFakeClock()
  const app = await harness.start(env, { clock })
  const { agent_key: key } = await app.createAgent(storingAgent(conversations))
  return { app, key, clock }
}

function codeOf({ status, body }: Answer): [status: number, code: string] {
  return [status, body.error.code]
}

describe('the events of a stored stream', () => {
  test('have ids that count from 0 without gaps, and [DONE] has none', async () => {
    const { app, key } = await startStoring()
    const { text, headers } = await sendChat(app, 'one two three', { key })
    const ids = splitStream(text).map(({ id }) => id)
    const [capability = ''] = ids[0]?.split('.') ?? []
    expect(capability).toMatch(/^[0-9A-Za-z]{22}$/)
    expect(ids).toEqual([...ids.slice(0, -1).map((_id, number) => idOf(capability, number)), undefined])
    expect(text.endsWith(DONE)).toBe(true)
    expect(headers.get('x-parley-stored')).toBe('true')
    expect(headers.get('x-parley-conversation')).toBeNull()
  })

  test('equal the events of an unstored stream, except for the ids', async () => {
    const { app, key } = await startStoring()
    const stored = await sendChat(app, 'one two', { key })
    const { text } = await sendChat(app, 'one two', { key, more: { store: false } })
    expect(stored.text.replaceAll(/^id: .*\n/gm, '')).toBe(text)
  })

  test('have ids that differ from those of any other stream', async () => {
    const { app, key } = await startStoring()
    const first = splitStream((await sendChat(app, 'hello', { key })).text)
    const second = splitStream((await sendChat(app, 'hello', { key })).text)
    const ids = [...first, ...second].flatMap(({ id }) => id ?? [])
    expect(new Set(ids).size).toBe(ids.length)
  })

  test('do not contain the id of the turn', async () => {
    const { app, key } = await startStoring()
    const { text, headers } = await sendChat(app, 'hello', { key })
    expect(text).not.toContain(headers.get('x-parley-turn')?.slice(5))
  })
})

describe('a request with Last-Event-ID', () => {
  test.each(['agent', 'parent'] as const)(
    'continues an ended stream byte for byte after every event (%s key)',
    async (kind) => {
      const { app, key } = await startStoring()
      const { text } = await sendChat(app, 'one two three', { key })
      const events = splitStream(text)
      for (const [index, { id }] of events.slice(0, -1).entries()) {
        const answer = await resume(app, kind === 'agent' ? key : app.key, id as string)
        expect(answer.status).toBe(200)
        expect(answer.text).toBe(
          events
            .slice(index + 1)
            .map((event) => event.text)
            .join(''),
        )
      }
      expect(await harness.listChats()).toHaveLength(1)
    },
  )

  test.each(['agent', 'parent'] as const)(
    'continues a running stream byte for byte after every event (%s key)',
    async (kind) => {
      const { app, key } = await startStoring()
      const running = await openStream(app, '{{up:chunks 12}}{{up:delay 20}}', { key })
      const [first] = splitStream(await running.readEvents(1))
      const [capability = ''] = first?.id?.split('.') ?? []
      const resumed = await Promise.all(
        Array.from({ length: 12 }, (_, number) =>
          resume(app, kind === 'agent' ? key : app.key, idOf(capability, number)),
        ),
      )
      const events = splitStream(await running.readAll())
      for (const [index, { text }] of resumed.entries())
        expect(text).toBe(
          events
            .slice(index + 1)
            .map((event) => event.text)
            .join(''),
        )
      expect(await harness.listChats()).toHaveLength(1)
    },
  )

  test('returns the same headers as the original request', async () => {
    const { app, key } = await startStoring()
    const first = await sendChat(app, 'hello', { key })
    const [{ id = '' } = {}] = splitStream(first.text)
    const { headers } = await resume(app, app.key, id)
    expect(headers.get('x-parley-turn')).toBe(first.headers.get('x-parley-turn'))
    expect(headers.get('x-parley-stored')).toBe('true')
    expect(headers.get('x-parley-conversation')).toMatch(/^conv_[0-9A-Za-z]{24}$/)
    expect(headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
  })

  test.each<[what: string, body: unknown]>([
    ['another request', { model: 'up-chat', messages: [{ role: 'user', content: 'new' }] }],
    ['an invalid request', { messages: 7 }],
    ['malformed JSON', '{"messages": '],
    ['no text', ''],
    ['no body', undefined],
  ])('ignores its body and does not start a turn (%s)', async (_what, body) => {
    const { app, key } = await startStoring()
    const events = splitStream((await sendChat(app, 'hello', { key })).text)
    const headers = { 'Last-Event-ID': events[0]?.id as string, 'Content-Type': 'application/json' }
    const answer = await app.call('POST', '/v1/chat/completions', { key, body, headers })
    expect([answer.status, answer.text]).toEqual([
      200,
      events
        .slice(1)
        .map(({ text }) => text)
        .join(''),
    ])
    expect(await harness.listChats()).toHaveLength(1)
  })

  test('returns only [DONE] after the last event', async () => {
    const { app, key } = await startStoring()
    const last = splitStream((await sendChat(app, 'hello', { key })).text).at(-2)
    expect((await resume(app, key, last?.id as string)).text).toBe(DONE)
  })

  test('requires a key', async () => {
    const { app } = await startStoring()
    const headers = { 'Last-Event-ID': idOf('a'.repeat(22), 0) }
    const answer = await app.call('POST', '/v1/chat/completions', { key: null, body: {}, headers })
    expect(answer.status).toBe(401)
  })

  test('counts toward the request limit', async () => {
    const { app, key } = await startStoring({ PARLEY_RATE_LIMIT_AGENT: '2' })
    const [{ id = '' } = {}] = splitStream((await sendChat(app, 'hello', { key })).text)
    const statuses = [await resume(app, key, id), await resume(app, key, id)].map(({ status }) => status)
    expect(statuses).toEqual([200, 429])
  })

  test.each([
    '',
    '7',
    'abc.1',
    `${'a'.repeat(22)}`,
    `${'a'.repeat(22)}.`,
    `${'a'.repeat(22)}.-1`,
    `${'a'.repeat(22)}.01`,
    `${'a'.repeat(22)}.1.2`,
    `${'a'.repeat(22)}.9999999999`,
    `${'a'.repeat(21)}!.1`,
  ])('returns 400 if the id is "%s"', async (id) => {
    const { app, key } = await startStoring()
    const answer = await resume(app, key, id)
    expect(codeOf(answer)).toEqual([400, 'invalid_value'])
    expect(answer.body.error.message).toMatch(/^Last-Event-ID: /)
    expect(await harness.listChats()).toHaveLength(0)
  })

  test('returns 404 stream_not_found for a stream that does not exist', async () => {
    const { app, key } = await startStoring()
    const unknown = idOf('a'.repeat(22), 0)
    expect(codeOf(await resume(app, key, unknown))).toEqual([404, 'stream_not_found'])
    await sendChat(app, 'hello', { key })
    expect(codeOf(await resume(app, key, unknown))).toEqual([404, 'stream_not_found'])
  })

  test("returns 404 stream_not_found for another agent's or another tenant's stream", async () => {
    const { app, key } = await startStoring()
    const [{ id = '' } = {}] = splitStream((await sendChat(app, 'hello', { key })).text)
    const { agent_key: otherAgent } = await app.createAgent(storingAgent())
    const otherTenant = await createTenant(app)
    const { agent_key: theirAgent } = await app.createAgent(storingAgent(), otherTenant)
    for (const other of [otherAgent, otherTenant, theirAgent])
      expect(codeOf(await resume(app, other, id))).toEqual([404, 'stream_not_found'])
  })

  test('returns 409 event_not_kept for an event id after the last stored event', async () => {
    const { app, key } = await startStoring()
    const ids = splitStream((await sendChat(app, 'hello', { key })).text).flatMap(({ id }) => id ?? [])
    const [capability = ''] = ids[0]?.split('.') ?? []
    const answer = await resume(app, key, idOf(capability, ids.length))
    expect(codeOf(answer)).toEqual([409, 'event_not_kept'])
    expect(answer.body.error.message).toContain(`the last stored event is ${ids.length - 1}`)
    expect(answer.body.error.last_event_id).toBe(ids.at(-1))
  })

  test('returns 409 event_not_kept without last_event_id if no event of the stream was stored', async () => {
    const { app, key } = await startStoring()
    const sending = sendChat(app, '{{up:hang}}', { key })
    await expect.poll(async () => (await listTurns(app)).length).toBe(1)
    const [{ id: turnId = '' } = {}] = await listTurns(app)
    await app.call('POST', `/v1/turns/${turnId}/cancel`)
    await sending
    const id = idOf(app.service.deps.conversations.capabilityOf(turnId), 0)
    const answer = await resume(app, key, id)
    expect(codeOf(answer)).toEqual([409, 'event_not_kept'])
    expect(answer.body.error.message).toBe(
      'Last-Event-ID: this event was not stored; no event of the turn was stored. Read the turn again.',
    )
    expect(answer.body.error).not.toHaveProperty('last_event_id')
  })

  test('returns 404 stream_not_found if the stream ended more than PARLEY_REPLAY_HOURS ago', async () => {
    const { app, key, clock } = await startStoring({ PARLEY_REPLAY_HOURS: '2' })
    const [{ id = '' } = {}] = splitStream((await sendChat(app, 'hello', { key })).text)
    clock.advance(2 * 3600)
    expect((await resume(app, key, id)).status).toBe(200)
    clock.advance(1)
    expect(codeOf(await resume(app, key, id))).toEqual([404, 'stream_not_found'])
  })

  test('continues a stream of an agent that no longer stores chats', async () => {
    const { app, key } = await startStoring()
    const { body } = await app.call('GET', '/v1/agents/me', { key })
    const events = splitStream((await sendChat(app, 'hello', { key })).text)
    await app.call('PUT', `/v1/agents/${body.id ?? body.agent_id}`, {
      body: { yaml: 'name: A\ninstructions: B\n' },
    })
    const { text } = await resume(app, key, events[0]?.id as string)
    expect(text).toBe(
      events
        .slice(1)
        .map((event) => event.text)
        .join(''),
    )
  })
})

describe('a stored stream whose model fails', () => {
  test('before the first event returns the error without an id', async () => {
    const { app, key } = await startStoring({ PARLEY_BACKEND_ATTEMPTS: '1' })
    const answer = await sendChat(app, '{{up:status 500}}', { key })
    expect(codeOf(answer)).toEqual([502, 'backend_error'])
    expect(answer.text).not.toContain('id:')
  })

  test.each([
    ['the connection is reset', '{{up:reset-after 3}}', 'stream_interrupted'],
    ['the model stalls', '{{up:hang-after 3}}', 'backend_timeout'],
  ])('after the first event ends with an error event that has an id, if %s', async (_what, script, code) => {
    const { app, key } = await startStoring({ PARLEY_BACKEND_IDLE_SECONDS: '0.3' })
    const { text, status } = await sendChat(app, `a b c {{up:usage never}}${script}`, { key })
    const { events, isDone } = readEvents(text)
    expect([status, isDone, events.at(-1).error.code]).toEqual([200, false, code])
    const sent = splitStream(text)
    for (const [index, { id }] of sent.slice(0, -1).entries())
      expect((await resume(app, key, id as string)).text).toBe(
        sent
          .slice(index + 1)
          .map((event) => event.text)
          .join(''),
      )
    expect(await harness.listChats()).toHaveLength(1)
  })
})

test('resumed streams count toward the limit on open streams', async () => {
  const { app, key } = await startStoring({ PARLEY_MAX_STREAMS_ADDRESS: '2' })
  const stream = await openStream(app, '{{up:chunks 5}}{{up:hang-after 2}}', { key })
  const [first] = splitStream(await stream.readEvents(1))
  const headers = { 'Last-Event-ID': first?.id as string }
  const second = await openStream(app, '', { key, headers })
  expect((await second.readEvents(1)).length).toBeGreaterThan(0)
  expect(codeOf(await resume(app, key, first?.id as string))).toEqual([429, 'rate_limit_exceeded'])
  second.disconnect()
  stream.disconnect()
})
