/** Tests that people can answer visitors' conversations, and that no model answers during that time. */
import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { listAuditRows } from '../../support/audit.ts'
import { startChatHarness } from '../../support/chat-harness.ts'
import {
  answer,
  change,
  isMode,
  modesOf,
  readMessages,
  startConversation,
  startVisit,
  textsOf,
} from '../../support/handover.ts'
import { scrape } from '../../support/scrape.ts'
import { listTurns } from '../../support/stored-chats.ts'
import { beginSession, followUntil, isEnd, say, sayAndWait } from '../../support/visitors.ts'

const harness = await startChatHarness()

interface ListedItem {
  readonly parley: { readonly author: string; readonly mode?: string }
  readonly content: readonly { readonly text: string }[]
}
const START = '0.0.e'
const REASON = 'wants a person'

const rejection = (mode: string, assignee: string | null = null) => ({
  data: { httpStatus: 409, code: 'wrong_mode', mode, assignee },
})

describe('a conversation that is handed over', () => {
  test('changes from the model to waiting, to a person and back, and the visitor receives each message exactly once', async () => {
    const { app, id, one, write } = await startConversation(harness)
    const requested = await one.visitor.requestPerson.mutate({ conversation: id, reason: REASON })
    expect(requested.conversation.mode).toBe('waiting')
    expect(await write('Is a person there?')).toMatchObject({ turn: null, conversation: { mode: 'waiting' } })
    const taken = await change(app, id, 'takeover', { name: 'Ana' })
    expect(taken.body).toMatchObject({
      mode: 'person',
      assignee: 'Ana',
      parley: { mode: 'person', assignee: 'Ana' },
    })
    const said = await answer(app, id, 'Hello, this is Ana.', { name: 'Ana' })
    expect(said.body).toMatchObject({
      ...{ mode: 'person', turn: null },
      item: { role: 'assistant', parley: { author: 'person', name: 'Ana' } },
    })
    await write('Thanks.')
    expect((await change(app, id, 'handback')).body).toMatchObject({ mode: 'model', assignee: null })
    const events = await followUntil(one, { conversation: id, cursor: START }, isMode('model'))
    expect(modesOf(events)).toEqual(['waiting', 'person', 'model'])
    expect(textsOf(events).slice(2)).toEqual(['Is a person there?', 'Hello, this is Ana.', 'Thanks.'])
    expect(new Set(events.map((event) => event.id)).size).toBe(events.length)
    expect(await harness.listChats()).toHaveLength(1)
  })

  test('informs the model afterwards of what people wrote and when the handover began and ended', async () => {
    const { app, id, one, write } = await startConversation(harness)
    await one.visitor.requestPerson.mutate({ conversation: id })
    await write('Where is my order?')
    await answer(app, id, 'It arrives today.', { name: 'Ana' })
    await change(app, id, 'handback')
    await sayAndWait(one, 'And tomorrow?', { conversation: id })
    const messages = await readMessages(harness)
    expect(messages.slice(3)).toEqual([
      { role: 'user', content: 'Where is my order?' },
      { role: 'assistant', content: '[Written by Ana, a person, not by the model]\nIt arrives today.' },
      {
        role: 'user',
        content: expect.stringMatching(
          /^\[Sent by the service, not by the user\] The conversation was handed over at \d{4}-.*Z and handed back at /,
        ),
      },
      { role: 'user', content: 'And tomorrow?' },
    ])
  })

  test('shows its mode changes, with their reasons, only to its owner', async () => {
    const { app, id, one } = await startConversation(harness)
    await one.visitor.requestPerson.mutate({ conversation: id, reason: REASON })
    await change(app, id, 'takeover', { name: 'Ana' })
    await change(app, id, 'handback')
    const { body } = await app.call('GET', `/v1/conversations/${id}/items?order=asc`)
    const changes = (body.data as ListedItem[])
      .slice(2)
      .map(({ parley, content }) => [parley.author, parley.mode, content[0]?.text])
    expect(changes).toEqual([
      ['service', 'waiting', expect.stringContaining(`Reason: ${REASON}`)],
      ['service', 'person', expect.stringContaining('A person took the conversation over at')],
      ['service', 'model', expect.stringContaining('handed back at')],
    ])
    const { items } = await one.visitor.open.query({ conversation: id })
    expect(items.map(({ author }) => author)).toEqual(['visitor', 'model'])
  })

  test("hides people's names from visitors if the agent does not show them", async () => {
    const { app, key, id, one } = await startConversation(harness, { showName: false })
    await answer(app, id, 'Hello.', { name: 'Ana' })
    const events = await followUntil(
      one,
      { conversation: id, cursor: START },
      (_, all) => textsOf(all).length === 3,
    )
    const { items } = await one.visitor.open.query({ conversation: id })
    const headers = { 'X-Parley-Visitor': one.token }
    const { body } = await app.call('GET', `/v1/conversations/${id}/items`, { key, headers })
    expect(body.data[0].parley).toMatchObject({ author: 'person', name: null })
    expect(items.at(-1)).toMatchObject({ author: 'person', author_name: null, text: 'Hello.' })
    expect(JSON.stringify([events, items, body])).not.toContain('Ana')
    const { body: owned } = await app.call('GET', `/v1/conversations/${id}/items`)
    expect(owned.data[0].parley).toMatchObject({ author: 'person', name: 'Ana' })
  })

  test('rejects requests to the model', async () => {
    const { app, agent, id, one, write } = await startConversation(harness)
    const first = (await one.visitor.open.query({ conversation: id })).turn?.id as string
    await change(app, id, 'takeover', { name: 'Ana' })
    expect((await write('Hello?')).turn).toBeNull()
    await expect(one.visitor.continue.mutate({ turn: first })).rejects.toMatchObject({
      data: { httpStatus: 400 },
    })
    const { body: created } = await app.call('POST', '/v1/conversations', { body: {} })
    const model = `agent/${agent}`
    const start = await app.call('POST', '/v1/responses', {
      body: { model, conversation: created.id, input: 'Hello.' },
    })
    await change(app, created.id, 'takeover', { name: 'Ana' })
    const { length } = await harness.listChats()
    const requests = [
      ['/v1/responses', { model, conversation: created.id, input: 'Hello?' }, {}],
      ['/v1/responses', { model, conversation: created.id, input: 'Hello?', store: false }, {}],
      ['/v1/responses', { model, previous_response_id: start.body.id, input: 'Hello?' }, {}],
      ['/v1/responses', { model, conversation: created.id, input: 'Hello?', background: true }, {}],
      [
        '/v1/chat/completions',
        { model, messages: [{ role: 'user', content: 'Hello?' }] },
        { 'X-Parley-Conversation': created.id },
      ],
    ] as const
    for (const [path, body, headers] of requests) {
      const { status, body: failed } = await app.call('POST', path, { body, headers })
      expect([status, failed.error]).toMatchObject([
        409,
        { code: 'wrong_mode', mode: 'person', assignee: 'Ana' },
      ])
    }
    expect(await harness.listChats()).toHaveLength(length)
  })
})

describe('a takeover in the middle of an answer', () => {
  test("cancels the answer, keeps its text before the person's messages, and stops the model", async () => {
    const { app, one } = await startVisit(harness)
    const { conversation, turn, cursor } = await say(one, 'Explain. {{up:hang-after 4}}')
    const id = conversation.id
    const reading = followUntil(one, { conversation: id, cursor }, (_, all) => textsOf(all).length === 2)
    await followUntil(one, { conversation: id, cursor }, (_, { length }) => length === 3)
    const { status } = await answer(app, id, 'I take over.')
    expect(status).toBe(200)
    const [chat] = await harness.listChats()
    expect(await harness.upstream.waitForEnd(chat?.id ?? -1)).toMatchObject({ endedBy: 'client' })
    const events = await reading
    const [partial, message] = events.flatMap((event) =>
      event.event === 'conversation.item' ? [event.data.item] : [],
    )
    const streamed = events.flatMap((event) =>
      event.event === 'conversation.turn.delta' ? [event.data.text] : [],
    )
    expect(partial).toMatchObject({
      author: 'model',
      status: 'incomplete',
      text: streamed.join(''),
      turn_id: turn.id,
    })
    expect(streamed.length).toBeGreaterThan(2)
    expect(message).toMatchObject({ author: 'person', text: 'I take over.' })
    expect(modesOf(events)).toEqual(['person'])
    expect(events.find(isEnd)?.data).toMatchObject({ turn: { status: 'cancelled' } })
    const [row] = await listTurns(app)
    expect(row).toMatchObject({ status: 'cancelled', reason: 'taken_over', error_code: null })
    const { body: details } = await app.call('GET', `/v1/turns/${turn.id}`)
    expect(details).toMatchObject({ reason: 'taken_over', diagnostics: { stopped: 'taken_over' } })
    const { body: found } = await app.call('GET', '/v1/conversations?reason=taken_over')
    expect(found.data).toMatchObject([{ id }])
  })

  test('succeeds for only one of three people', async () => {
    const { app, one } = await startVisit(harness)
    const { conversation, cursor } = await say(one, 'Explain. {{up:hang-after 4}}')
    await followUntil(one, { conversation: conversation.id, cursor }, (_, { length }) => length === 2)
    const names = ['Ana', 'Bo', 'Cleo']
    const answers = await Promise.all(names.map((name) => change(app, conversation.id, 'takeover', { name })))
    const winners = names.filter((_, index) => answers[index]?.status === 200)
    expect(winners).toHaveLength(1)
    for (const { status, body } of answers.filter((one) => one.status !== 200))
      expect([status, body.error]).toMatchObject([
        409,
        { code: 'wrong_mode', mode: 'person', assignee: winners[0] },
      ])
  })
})

describe('a message to a person', () => {
  test('is stored once for each client id, and a different text with the same id is rejected with 422', async () => {
    const { app, id, one, write } = await startConversation(harness)
    await one.visitor.requestPerson.mutate({ conversation: id })
    const client_id = randomUUID()
    const sent = await Promise.all([1, 2, 3].map(() => write('Once.', client_id)))
    expect(new Set(sent.map(({ item }) => item.id)).size).toBe(1)
    await expect(write('Twice.', client_id)).rejects.toMatchObject({
      data: { httpStatus: 422, code: 'idempotency_key_reused', param: 'client_id' },
    })
    const own = randomUUID()
    const answers = await Promise.all(
      [1, 2, 3].map(() => answer(app, id, 'Hello.', { client_id: own, name: 'Ana' })),
    )
    expect(answers.map(({ status, body }) => [status, body.item.id])).toEqual(
      Array(3).fill([200, answers[0]?.body.item.id]),
    )
    expect((await answer(app, id, 'Other.', { client_id: own, name: 'Ana' })).status).toBe(422)
    await change(app, id, 'handback')
    expect((await write('Once.', client_id)).item.id).toBe(sent[0]?.item.id)
    expect((await answer(app, id, 'Hello.', { client_id: own })).body.item.id).toBe(answers[0]?.body.item.id)
    expect((await one.visitor.open.query({ conversation: id })).items).toHaveLength(4)
  })

  test.each([
    ['a text of 8,001 characters', { text: 'x'.repeat(8_001) }, 'text'],
    ['a blank text', { text: ' ' }, 'text'],
    ['a client id that is not a UUID', { client_id: 'one' }, 'client_id'],
    ['a name of 81 characters', { name: 'x'.repeat(81) }, 'name'],
    ['a text that contains U+0000', { text: 'a\0b' }, 'text'],
    ['a text that contains half of a surrogate pair', { text: '\ud800' }, 'text'],
    ['a name that contains a line break', { name: 'Ana\nBo' }, 'name'],
  ])('is rejected with 400 if it has %s', async (_, more, param) => {
    const { app, id } = await startConversation(harness)
    const { status, body } = await answer(app, id, 'Hello.', more)
    expect([status, body.error.param]).toEqual([400, param])
  })

  test('from a visitor is rejected if it exceeds 8,000 characters, and over REST also if the mode is `model`', async () => {
    const { app, key, id, one, write } = await startConversation(harness)
    const headers = { 'X-Parley-Visitor': one.token }
    const message = { text: 'Hello.', client_id: randomUUID() }
    const early = await change(app, id, 'messages', message, { key, headers })
    expect([early.status, early.body.error]).toMatchObject([409, { code: 'wrong_mode', mode: 'model' }])
    const requested = await change(app, id, 'handover', {}, { key, headers })
    expect(requested.body).toMatchObject({ id, mode: 'waiting', assignee: null })
    const sent = await change(app, id, 'messages', message, { key, headers })
    expect(sent.body).toMatchObject({ turn: null, mode: 'waiting', item: { role: 'user' } })
    await expect(write('x'.repeat(8_001))).rejects.toMatchObject({ data: { httpStatus: 400, param: 'text' } })
    expect((await change(app, id, 'takeover', {}, { key, headers })).status).toBe(404)
    expect((await change(app, id, 'handback', {}, { key, headers })).status).toBe(404)
    expect((await change(app, id, 'messages', message, { key })).status).toBe(403)
  })
})

describe('a mode change', () => {
  test('is rejected if the current mode does not allow it, with an error that names the mode and, except to visitors, the person', async () => {
    const { app, id, one } = await startConversation(harness)
    const refused = (mode: string, assignee: string | null) => ({
      status: 409,
      body: { error: { code: 'wrong_mode', mode, assignee } },
    })
    expect(await change(app, id, 'handback')).toMatchObject(refused('model', null))
    await change(app, id, 'takeover', { name: 'Ana' })
    for (const what of ['takeover', 'handover'] as const)
      expect(await change(app, id, what)).toMatchObject(refused('person', 'Ana'))
    expect(await answer(app, id, 'Me, too.', { name: 'Bo' })).toMatchObject(refused('person', 'Ana'))
    await expect(one.visitor.requestPerson.mutate({ conversation: id })).rejects.toMatchObject(
      rejection('person'),
    )
    const { body } = await app.call('GET', `/v1/conversations/${id}`)
    expect(body.parley).toMatchObject({ mode: 'person', assignee: 'Ana' })
    const items = await app.call('GET', `/v1/conversations/${id}/items?limit=100`)
    expect(items.text).not.toContain('Me, too.')
  })

  test("is rejected with 404 for another visitor's conversation and for an unknown conversation", async () => {
    const { app, key, id } = await startConversation(harness)
    const other = await beginSession(app, key)
    await expect(other.visitor.requestPerson.mutate({ conversation: id })).rejects.toMatchObject({
      data: { httpStatus: 404 },
    })
    expect((await change(app, 'conv_000000000000000000000000', 'takeover')).status).toBe(404)
  })
})

test('the metrics count waiting conversations, and the audit log records takeovers and handbacks', async () => {
  const { app, agent, id, one } = await startConversation(harness)
  await one.visitor.requestPerson.mutate({ conversation: id })
  expect((await scrape(app.url)).sum('parley_conversations_waiting')).toBe(1)
  await answer(app, id, 'Hello.')
  await change(app, id, 'handback')
  expect((await change(app, id, 'handback')).status).toBe(409)
  const rows = (await listAuditRows(app)).filter(({ target_kind: kind }) => kind === 'conversation')
  expect(rows).toMatchObject(
    ['conversation.take_over', 'conversation.hand_back'].map((action) => ({
      ...{ action, target_id: id, actor_kind: 'parent_key', details: `{"agent_id":"${agent}"}` },
    })),
  )
})

test('a message with if_mode does not take the conversation over', async () => {
  const { app, id } = await startConversation(harness)
  const rejected = await answer(app, id, 'Hello.', { if_mode: 'person' })
  expect([rejected.status, rejected.body.error]).toMatchObject([409, { code: 'wrong_mode', mode: 'model' }])
  await change(app, id, 'takeover')
  const repeated = { if_mode: 'person', client_id: randomUUID() }
  expect((await answer(app, id, 'Hello.', repeated)).status).toBe(200)
  await change(app, id, 'handback')
  // The message was stored before.
  expect((await answer(app, id, 'Hello.', repeated)).status).toBe(200)
  expect((await answer(app, id, 'Hello again.', { if_mode: 'person' })).status).toBe(409)
  expect((await app.call('GET', `/v1/conversations/${id}`)).body.parley.mode).toBe('model')
})
