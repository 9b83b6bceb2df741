/** Tests the turns of visitors: sending, following, stopping and continuing. */
import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { systemClock } from '../../../src/lib/clock.ts'
import { startChatHarness } from '../../support/chat-harness.ts'
import { storingAgent } from '../../support/stored-chats.ts'
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

async function startVisit(conversations: object = {}) {
  const app = await harness.start({}, { clock: systemClock })
  const agent = await app.createAgent(storingAgent(conversations))
  return { app, key: agent.agent_key, one: await beginSession(app, agent.agent_key) }
}

const names = (events: readonly FeedEvent[]) => events.map(({ event }) => event)

describe('a message of a visitor', () => {
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

  test('reaches the model with the conversation before it', async () => {
    const { one } = await startVisit()
    const { sent } = await sayAndWait(one, 'First. {{up:text One.}}')
    await sayAndWait(one, 'Second.', { conversation: sent.conversation.id })
    const [, chat] = await harness.listChats()
    expect((chat?.body as { messages: unknown[] }).messages.slice(1)).toEqual([
      { role: 'user', content: 'First. {{up:text One.}}' },
      { role: 'assistant', content: 'One.' },
      { role: 'user', content: 'Second.' },
    ])
  })

  test('has the same result when it is sent again', async () => {
    const { one } = await startVisit()
    const client_id = randomUUID()
    const first = await say(one, 'Once.', { client_id })
    const again = await Promise.all([1, 2, 3].map(() => say(one, 'Once.', { client_id })))
    for (const { turn, item } of again) {
      expect(turn.id).toBe(first.turn.id)
      expect(item).toEqual(first.item)
    }
    await expect(say(one, 'Twice.', { client_id })).rejects.toMatchObject({ data: { httpStatus: 422 } })
    expect(await harness.listChats()).toHaveLength(1)
  })

  test('is rejected while another turn runs', async () => {
    const { one } = await startVisit()
    const { conversation, turn } = await say(one, 'Slow. {{up:hang-after 2}}')
    await expect(say(one, 'Next.', { conversation: conversation.id })).rejects.toMatchObject({
      data: { httpStatus: 409, code: 'conversation_locked', retryAfterSeconds: 1 },
    })
    expect((await one.visitor.cancel.mutate({ turn: turn.id })).turn.status).toBe('cancelled')
  })
})

describe('the feed', () => {
  test('gives two followers the same events', async () => {
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
