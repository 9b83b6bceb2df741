/** Tests that a call to a page tool gets a result before a person answers, so that providers accept later turns. */
import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { startChatHarness } from '../../support/chat-harness.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import { answer, change, readMessages, startVisit } from '../../support/handover.ts'
import { openConversations } from '../../support/stored-chats.ts'
import { deltaText, followUntil, isEnd, say, sayAndWait } from '../../support/visitors.ts'

const harness = await startChatHarness()

const tools = [{ type: 'function' as const, function: { name: 'postMessage_cart', parameters: {} } }]
const CALL = 'Look. {{up:tool postMessage_cart {"a":1}}}'
const START = '0.0.e'
const UNKNOWN = expect.stringContaining('outcome is unknown')

interface Message {
  readonly role: string
  readonly content: string | null
  readonly tool_calls?: readonly { readonly id: string }[]
  readonly tool_call_id?: string
}

async function readSent() {
  return (await readMessages(harness)) as unknown as readonly Message[]
}

/** Asserts that the outputs of all calls directly follow the calls, and returns the last chat request's messages. */
async function readPaired(): Promise<readonly Message[]> {
  const messages = await readSent()
  let calls = 0
  for (const [index, { tool_calls: called = [], content }] of messages.entries()) {
    if (called.length === 0) continue
    calls += called.length
    const outputs = messages.slice(index + 1, index + 1 + called.length)
    expect(outputs.map((one) => one.tool_call_id)).toEqual(called.map(({ id }) => id))
    expect(content).toBeNull()
  }
  expect(messages.filter(({ role }) => role === 'tool')).toHaveLength(calls)
  expect(calls).toBeGreaterThan(0)
  return messages
}

async function startCall(handover: object = {}, ask = CALL) {
  const visit = await startVisit(harness, handover)
  const { sent } = await sayAndWait(visit.one, ask, { tools })
  const { id } = sent.conversation
  const write = (text: string) =>
    visit.one.visitor.send.mutate({ conversation: id, client_id: randomUUID(), text })
  const report = () =>
    visit.one.visitor.toolResults.mutate({
      turn: sent.turn.id,
      client_id: randomUUID(),
      results: [{ call_id: 'call_0', output: 'two pears' }],
      tools,
    })
  return { ...visit, id, sent, write, report }
}

const HANDED_BACK = { role: 'user', content: expect.stringContaining('handed back at') }
const BY_ANA = { role: 'assistant', content: '[Written by Ana, a person, not by the model]\nTwo pears.' }

describe('an open call to a page tool', () => {
  test('counts toward the maximum number of items of a conversation when it gets its outcome', async () => {
    const { app, id } = await startCall()
    const db = await openConversations(app)
    const setItems = (items: number) =>
      db.updateTable('conversations').set({ items }).where('id', '=', id).execute()
    await setItems(9_999)
    const full = await change(app, id, 'takeover')
    expect([full.status, full.body.error.code]).toEqual([409, 'conversation_full'])
    await setItems(9_998)
    expect((await change(app, id, 'takeover')).status).toBe(200)
  })

  test('gets an unknown outcome, placed before the messages of the person who takes over', async () => {
    const { app, id, one, write } = await startCall()
    await answer(app, id, 'Two pears.', { name: 'Ana' })
    await write('Thanks.')
    await change(app, id, 'handback')
    await sayAndWait(one, 'And now?', { conversation: id })
    expect((await readPaired()).slice(2)).toMatchObject([
      { role: 'assistant', tool_calls: [{ id: 'call_0' }] },
      { role: 'tool', content: UNKNOWN },
      BY_ANA,
      { role: 'user', content: 'Thanks.' },
      HANDED_BACK,
      { role: 'user', content: 'And now?' },
    ])
  })

  test('has exactly one outcome after several handovers, as does each of several calls', async () => {
    const ask = 'Look. {{up:tool postMessage_cart {"a":1}}}{{up:tool postMessage_cart {"a":2}}}'
    const { app, id, one, write } = await startCall({}, ask)
    for (const text of ['One.', 'Two.']) {
      await one.visitor.requestPerson.mutate({ conversation: id })
      await write(text)
      await change(app, id, 'takeover', { name: 'Ana' })
      await change(app, id, 'handback')
    }
    await sayAndWait(one, 'And now?', { conversation: id })
    const messages = await readPaired()
    expect(messages.filter(({ role }) => role === 'tool')).toHaveLength(2)
  })

  test('has an unknown outcome if no person answers in time', async () => {
    const clock = createFakeClock()
    const { app, one } = await startVisit(harness, { timeout: '5m' }, clock)
    // The feed waits for the clock, so the test does not follow it.
    const { conversation } = await say(one, CALL, { tools })
    const { id } = conversation
    const status = async () => (await one.visitor.open.query({ conversation: id })).turn?.status
    await expect.poll(status).toBe('completed')
    await one.visitor.requestPerson.mutate({ conversation: id })
    await one.visitor.send.mutate({ conversation: id, client_id: randomUUID(), text: 'Is a person there?' })
    clock.advance(300)
    await app.service.deps.conversations.sweep(false)
    await say(one, 'And now?', { conversation: id })
    await expect.poll(async () => (await harness.listChats()).length).toBe(2)
    expect((await readPaired()).at(-1)).toMatchObject({ content: 'And now?' })
  })

  test('is shown with its outcome once to the visitor and the owner, after the mode change', async () => {
    const { app, id, one } = await startCall()
    await change(app, id, 'takeover', { name: 'Ana' })
    await change(app, id, 'handback')
    const { sent } = await sayAndWait(one, 'And now?', { conversation: id })
    const isLast = (event: { event: string; data: unknown }) =>
      event.event === 'conversation.turn.ended' &&
      (event.data as { turn: { id: string } }).turn.id === sent.turn.id
    const events = await followUntil(one, { conversation: id, cursor: START }, isLast)
    const shown = events.flatMap((event) => {
      if (event.event === 'conversation.mode') return [event.data.mode]
      if (event.event !== 'conversation.item') return []
      return [`${event.data.item.author} ${event.data.item.type}`]
    })
    expect(shown).toEqual([
      'visitor message',
      'model function_call',
      'person',
      'service function_call_output',
      'model',
      'visitor message',
      'model message',
    ])
    const { body } = await app.call('GET', `/v1/conversations/${id}/items?order=asc`)
    const outputs = (body.data as { type: string; call_id?: string }[]).filter(
      ({ type }) => type === 'function_call_output',
    )
    expect(outputs).toMatchObject([{ call_id: 'call_0', parley: { author: 'service' } }])
  })

  test('rejects results from the page both during and after the handover', async () => {
    const { app, id, one, report } = await startCall()
    const wrongMode = (mode: string) => ({
      data: { httpStatus: 409, code: 'wrong_mode', mode, assignee: null },
    })
    await one.visitor.requestPerson.mutate({ conversation: id })
    await expect(report()).rejects.toMatchObject(wrongMode('waiting'))
    await change(app, id, 'takeover', { name: 'Ana' })
    await expect(report()).rejects.toMatchObject(wrongMode('person'))
    await change(app, id, 'handback')
    await expect(report()).rejects.toMatchObject({ data: { httpStatus: 400, param: 'results[0].call_id' } })
  })

  test('has an unknown outcome if its turn ends after a person was requested', async () => {
    const { app, one } = await startVisit(harness)
    const { conversation, cursor } = await say(one, `${CALL}{{up:delay 200}}`, { tools })
    const { id } = conversation
    await one.visitor.requestPerson.mutate({ conversation: id })
    await followUntil(one, { conversation: id, cursor }, isEnd)
    await one.visitor.send.mutate({ conversation: id, client_id: randomUUID(), text: 'Is a person there?' })
    await answer(app, id, 'Two pears.', { name: 'Ana' })
    await change(app, id, 'handback')
    await sayAndWait(one, 'And now?', { conversation: id })
    expect((await readPaired()).slice(2)).toMatchObject([
      { role: 'assistant' },
      { role: 'tool', content: UNKNOWN },
      { role: 'user', content: 'Is a person there?' },
      BY_ANA,
      HANDED_BACK,
      { role: 'user', content: 'And now?' },
    ])
  })
})

describe('an open call in a conversation that is handed over and back while a request starts a turn', () => {
  /** Hands the conversation over and back once, after the next request has read the open calls. */
  function changeDuringStart({ app, id }: Awaited<ReturnType<typeof startCall>>) {
    const { reader } = app.service.deps.conversations
    const readVisitorHistory = reader.readVisitorHistory.bind(reader)
    reader.readVisitorHistory = async (...from) => {
      reader.readVisitorHistory = readVisitorHistory
      const history = await readVisitorHistory(...from)
      await answer(app, id, 'Two pears.', { name: 'Ana' })
      await change(app, id, 'handback')
      return history
    }
  }

  async function listOutputs({ app, id }: Awaited<ReturnType<typeof startCall>>) {
    const { body } = await app.call('GET', `/v1/conversations/${id}/items`)
    return (body.data as { type: string }[]).filter(({ type }) => type === 'function_call_output')
  }

  test("has one outcome if the request sends a message, which follows the person's messages", async () => {
    const visit = await startCall()
    changeDuringStart(visit)
    await sayAndWait(visit.one, 'And now?', { conversation: visit.id })
    expect((await readPaired()).slice(2)).toMatchObject([
      { role: 'assistant', tool_calls: [{ id: 'call_0' }] },
      { role: 'tool', content: UNKNOWN },
      BY_ANA,
      HANDED_BACK,
      { role: 'user', content: 'And now?' },
    ])
    expect(await listOutputs(visit)).toHaveLength(1)
  })

  test('does not accept the result that the request sends', async () => {
    const visit = await startCall()
    changeDuringStart(visit)
    const rejection = { data: { httpStatus: 400, param: 'results[0].call_id' } }
    await expect(visit.report()).rejects.toMatchObject(rejection)
    expect(await listOutputs(visit)).toMatchObject([{ parley: { author: 'service' } }])
  })
})

describe('a call that the model is writing when a person takes over', () => {
  test('is not stored, but the text before it is', async () => {
    const { app, one } = await startVisit(harness, { tool: false })
    // The stream stops in the arguments of the call.
    const ask = '{{up:text Let me look.}}{{up:tool postMessage_cart {"a":2222222222222}}}{{up:hang-after 6}}'
    const { conversation, cursor } = await say(one, `Look. ${ask}`, { tools })
    const { id } = conversation
    await followUntil(one, { conversation: id, cursor }, (_, events) => deltaText(events) === 'Let me look.')
    await answer(app, id, 'Two pears.', { name: 'Ana' })
    await change(app, id, 'handback')
    await sayAndWait(one, 'And now?', { conversation: id })
    const messages = (await readSent()).slice(2)
    expect(messages).toMatchObject([
      { role: 'assistant', content: 'Let me look.' },
      BY_ANA,
      HANDED_BACK,
      { role: 'user', content: 'And now?' },
    ])
    expect(messages[0]).not.toHaveProperty('tool_calls')
  })
})
