/** Tests which items a chat turn stores, and how X-Parley-Conversation adds turns to a conversation. */
import { describe, expect, test } from 'vitest'
import { createTenant } from '../../support/agents.ts'
import type { TestApp } from '../../support/app.ts'
import { startChatHarness } from '../../support/chat-harness.ts'
import {
  type ChatOptions,
  listItems,
  listTurns,
  openConversations,
  openStream,
  resume,
  sendChat,
  splitStream,
  storingAgent,
} from '../../support/stored-chats.ts'
import { agentWith, tool, toolCallResponse } from '../../support/tools.ts'

const harness = await startChatHarness()

async function startStoring(env: Readonly<Record<string, string>> = {}) {
  const app = await harness.start(env)
  const { agent_key: key, agent_id: id } = await app.createAgent(storingAgent())
  return { app, key, model: `agent/${id}` }
}

/** Starts a conversation with the parent key; returns its id and the options for another turn. */
async function startConversation(app: TestApp, model: string) {
  const { headers } = await sendChat(app, 'hello', { more: { model } })
  const id = headers.get('x-parley-conversation') as string
  const next: ChatOptions = { headers: { 'X-Parley-Conversation': id }, more: { model } }
  return { id, next }
}

const textsOf = (items: readonly { content: { text: string }[] }[]) =>
  items.map(({ content }) => content.map(({ text }) => text).join(''))

describe('a stored turn', () => {
  test('contains the messages after the last assistant message, and the answer', async () => {
    const { app, key } = await startStoring()
    const messages = [
      { role: 'user', content: 'old' },
      { role: 'assistant', content: 'older answer' },
      { role: 'user', content: [{ type: 'text', text: 'new' }] },
    ]
    await sendChat(app, '', { key, more: { messages } })
    const items = await listItems(app)
    expect(items.map(({ role }) => role)).toEqual(['user', 'assistant'])
    expect(textsOf(items)).toEqual(['new', 'Upstream heard: new'])
  })

  test('contains the result of a page tool that follows the last assistant message', async () => {
    const { app, key } = await startStoring()
    const call = { id: 'call_1', type: 'function', function: { name: 'look', arguments: '{}' } }
    const messages = [
      { role: 'user', content: 'old' },
      { role: 'assistant', content: null, tool_calls: [call] },
      { role: 'tool', tool_call_id: 'call_1', content: 'seen' },
    ]
    await sendChat(app, '', { key, more: { messages } })
    const [result, ...rest] = await listItems(app)
    expect(result).toMatchObject({ type: 'function_call_output', call_id: 'call_1', output: 'seen' })
    expect(rest).toMatchObject([{ type: 'message', role: 'assistant' }])
  })

  test('contains the calls and results of server tools, which leave no gaps in its event ids', async () => {
    const app = await harness.start({}, { tools: { weather: tool(() => 'Rain') } })
    const definition = { ...JSON.parse(agentWith(['weather'])), conversations: { keep: '30d' } }
    const { agent_key: key } = await app.createAgent(JSON.stringify(definition))
    const call = [{ name: 'weather', args: '{"city":"Bonn"}' }]
    await harness.answerWith(toolCallResponse('streamed', call) as object[], 1)
    const { text } = await sendChat(app, 'hello', { key })
    const events = splitStream(text)
    expect(events.slice(0, -1).map(({ id }) => id?.split('.')[1])).toEqual(
      events.slice(0, -1).map((_event, number) => String(number)),
    )
    const resumed = await resume(app, key, events[0]?.id as string)
    expect(resumed.text).toBe(
      events
        .slice(1)
        .map((event) => event.text)
        .join(''),
    )
    expect((await listItems(app)).map(({ type }) => type)).toEqual([
      'message',
      'function_call',
      'function_call_output',
      'message',
    ])
    expect((await listItems(app))[2]).toMatchObject({ call_id: 'call_0_weather', output: 'Rain' })
    expect(await harness.listChats()).toHaveLength(2)
  })

  test.each([true, false])('has the status completed and its usage (stream: %s)', async (stream) => {
    const { app, key } = await startStoring()
    await sendChat(app, 'hello', { key, more: { stream } })
    const [turn] = await listTurns(app)
    expect(turn).toMatchObject({ status: 'completed', number: 1, provider: 'gateway', model: 'up-chat' })
    expect(Number(turn?.completion_tokens)).toBeGreaterThan(0)
  })
})

describe('X-Parley-Conversation', () => {
  test('adds a turn to the conversation', async () => {
    const { app, model } = await startStoring()
    const { id, next } = await startConversation(app, model)
    const { headers, status } = await sendChat(app, 'again', next)
    expect([status, headers.get('x-parley-conversation')]).toEqual([200, id])
    expect((await listTurns(app)).map((turn) => [turn.conversation_id, turn.number])).toEqual([
      [id, 1],
      [id, 2],
    ])
  })

  test('returns 409 conversation_locked while a turn of the conversation runs', async () => {
    const { app, model } = await startStoring()
    const { next } = await startConversation(app, model)
    const running = await openStream(app, '{{up:chunks 20}}{{up:delay 20}}', next)
    await running.readEvents(1)
    const refused = await sendChat(app, 'again', next)
    expect([refused.status, refused.body.error.code]).toEqual([409, 'conversation_locked'])
    expect(refused.headers.get('retry-after')).toBe('1')
    await running.readAll()
    expect((await sendChat(app, 'again', next)).status).toBe(200)
    expect(await harness.listChats()).toHaveLength(3)
  })

  test('returns 403 visitor_required with an agent key', async () => {
    const { app, key, model } = await startStoring()
    const { next } = await startConversation(app, model)
    const { status, body } = await sendChat(app, 'again', { ...next, key })
    expect([status, body.error.code]).toEqual([403, 'visitor_required'])
    expect(await harness.listChats()).toHaveLength(1)
  })

  test.each(['conv_aaaaaaaaaaaaaaaaaaaaaaaa', 'nonsense', "x' or 1=1"])(
    'returns 404 if the id is unknown: "%s"',
    async (id) => {
      const { app, model } = await startStoring()
      await startConversation(app, model)
      const answer = await sendChat(app, 'again', {
        headers: { 'X-Parley-Conversation': id },
        more: { model },
      })
      expect([answer.status, answer.body.error.param]).toEqual([404, 'conversation'])
      expect(await harness.listChats()).toHaveLength(1)
    },
  )

  test("returns 404 for another tenant's conversation", async () => {
    const { app, model } = await startStoring()
    const { next } = await startConversation(app, model)
    const tenant = await createTenant(app)
    const { agent_id } = await app.createAgent(storingAgent(), tenant)
    const more = { model: `agent/${agent_id}` }
    expect((await sendChat(app, 'again', { ...next, more, key: tenant })).status).toBe(404)
  })

  test("returns 400 agent_mismatch for another agent's conversation", async () => {
    const { app, model } = await startStoring()
    const { next } = await startConversation(app, model)
    const { agent_id } = await app.createAgent(storingAgent())
    const { status, body } = await sendChat(app, 'again', { ...next, more: { model: `agent/${agent_id}` } })
    expect([status, body.error.code]).toEqual([400, 'agent_mismatch'])
  })

  test.each([
    ['turns', 1_000],
    ['items', 9_999],
  ] as const)(
    'returns 409 conversation_full if the conversation has reached its limit of %s',
    async (column, count) => {
      const { app, model } = await startStoring()
      const { id, next } = await startConversation(app, model)
      const db = await openConversations(app)
      await db
        .updateTable('conversations')
        .set({ [column]: count })
        .where('id', '=', id)
        .execute()
      if (column === 'items') expect((await sendChat(app, 'final', next)).status).toBe(200)
      const { status, body } = await sendChat(app, 'again', next)
      expect([status, body.error.code]).toEqual([409, 'conversation_full'])
      expect(body.error.message).toContain('1000 turns and 10000 items')
    },
  )
})
