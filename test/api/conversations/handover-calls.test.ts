/**
 * Tests that API clients can answer function calls after a person has answered the conversation. The model
 * must then receive each output directly after its call, because providers reject other orders.
 */
import { describe, expect, test } from 'vitest'
import type { Answer } from '../../support/app.ts'
import { startChatHarness } from '../../support/chat-harness.ts'
import { createKeeper } from '../../support/conversations.ts'
import { answer, change, readMessages } from '../../support/handover.ts'
import { CHAT } from '../../support/stored-chats.ts'

const harness = await startChatHarness()

const RESPONSES = '/v1/responses'
const parameters = { type: 'object', properties: {} }
const tools = [{ type: 'function' as const, name: 'look_up', parameters, strict: false }]
const ASK = 'Look. {{up:tool look_up {"a":1}}}'
const HANDED_BACK = { role: 'user', content: expect.stringContaining('handed back at') }
const BY_ANA = { role: 'assistant', content: '[Written by Ana, a person, not by the model]\nTwo pears.' }
const WRONG_MODE = { status: 409, body: { error: { code: 'wrong_mode' } } }

const outputOf = (callId: string) => ({
  ...{ type: 'function_call_output' as const, call_id: callId },
  output: 'three pears',
})

/** Starts a conversation without turns, for an agent or without one. */
async function start(env: Readonly<Record<string, string>> = {}) {
  const app = await harness.start(env)
  const { owner, model } = await createKeeper(app)
  const { id } = await owner.conversations.create()
  const respond = (body: object): Promise<Answer> =>
    app.call('POST', RESPONSES, { body: { model, conversation: id, tools, ...body } })
  return { app, owner, model, id, respond }
}

/** Returns the messages of the last chat request, without the agent's instructions. */
async function readSent() {
  return (await readMessages(harness)).filter(({ role }) => role !== 'system')
}

describe('the output of a tool call that was open during a handover', () => {
  test('is accepted by /v1/responses after the handback, and follows its call in this and later requests', async () => {
    const { app, id, respond } = await start()
    expect((await respond({ input: ASK })).status).toBe(200)
    await answer(app, id, 'Two pears.', { name: 'Ana' })
    const input = [outputOf('call_0')]
    expect(await respond({ input })).toMatchObject(WRONG_MODE)
    await change(app, id, 'handback')
    expect((await respond({ input })).status).toBe(200)
    const sent = [
      { role: 'user', content: ASK },
      { role: 'assistant', content: null, tool_calls: [{ id: 'call_0' }] },
      { role: 'tool', tool_call_id: 'call_0', content: 'three pears' },
      BY_ANA,
      HANDED_BACK,
    ]
    expect(await readSent()).toMatchObject(sent)
    expect((await respond({ input: 'And now?' })).status).toBe(200)
    const later = [...sent, { role: 'assistant' }, { role: 'user', content: 'And now?' }]
    expect(await readSent()).toMatchObject(later)
  })

  test('follows its call even if the client answers several calls one after another', async () => {
    const { app, id, respond } = await start()
    const ask = `${ASK}{{up:tool look_up {"a":2}}}`
    expect((await respond({ input: ask })).status).toBe(200)
    await answer(app, id, 'Two pears.', { name: 'Ana' })
    await change(app, id, 'handback')
    const note = { role: 'user', content: 'The results:' }
    const input = [outputOf('call_1'), note, outputOf('call_0')]
    expect((await respond({ input })).status).toBe(200)
    expect(await readSent()).toMatchObject([
      { role: 'user', content: ask },
      { role: 'assistant', tool_calls: [{ id: 'call_0' }, { id: 'call_1' }] },
      { role: 'tool', tool_call_id: 'call_1' },
      { role: 'tool', tool_call_id: 'call_0' },
      BY_ANA,
      HANDED_BACK,
      note,
    ])
  })

  test('is accepted by /v1/chat/completions after the handback, and the model receives the messages as sent', async () => {
    const { app, id, model } = await start()
    const chat = (messages: readonly object[]) =>
      app.call('POST', CHAT, {
        headers: { 'X-Parley-Conversation': id },
        body: { model, messages, tools: [{ type: 'function', function: { name: 'look_up', parameters } }] },
      })
    const question = { role: 'user', content: ASK }
    const first = await chat([question])
    const calling = { role: 'assistant', ...first.body.choices[0].message }
    expect(calling.tool_calls).toMatchObject([{ id: 'call_0' }])
    await answer(app, id, 'Two pears.', { name: 'Ana' })
    const messages = [question, calling, { role: 'tool', tool_call_id: 'call_0', content: 'three pears' }]
    expect(await chat(messages)).toMatchObject(WRONG_MODE)
    await change(app, id, 'handback')
    expect((await chat(messages)).status).toBe(200)
    expect(await readSent()).toEqual(messages)
    const { body } = await app.call('GET', `/v1/conversations/${id}/items?order=asc`)
    const outputs = (body.data as { type: string }[]).filter(({ type }) => type === 'function_call_output')
    expect(outputs).toMatchObject([{ call_id: 'call_0', output: 'three pears' }])
  })
})

describe('a tool call that is still incomplete when a person takes over a chat without an agent', () => {
  test('is left out of later requests, and the client can answer the complete calls before it', async () => {
    const { app, owner, id, respond } = await start({ PARLEY_STORE_WITHOUT_AGENT: 'on_request' })
    // The stream stops in the arguments of the second call.
    const ask = `${ASK}{{up:tool look_up {"a":2222222222222}}}{{up:hang-after 7}}`
    const asked = { model: 'up-chat', conversation: id, store: true, tools, input: ask }
    const stream = await owner.responses.create({ ...asked, stream: true })
    for await (const event of stream)
      if (event.type === 'response.function_call_arguments.delta' && event.output_index === 1) break
    await answer(app, id, 'Two pears.', { name: 'Ana' })
    await change(app, id, 'handback')
    const rest = { model: 'up-chat', store: true }
    expect(await respond({ ...rest, input: [outputOf('call_1')] })).toMatchObject({
      status: 400,
      body: { error: { param: 'input[0].call_id' } },
    })
    expect((await respond({ ...rest, input: [outputOf('call_0')] })).status).toBe(200)
    expect(await readSent()).toMatchObject([
      { role: 'user', content: ask },
      { role: 'assistant', tool_calls: [{ id: 'call_0' }] },
      { role: 'tool', tool_call_id: 'call_0', content: 'three pears' },
      BY_ANA,
      HANDED_BACK,
    ])
    const [, calling] = (await readSent()) as unknown as { tool_calls: unknown[] }[]
    expect(calling?.tool_calls).toHaveLength(1)
  })
})
