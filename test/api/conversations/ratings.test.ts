/** Tests the ratings of turns by visitors, console users and clients with keys. */
import { describe, expect, test } from 'vitest'
import { startChatHarness } from '../../support/chat-harness.ts'
import { asUser, behindProxy, revealKey } from '../../support/console.ts'
import { STORING, storeChat } from '../../support/conversations.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import { callProcedure } from '../../support/rpc.ts'
import { beginSession, say, type TestVisitor } from '../../support/visitors.ts'

const harness = await startChatHarness()
const DAY = 86_400

async function start(yaml = STORING) {
  const clock = createFakeClock()
  const app = await harness.start({}, { clock })
  const { agent_id: id, agent_key: key } = await app.createAgent(yaml)
  const storeTurn = async (text = 'Hello') => {
    const conversation = await storeChat(app, id, text)
    const { body } = await app.call('GET', `/v1/conversations/${conversation}/turns`)
    return { conversation, turn: body.data[0].id as string }
  }
  const rate = (turn: string, body: object, options = {}) =>
    app.call('PUT', `/v1/turns/${turn}/rating`, { body, ...options })
  const readSums = async (conversation: string) => {
    const { up, down } = (await app.call('GET', `/v1/conversations/${conversation}`)).body.parley
    return { up, down }
  }
  const find = async (query: string) =>
    (await app.call('GET', `/v1/conversations?${query}`)).body.data.map((one: { id: string }) => one.id)
  return { app, clock, id, key, storeTurn, rate, readSums, find }
}

/** Sends a visitor's message and waits for the end of its turn. */
async function converse(visitor: TestVisitor, text: string) {
  const { conversation, turn } = await say(visitor, text)
  const read = async () => (await visitor.visitor.open.query({ conversation: conversation.id })).turn?.status
  await expect.poll(read).toBe('completed')
  return { conversation: conversation.id, turn: turn.id }
}

describe('a rating with a parent key', () => {
  test("replaces the earlier one, is included in the conversation's totals, and can be deleted", async () => {
    const { app, clock, storeTurn, rate, readSums } = await start()
    const { conversation, turn } = await storeTurn()
    expect((await rate(turn, { value: 'up' })).body).toMatchObject({
      source: 'api',
      value: 'up',
      reason: null,
    })
    expect(await readSums(conversation)).toEqual({ up: 1, down: 0 })
    clock.advance(60)
    const changed = await rate(turn, { value: 'down', reason: 'incorrect', comment: 'Wrong year.' })
    const { created_at: createdAt } = changed.body
    expect(changed.body).toMatchObject({
      ...{ value: 'down', reason: 'incorrect', comment: 'Wrong year.', updated_at: createdAt + 60 },
    })
    expect(await readSums(conversation)).toEqual({ up: 0, down: 1 })
    expect((await app.call('GET', `/v1/turns/${turn}`)).body.ratings).toEqual([changed.body])
    const { body: turns } = await app.call('GET', `/v1/conversations/${conversation}/turns`)
    expect(turns.data[0].ratings).toEqual([changed.body])
    expect((await app.call('DELETE', `/v1/turns/${turn}/rating`)).body.deleted).toBe(true)
    expect(await readSums(conversation)).toEqual({ up: 0, down: 0 })
    expect((await app.call('DELETE', `/v1/turns/${turn}/rating`)).status).toBe(404)
  })

  test('is rejected if the value or the reason is unknown, or if the comment exceeds 1,000 characters', async () => {
    const { storeTurn, rate } = await start()
    const { turn } = await storeTurn()
    for (const body of [
      {},
      { value: 'good' },
      { value: 'up', reason: 'odd' },
      { value: 'up', comment: 'x'.repeat(1_001) },
    ])
      expect((await rate(turn, body)).status, JSON.stringify(body)).toBe(400)
    expect((await rate('turn_x', { value: 'up' })).status).toBe(404)
    expect((await rate(turn, { value: 'up', comment: 'x'.repeat(1_000) })).status).toBe(200)
  })

  test.each([
    ['the character U+0000', '\0'],
    ['half of a surrogate pair', 'Wrong \ud800 year.'],
  ])('is rejected if the comment contains %s', async (_, comment) => {
    const { app, key, storeTurn, rate, readSums } = await start()
    const { conversation, turn } = await storeTurn()
    const { status, body } = await rate(turn, { value: 'down', reason: 'other', comment })
    expect([status, body.error.param, body.error.message]).toEqual([
      400,
      'comment',
      'comment: must be well-formed Unicode without the character U+0000',
    ])
    expect(await readSums(conversation)).toEqual({ up: 0, down: 0 })
    const one = await beginSession(app, key)
    const own = await converse(one, 'Hello')
    await expect(one.visitor.rate.mutate({ turn: own.turn, value: 'up', comment })).rejects.toMatchObject({
      data: { httpStatus: 400, param: 'comment' },
    })
    expect((await rate(turn, { value: 'down', comment: 'Two\n\tlines.' })).body.comment).toBe('Two\n\tlines.')
  })

  test('can be set with the id of a response', async () => {
    const { app, id, rate, readSums } = await start()
    const { body: response } = await app.call('POST', '/v1/responses', {
      body: { model: `agent/${id}`, input: 'Hello' },
    })
    expect((await rate(response.id, { value: 'up' })).status).toBe(200)
    const { body } = await app.call('GET', '/v1/conversations')
    expect(await readSums(body.data[0].id)).toEqual({ up: 1, down: 0 })
    await app.call('DELETE', `/v1/responses/${response.id}`)
    expect(await readSums(body.data[0].id)).toEqual({ up: 0, down: 0 })
  })
})

test('a turn can have one rating each from the owner, the visitor and the API', async () => {
  const app = await harness.start(behindProxy)
  const parentKey = await revealKey(app, 'ada@example.org')
  const { agent_key: key } = await app.createAgent(STORING, parentKey)
  const visitor = await beginSession(app, key)
  const { conversation, turn } = await converse(visitor, 'Hello')
  const owner = { turn_id: turn, value: 'down', reason: 'unsafe' }
  const byOwner = await callProcedure(app, 'conversations.rate', owner, asUser('ada@example.org'))
  expect(byOwner.status).toBe(200)
  await visitor.visitor.rate.mutate({ turn, value: 'up', comment: 'Thanks' })
  const rated = await app.call('PUT', `/v1/turns/${turn}/rating`, { key: parentKey, body: { value: 'up' } })
  expect(rated.status).toBe(200)
  const { body } = await app.call('GET', `/v1/turns/${turn}`, { key: parentKey })
  const sources = body.ratings.map(({ source }: { source: string }) => source)
  expect(sources.sort()).toEqual(['api', 'owner', 'visitor'])
  const { body: found } = await app.call('GET', `/v1/conversations/${conversation}`, { key: parentKey })
  expect(found.parley).toMatchObject({ up: 2, down: 1 })
})

describe('a visitor', () => {
  test('can rate only answers in their own conversations, and can withdraw the rating', async () => {
    const { app, key, readSums } = await start()
    const one = await beginSession(app, key)
    const other = await beginSession(app, key)
    const { conversation, turn } = await converse(one, 'Hello')
    const { rating } = await one.visitor.rate.mutate({ turn, value: 'down', reason: 'too_slow' })
    expect(rating).toMatchObject({ source: 'visitor', value: 'down', reason: 'too_slow', comment: null })
    await expect(other.visitor.rate.mutate({ turn, value: 'up' })).rejects.toMatchObject({
      data: { httpStatus: 404 },
    })
    expect(await readSums(conversation)).toEqual({ up: 0, down: 1 })
    expect(await one.visitor.rate.mutate({ turn, value: null })).toEqual({ rating: null })
    expect(await readSums(conversation)).toEqual({ up: 0, down: 0 })
  })

  test('can rate over REST with their token', async () => {
    const { app, key, rate } = await start()
    const one = await beginSession(app, key)
    const { turn } = await converse(one, 'Hello')
    const headers = { 'X-Parley-Visitor': one.token }
    expect((await rate(turn, { value: 'up' }, { key, headers })).body.source).toBe('visitor')
    expect((await app.call('DELETE', `/v1/turns/${turn}/rating`, { key, headers })).status).toBe(200)
    expect((await rate(turn, { value: 'up' }, { key })).body.error.code).toBe('visitor_required')
  })

  test('cannot rate if the agent does not allow it', async () => {
    const { app, key } = await start(
      'name: A\ninstructions: B.\nconversations: { keep: 30d, visitor: { rate: false } }\n',
    )
    const one = await beginSession(app, key)
    const { turn } = await converse(one, 'Hello')
    await expect(one.visitor.rate.mutate({ turn, value: 'up' })).rejects.toMatchObject({
      data: { httpStatus: 403 },
    })
    const { body } = await app.call('GET', '/v1/agents/me', { key })
    expect(body.conversations.rate).toBe(false)
  })

  test('can rate a response by its id without a token for 24 hours after its creation', async () => {
    const { app, clock, key, rate } = await start()
    const { body: response } = await app.call('POST', '/v1/responses', { key, body: { input: 'Hello' } })
    expect((await rate(response.id, { value: 'up' }, { key })).body.source).toBe('visitor')
    const other = await app.createAgent(STORING)
    expect((await rate(response.id, { value: 'up' }, { key: other.agent_key })).status).toBe(404)
    clock.advance(DAY + 1)
    expect((await rate(response.id, { value: 'up' }, { key })).status).toBe(404)
  })
})

test('conversations can be filtered by rating and reason', async () => {
  const { storeTurn, rate, find } = await start()
  const [one, two, three] = [await storeTurn(), await storeTurn(), await storeTurn()]
  await rate(one.turn, { value: 'up', reason: 'other' })
  await rate(two.turn, { value: 'down', reason: 'incorrect' })
  expect(await find('rating=up')).toEqual([one.conversation])
  expect(await find('rating=down')).toEqual([two.conversation])
  expect(await find('reason=incorrect')).toEqual([two.conversation])
  expect(await find('rating=up&reason=incorrect')).toEqual([])
  expect(await find('')).toContain(three.conversation)
})

test('ratings can be counted by day, agent or version', async () => {
  const { app, clock, id, storeTurn, rate } = await start()
  const first = await storeTurn()
  const second = await storeTurn()
  const startDay = new Date(clock.now()).toISOString().slice(0, 10)
  await rate(first.turn, { value: 'up' })
  await rate(second.turn, { value: 'down', reason: 'incorrect' })
  await app.call('PUT', `/v1/agents/${id}`, { body: { yaml: STORING.replace('Keep.', 'Keep it.') } })
  clock.advance(DAY)
  const third = await storeTurn()
  await rate(third.turn, { value: 'down', reason: 'incorrect' })
  const nextDay = new Date(clock.now()).toISOString().slice(0, 10)
  const read = async (query: string) => (await app.call('GET', `/v1/conversations/ratings?${query}`)).body
  const reasons = { incorrect: 1 }
  expect(await read('')).toMatchObject({
    group_by: 'day',
    to: nextDay,
    data: [
      { day: startDay, up: 1, down: 1, reasons },
      { day: nextDay, up: 0, down: 1, reasons },
    ],
  })
  expect((await read('group_by=agent')).data).toEqual([
    { agent_id: id, up: 1, down: 2, reasons: { incorrect: 2 } },
  ])
  expect((await read(`group_by=version&agent=${id}`)).data).toEqual([
    { agent_id: id, agent_version: 1, up: 1, down: 1, reasons },
    { agent_id: id, agent_version: 2, up: 0, down: 1, reasons },
  ])
  expect((await read(`from=${nextDay}&to=${nextDay}&group_by=agent`)).data).toMatchObject([
    { up: 0, down: 1 },
  ])
  expect((await read('agent=agent-x')).data).toEqual([])
  const invalid = await app.call('GET', `/v1/conversations/ratings?from=${nextDay}&to=${startDay}`)
  expect(invalid.status).toBe(400)
})

test('a running turn cannot be rated', async () => {
  const { app, id } = await start()
  const opened = await app.call('POST', '/v1/responses', {
    body: { model: `agent/${id}`, input: '{{up:hang}}', background: true },
  })
  const answer = await app.call('PUT', `/v1/turns/${opened.body.id}/rating`, { body: { value: 'up' } })
  expect(answer).toMatchObject({ status: 409, body: { error: { code: 'turn_running' } } })
  await app.call('POST', `/v1/responses/${opened.body.id}/cancel`)
})
