/** Tests that a conversation's feed has no gaps or duplicates, for visitors and owners. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { systemClock } from '../../../src/lib/clock.ts'
import { createTenant } from '../../support/agents.ts'
import type { TestApp } from '../../support/app.ts'
import { startChatHarness } from '../../support/chat-harness.ts'
import { answer, change } from '../../support/handover.ts'
import { storingAgent } from '../../support/stored-chats.ts'
import { dataOf, readStream } from '../../support/stored-turns.ts'
import {
  asVisitor,
  beginSession,
  deltaText,
  type FeedEvent,
  followUntil,
  isEnd,
  say,
  sayAndWait,
} from '../../support/visitors.ts'

const harness = await startChatHarness()
const START = '0.0.e'

async function startVisit(env: Readonly<Record<string, string>> = {}) {
  const app = await harness.start(
    { PARLEY_RATE_LIMIT_AGENT: '0', PARLEY_RATE_LIMIT_AGENT_ADDRESS: '0', ...env },
    { clock: systemClock },
  )
  const { agent_key: key } = await app.createAgent(storingAgent())
  return { app, key, one: await beginSession(app, key) }
}

const endings = (count: number) => (_: FeedEvent, events: readonly FeedEvent[]) =>
  events.filter(isEnd).length === count

describe('a feed that is interrupted at random events', () => {
  test('equals an uninterrupted feed, both during turns and after them', async () => {
    const { one } = await startVisit()
    const { sent } = await sayAndWait(one, 'First. {{up:chunks 12}}{{up:delay 1}}')
    const conversation = sent.conversation.id
    const uncut = followUntil(one, { conversation, cursor: START }, endings(3))

    async function readInPieces(lengths: readonly number[]): Promise<FeedEvent[]> {
      const events: FeedEvent[] = []
      for (let piece = 0; !endings(3)(events.at(-1) as FeedEvent, events); piece++) {
        const length = lengths[piece % lengths.length] as number
        const cursor = events.at(-1)?.id ?? START
        const isOver = (last: FeedEvent, some: readonly FeedEvent[]) =>
          some.length === length || endings(3)(last, [...events, ...some])
        events.push(...(await followUntil(one, { conversation, cursor }, isOver)))
      }
      return events
    }

    const live = [readInPieces([1, 2, 3]), readInPieces([5])]
    for (const text of ['Second. {{up:chunks 15}}{{up:delay 3}}', 'Third. {{up:chunks 3}}'])
      await sayAndWait(one, text, { conversation })
    const whole = await uncut
    for (const events of live) expect(await events).toEqual(whole)
    expect(new Set(whole.map(({ id }) => id)).size).toBe(whole.length)
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 1, maxLength: 6 }),
        async (lengths) => {
          expect(await readInPieces(lengths)).toEqual(whole)
        },
      ),
      { numRuns: 8 },
    )
  })
})

describe('a conversation that is opened', () => {
  test("contains each mode change after the item that precedes it, and the visitor's ratings", async () => {
    const { app, one, key } = await startVisit()
    const { sent } = await sayAndWait(one, 'Hello.')
    const { id } = sent.conversation
    await change(app, id, 'takeover', { name: 'Ana' })
    await answer(app, id, 'Hello, this is Ana.', { name: 'Ana' })
    await change(app, id, 'handback')
    const { events } = await sayAndWait(one, 'Thanks.', { conversation: id })
    await one.visitor.rate.mutate({ turn: sent.turn.id, value: 'down', reason: 'other', comment: 'No.' })
    await app.call('PUT', `/v1/turns/${sent.turn.id}/rating`, { body: { value: 'up' } })
    const opened = await one.visitor.open.query({ conversation: id })
    expect(opened.items.map(({ text }) => text).slice(2, 4)).toEqual(['Hello, this is Ana.', 'Thanks.'])
    const since = expect.any(Number)
    expect(opened.modes).toEqual([
      { mode: 'person', since, name: 'Ana', after: opened.items[1]?.id },
      { mode: 'model', since, name: null, after: opened.items[2]?.id },
    ])
    expect(opened.ratings).toEqual([{ turn: sent.turn.id, value: 'down', reason: 'other', comment: 'No.' }])
    expect(events.some(isEnd)).toBe(true)
    const stranger = await beginSession(app, key)
    await expect(stranger.visitor.open.query({ conversation: id })).rejects.toMatchObject({
      data: { httpStatus: 404 },
    })
  })

  test('contains no names of people if the agent hides them', async () => {
    const { app } = await startVisit()
    const { agent_key: key } = await app.createAgent(storingAgent({ handover: { showName: false } }))
    const one = await beginSession(app, key)
    const { sent } = await sayAndWait(one, 'Hello.')
    await change(app, sent.conversation.id, 'takeover', { name: 'Ana' })
    const opened = await one.visitor.open.query({ conversation: sent.conversation.id })
    expect(opened.modes).toMatchObject([{ mode: 'person', name: null }])
    expect(JSON.stringify(opened)).not.toContain('Ana')
  })
})

describe('the cursor of a conversation', () => {
  test('is returned when the conversation is opened, and a feed from it contains the whole running answer', async () => {
    const { one } = await startVisit()
    const { conversation } = await say(one, 'Hello. {{up:chunks 8}}{{up:delay 5}}')
    const opened = await one.visitor.open.query({ conversation: conversation.id })
    expect(opened.items.map(({ author }) => author)[0]).toBe('visitor')
    const events = await followUntil(one, { conversation: conversation.id, cursor: opened.cursor }, isEnd)
    const { items, cursor, turn } = await one.visitor.open.query({ conversation: conversation.id })
    expect(turn?.status).toBe('completed')
    expect(cursor).toBe(events.at(-1)?.id)
    expect(deltaText(events)).toBe(items.at(-1)?.text)
  })

  test('is rejected if it is malformed', async () => {
    const { one } = await startVisit()
    const { conversation } = await say(one, 'Hello.')
    for (const cursor of ['x', '1.1', '-1.0.0', '1.1.1.1']) {
      const following = one.visitor.follow.query({ conversation: conversation.id, cursor })
      await expect(following).rejects.toMatchObject({ data: { httpStatus: 400, param: 'cursor' } })
    }
  })
})

describe('the feed over REST', () => {
  async function readEvents(app: TestApp, path: string, key: string, headers = {}) {
    const { text, status } = await readStream(
      app.url,
      { method: 'GET', path, key, headers },
      (so, stop) => so.includes('event: conversation.turn.ended') && stop(),
    )
    return { status, events: text.split('\n\n').filter((event) => event.startsWith('id: ')), text }
  }

  test('contains the same events as the typed feed and continues after Last-Event-ID', async () => {
    const { app, key, one } = await startVisit()
    const { sent } = await sayAndWait(one, 'Hello. {{up:chunks 4}}')
    const conversation = sent.conversation.id
    const typed = await followUntil(one, { conversation, cursor: START }, isEnd)
    const path = `/v1/conversations/${conversation}/events`
    const headers = { 'X-Parley-Visitor': one.token, 'Last-Event-ID': START }
    const { events } = await readEvents(app, path, key, headers)
    const expected = typed.map(({ id, event, data }) => ({ id, event, data }))
    expect(
      events.map((event) => ({
        id: /^id: (.*)$/m.exec(event)?.[1],
        event: /^event: (.*)$/m.exec(event)?.[1],
        data: dataOf(event),
      })),
    ).toEqual(expected)
    const rest = await readEvents(app, path, key, { ...headers, 'Last-Event-ID': typed[2]?.id })
    expect(rest.events).toEqual(events.slice(3))
  })

  test("can be read by the conversation's owner but not by other tenants", async () => {
    const { app, one } = await startVisit()
    const { sent } = await sayAndWait(one, 'Hello.')
    const path = `/v1/conversations/${sent.conversation.id}/events?cursor=${START}`
    const { events, text } = await readEvents(app, path, app.key)
    expect(events.length).toBeGreaterThan(3)
    expect(text.startsWith(': connected\n\n')).toBe(true)
    expect((await readEvents(app, path, await createTenant(app))).status).toBe(404)
  })
})

test('the feed contains items that the owner adds to an idle conversation', async () => {
  const { app, one } = await startVisit()
  const { sent } = await sayAndWait(one, 'Hello.')
  const conversation = sent.conversation.id
  const { cursor } = await one.visitor.open.query({ conversation })
  const following = followUntil(one, { conversation, cursor }, () => true)
  const items = [{ type: 'message', role: 'assistant', content: 'A note.' }]
  await app.call('POST', `/v1/conversations/${conversation}/items`, { body: { items } })
  expect((await following)[0]?.data).toMatchObject({ item: { text: 'A note.', turn_id: null } })
})

describe('open feeds', () => {
  test('are limited for each client address', async () => {
    const { app, key, one } = await startVisit({ PARLEY_MAX_FOLLOWERS_ADDRESS: '1' })
    const sent = await say(one, 'Hello.')
    const query = { conversation: sent.conversation.id, cursor: START }
    const leaving = new AbortController()
    const holding = await one.visitor.follow.query(query, { signal: leaving.signal })
    await holding[Symbol.asyncIterator]().next()
    const another = followUntil({ visitor: asVisitor(app, key, one.token) }, query, isEnd)
    await expect(another).rejects.toMatchObject({ data: { httpStatus: 429 } })
    const { status } = await app.call('GET', `/v1/conversations/${query.conversation}/events`, {
      key,
      headers: { 'X-Parley-Visitor': one.token },
    })
    expect(status).toBe(429)
    leaving.abort()
  })

  test('end when the server stops', async () => {
    const { app, one } = await startVisit({ PARLEY_SHUTDOWN_SECONDS: '60' })
    const { sent } = await sayAndWait(one, 'Hello.')
    const { cursor } = await one.visitor.open.query({ conversation: sent.conversation.id })
    const feed = await one.visitor.follow.query({ conversation: sent.conversation.id, cursor })
    const ended = (async () => {
      for await (const event of feed) throw new Error(`unexpected ${event.event}`)
    })()
    await app.close()
    await ended
  })

  test('end when the conversation is deleted', async () => {
    const { one } = await startVisit()
    const { sent } = await sayAndWait(one, 'Hello.')
    const conversation = sent.conversation.id
    const following = followUntil(one, { conversation }, isEnd)
    const ending = expect(following).rejects.toMatchObject({ data: { httpStatus: 404 } })
    await one.visitor.delete.mutate({ conversation })
    await ending
  })
})
