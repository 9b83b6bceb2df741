/** Tests how visitors send messages, and how they follow, stop and continue the turns. */
import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { systemClock } from '../../../src/lib/clock.ts'
import { startChatHarness } from '../../support/chat-harness.ts'
import { listItems, storingAgent } from '../../support/stored-chats.ts'
import {
  beginSession,
  deltaText,
  type FeedEvent,
  followUntil,
  isEnd,
  say,
  sayAndWait,
} from '../../support/visitors.ts'

const harness = await startChatHarness()

async function startVisit(conversations: object = {}, env: Readonly<Record<string, string>> = {}) {
  const app = await harness.start(env, { clock: systemClock })
  const agent = await app.createAgent(storingAgent(conversations))
  return { app, key: agent.agent_key, one: await beginSession(app, agent.agent_key) }
}

interface SentMessage {
  readonly role: string
  readonly content: string
}

async function listMessages(): Promise<SentMessage[][]> {
  const chats = await harness.listChats()
  return chats.map(({ body }) => (body as { messages: SentMessage[] }).messages)
}

const names = (events: readonly FeedEvent[]) => events.map(({ event }) => event)

describe("a visitor's message", () => {
  test('starts a conversation whose answer arrives through the feed', async () => {
    const { one } = await startVisit()
    const { sent, events } = await sayAndWait(one, 'Hello {{up:chunks 5}}')
    expect(sent).toMatchObject({
      conversation: { title: 'Hello {{up:chunks 5}}', mode: 'model', turns: 1 },
      turn: { status: 'in_progress' },
      item: { type: 'message', author: 'visitor', text: 'Hello {{up:chunks 5}}' },
    })
    const item = events.find((event) => event.event === 'conversation.item')
    expect(item?.data.item).toMatchObject({ author: 'model', type: 'message', status: 'completed' })
    expect(deltaText(events)).toBe(item?.data.item.text)
    expect(events.at(-1)?.data).toMatchObject({ turn: { id: sent.turn.id, status: 'completed' } })
  })

  test('is sent to the model after the earlier messages of its conversation', async () => {
    const { one } = await startVisit()
    const { sent } = await sayAndWait(one, 'First. {{up:text One.}}')
    await sayAndWait(one, 'Second.', { conversation: sent.conversation.id })
    const [, messages] = await listMessages()
    expect(messages?.slice(1)).toEqual([
      { role: 'user', content: 'First. {{up:text One.}}' },
      { role: 'assistant', content: 'One.' },
      { role: 'user', content: 'Second.' },
    ])
  })

  test('returns the same turn and item when it is sent again with the same client id', async () => {
    const { one } = await startVisit()
    const client_id = randomUUID()
    const first = await say(one, 'Once.', { client_id })
    const again = await Promise.all([1, 2, 3].map(() => say(one, 'Once.', { client_id })))
    for (const { turn, item } of again) {
      expect(turn.id).toBe(first.turn.id)
      expect(item).toEqual(first.item)
    }
    await expect(say(one, 'Twice.', { client_id })).rejects.toMatchObject({
      data: { httpStatus: 422, code: 'idempotency_key_reused', param: 'client_id' },
    })
    expect(await harness.listChats()).toHaveLength(1)
  })

  test.each([
    ['cancel', 'client', 'incomplete'],
    ['continue', 'answer', 'completed'],
  ])(
    'starts a turn that follows `onDisconnect: %s` if no client reads it',
    async (onDisconnect, endedBy, status) => {
      const { one } = await startVisit({ onDisconnect }, { PARLEY_RECONNECT_SECONDS: '0' })
      // The answer takes longer than a new turn may run without a reader.
      const { conversation } = await say(one, 'Hello {{up:chunks 70}}{{up:delay 100}}')
      await harness.upstream.waitForPath('/v1/chat/completions')
      const [chat] = await harness.listChats()
      expect(await harness.upstream.waitForEnd(chat?.id ?? -1)).toMatchObject({ endedBy })
      const readStatus = async () =>
        (await one.visitor.open.query({ conversation: conversation.id })).turn?.status
      await expect.poll(readStatus, { timeout: 10_000 }).toBe(status)
    },
    30_000,
  )

  test('is rejected while another turn runs', async () => {
    const { one } = await startVisit()
    const { conversation, turn } = await say(one, 'Slow. {{up:hang-after 2}}')
    await expect(say(one, 'Next.', { conversation: conversation.id })).rejects.toMatchObject({
      data: { httpStatus: 409, code: 'conversation_locked', retryAfterSeconds: 1 },
    })
    expect((await one.visitor.cancel.mutate({ turn: turn.id })).turn.status).toBe('cancelled')
  })
})

describe('page context in a message', () => {
  test('is sent to the model as untrusted text before the message and is not stored', async () => {
    const { app, one } = await startVisit()
    const { sent } = await sayAndWait(one, 'First.', { context: 'CANARY' })
    await sayAndWait(one, 'Second.', { conversation: sent.conversation.id })
    const [first, second] = await listMessages()
    expect(first?.at(-2)).toEqual({
      role: 'user',
      content: '[Context provided by the page, not by the user]\nCANARY',
    })
    expect(JSON.stringify(second)).not.toContain('CANARY')
    expect(JSON.stringify(await listItems(app))).not.toContain('CANARY')
  })
})

describe('an interrupted answer', () => {
  test('is sent to the model when the visitor continues it', async () => {
    const { one } = await startVisit()
    const { conversation, turn, cursor } = await say(one, 'Explain. {{up:hang-after 3}}')
    await followUntil(one, { conversation: conversation.id, cursor }, (_, { length }) => length === 2)
    expect((await one.visitor.cancel.mutate({ turn: turn.id })).turn.status).toBe('cancelled')
    const { items } = await one.visitor.open.query({ conversation: conversation.id })
    expect(items.at(-1)).toMatchObject({ author: 'model', status: 'incomplete' })
    const continued = await one.visitor.continue.mutate({ turn: turn.id })
    await followUntil(one, { conversation: conversation.id, cursor: continued.cursor }, isEnd)
    const [, messages] = await listMessages()
    expect(messages?.at(-2)).toEqual({ role: 'assistant', content: items.at(-1)?.text })
    expect(messages?.at(-1)?.content).toContain('Continue it exactly where it stopped')
    const again = one.visitor.continue.mutate({ turn: continued.turn.id })
    await expect(again).rejects.toMatchObject({ data: { httpStatus: 400, code: 'not_continuable' } })
    const after = await one.visitor.open.query({ conversation: conversation.id })
    expect(after.items.map(({ author }) => author)).toEqual(['visitor', 'model', 'model'])
  })
})

describe('a failed turn', () => {
  test('ends with an error, and later requests to the model omit its message', async () => {
    const { one } = await startVisit()
    const { sent, events } = await sayAndWait(one, 'Bad. {{up:status 400}}')
    expect(events.at(-1)?.data).toMatchObject({ turn: { status: 'failed', error_code: expect.any(String) } })
    await sayAndWait(one, 'Good.', { conversation: sent.conversation.id })
    const messages = (await listMessages()).at(-1)
    expect(messages?.map(({ content }) => content).slice(1)).toEqual(['Good.'])
  })
})

describe('a call to a page tool', () => {
  const tools = [{ type: 'function' as const, function: { name: 'postMessage_cart', parameters: {} } }]
  const CALL = 'Look. {{up:tool postMessage_cart {"a":1}}}'

  async function startCall() {
    const { app, one } = await startVisit()
    const { sent, events } = await sayAndWait(one, CALL, { tools })
    const called = events.find((event) => event.event === 'conversation.item')?.data.item
    expect(called).toMatchObject({ type: 'function_call', name: 'postMessage_cart', author: 'model' })
    return { app, one, sent, callId: called?.call_id as string }
  }

  test('receives its result from the page once, in the next turn', async () => {
    const { one, sent, callId } = await startCall()
    const input = {
      turn: sent.turn.id,
      client_id: randomUUID(),
      results: [{ call_id: callId, output: 'two pears' }],
      tools,
    }
    const next = await one.visitor.toolResults.mutate(input)
    const { conversation } = sent
    const events = await followUntil(one, { conversation: conversation.id, cursor: next.cursor }, isEnd)
    expect(deltaText(events)).not.toBe('')
    expect((await one.visitor.toolResults.mutate(input)).turn.id).toBe(next.turn.id)
    const [, messages] = await listMessages()
    expect(messages?.at(-1)).toMatchObject({ role: 'tool', tool_call_id: callId, content: 'two pears' })
    const { items } = await one.visitor.open.query({ conversation: conversation.id })
    expect(items.map(({ type, author }) => `${author} ${type}`)).toEqual([
      'visitor message',
      'model function_call',
      'page function_call_output',
      'model message',
    ])
    const late = one.visitor.toolResults.mutate({ ...input, client_id: randomUUID() })
    await expect(late).rejects.toMatchObject({ data: { httpStatus: 409, code: 'turn_not_last' } })
  })

  test('rejects a result with a different call id', async () => {
    const { one, sent } = await startCall()
    const wrong = one.visitor.toolResults.mutate({
      turn: sent.turn.id,
      client_id: randomUUID(),
      results: [{ call_id: 'other', output: '' }],
    })
    await expect(wrong).rejects.toMatchObject({ data: { httpStatus: 400, param: 'results[0].call_id' } })
  })

  test('has an unknown outcome if the visitor writes before the page returns the result', async () => {
    const { one, sent, callId } = await startCall()
    await sayAndWait(one, 'Never mind.', { conversation: sent.conversation.id })
    const messages = (await listMessages()).at(-1)
    expect(messages?.slice(-3)).toMatchObject([
      { role: 'assistant', tool_calls: [{ id: callId }] },
      { role: 'tool', tool_call_id: callId, content: expect.stringContaining('outcome is unknown') },
      { role: 'user', content: 'Never mind.' },
    ])
  })
})

describe('the feed', () => {
  test('contains the same events for two followers', async () => {
    const { one } = await startVisit()
    const { sent } = await sayAndWait(one, 'First.')
    const { conversation } = sent
    const { cursor } = await one.visitor.open.query({ conversation: conversation.id })
    const following = [1, 2].map(() => followUntil(one, { conversation: conversation.id, cursor }, isEnd))
    await say(one, 'Second. {{up:chunks 20}}{{up:delay 2}}', { conversation: conversation.id })
    const [a, b] = await Promise.all(following)
    expect(a).toEqual(b)
    expect(names(a ?? []).slice(0, 2)).toEqual(['conversation.item', 'conversation.turn.started'])
  })
})
