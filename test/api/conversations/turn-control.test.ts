/** Tests how turns are cancelled and continued by their id. */
import { describe, expect, test } from 'vitest'
import { createTenant } from '../../support/agents.ts'
import type { TestApp } from '../../support/app.ts'
import { startChatHarness } from '../../support/chat-harness.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import { listTurns, openStream, sendChat, splitStream, storingAgent } from '../../support/stored-chats.ts'

const harness = await startChatHarness()
const ENDLESS = '{{up:text one two three}}{{up:hang-after 3}}{{up:usage never}}'
const NOWHERE = `turn_${'0'.repeat(24)}`

async function start() {
  const clock = createFakeClock()
  const app = await harness.start({}, { clock })
  const { agent_key: key, agent_id: id } = await app.createAgent(storingAgent({ onDisconnect: 'continue' }))
  return { app, clock, key, id, model: `agent/${id}` }
}

/** Starts a chat that does not end; returns its stream and the id of its turn. */
async function startEndless(app: TestApp, options: Parameters<typeof openStream>[2]) {
  const stream = await openStream(app, ENDLESS, options)
  await stream.readEvents(2)
  return { stream, turn: stream.headers.get('x-parley-turn') as string }
}

const send = (app: TestApp, turn: string, verb: 'cancel' | 'continue', key?: string, body?: object) =>
  app.call('POST', `/v1/turns/${turn}/${verb}`, { ...(key && { key }), ...(body && { body }) })

describe('POST /v1/turns/{id}/cancel', () => {
  test.each(['parent', 'agent'])(
    'stops the turn when it is sent with the %s key, and can be repeated',
    async (who) => {
      const { app, key } = await start()
      const { stream, turn } = await startEndless(app, { key })
      const caller = who === 'agent' ? key : app.key
      const first = await send(app, turn, 'cancel', caller)
      expect(first).toMatchObject({
        status: 200,
        body: { id: turn, object: 'turn', status: 'cancelled', reason: null, error_code: null },
      })
      expect(Object.keys(first.body)).not.toContain('conversation_id')
      expect((await harness.upstream.waitForEnd((await harness.listChats())[0]?.id ?? -1)).endedBy).toBe(
        'client',
      )
      expect(splitStream(await stream.readAll()).at(-1)?.text).not.toContain('[DONE]')
      expect((await send(app, turn, 'cancel', caller)).body).toEqual(first.body)
    },
  )

  test('returns 400 not_cancellable for a turn that has ended', async () => {
    const { app, key } = await start()
    const turn = (await sendChat(app, 'hello', { key })).headers.get('x-parley-turn') as string
    const { status, body } = await send(app, turn, 'cancel')
    expect([status, body.error.code]).toEqual([400, 'not_cancellable'])
  })
})

describe.each(['cancel', 'continue'] as const)('POST /v1/turns/{id}/%s', (verb) => {
  test('returns 404 for a turn that the caller may not read', async () => {
    const { app, clock, key } = await start()
    const { turn, stream } = await startEndless(app, { key })
    const { agent_key: other } = await app.createAgent(storingAgent())
    for (const caller of [await createTenant(app), other]) {
      const { status, body } = await send(app, turn, verb, caller)
      expect([status, body.error.param]).toEqual([404, 'turn_id'])
    }
    expect((await send(app, NOWHERE, verb)).status).toBe(404)
    clock.advance(24 * 3600 + 1)
    expect((await send(app, turn, verb, key)).status).toBe(404)
    expect((await listTurns(app))[0]).toMatchObject({ status: 'in_progress' })
    await send(app, turn, 'cancel')
    await stream.readAll()
  })

  test('returns 401 without a key', async () => {
    const { app } = await start()
    const { status } = await app.call('POST', `/v1/turns/${NOWHERE}/${verb}`, { key: null })
    expect(status).toBe(401)
  })
})

describe('POST /v1/turns/{id}/continue', () => {
  test("continues a chat's answer as a response in the same conversation", async () => {
    const { app, key, model } = await start()
    const { turn } = await startEndless(app, { key })
    await send(app, turn, 'cancel', key)
    await harness.answerWith({ choices: [{ message: { role: 'assistant', content: ' four' } }] }, 1)
    const { status, body, headers } = await send(app, turn, 'continue', key)
    expect([status, body.object, body.status, body.output[0].content[0].text]).toEqual([
      200,
      'response',
      'completed',
      ' four',
    ])
    const chat = (await harness.listChats()).at(-1)?.body as { messages: { role: string }[] }
    expect(chat.messages.slice(1)).toMatchObject([
      { role: 'user', content: ENDLESS },
      { role: 'assistant', content: 'one two' },
      { role: 'user', content: expect.stringContaining('interrupted') },
    ])
    const [first, second] = await listTurns(app)
    expect(second).toMatchObject({
      id: headers.get('x-parley-turn'),
      kind: 'continuation',
      conversation_id: first?.conversation_id,
      previous_id: turn,
    })
    const next = { more: { model }, headers: { 'X-Parley-Conversation': String(first?.conversation_id) } }
    expect((await sendChat(app, 'hello', next)).status).toBe(200)
  })

  test('uses the settings of the interrupted response unless the body overrides them', async () => {
    const { app, model } = await start()
    const message = { role: 'assistant', content: 'one' }
    await harness.answerWith({ choices: [{ message, finish_reason: 'length' }] }, 1)
    const created = await app.call('POST', '/v1/responses', {
      body: {
        model,
        input: 'one two three',
        max_output_tokens: 1,
        instructions: 'Be brief.',
        metadata: { a: '1' },
      },
    })
    expect(created.body.status).toBe('incomplete')
    const turn = created.headers.get('x-parley-turn') as string
    const { status, body } = await send(app, turn, 'continue', undefined, { max_output_tokens: 50 })
    expect(status).toBe(200)
    expect(body).toMatchObject({
      status: 'completed',
      previous_response_id: created.body.id,
      max_output_tokens: 50,
      instructions: 'Be brief.',
      metadata: { a: '1' },
    })
  })

  test('can be streamed', async () => {
    const { app, key } = await start()
    const { turn } = await startEndless(app, { key })
    await send(app, turn, 'cancel', key)
    await harness.answerWith([{ choices: [{ delta: { content: ' four' }, finish_reason: 'stop' }] }], 1)
    const { text } = await send(app, turn, 'continue', key, { stream: true })
    expect(text).toContain('event: response.output_text.delta')
    expect(text).toContain('event: response.completed')
  })

  test('returns 400 for a completed turn, and 409 conversation_locked for a running one', async () => {
    const { app, key } = await start()
    const turn = (await sendChat(app, 'hello', { key })).headers.get('x-parley-turn') as string
    const completed = await send(app, turn, 'continue')
    expect([completed.status, completed.body.error.param]).toEqual([400, 'input'])
    const running = await startEndless(app, { key })
    const locked = await send(app, running.turn, 'continue')
    expect([locked.status, locked.body.error.code]).toEqual([409, 'conversation_locked'])
    expect(locked.headers.get('retry-after')).toBe('1')
    await send(app, running.turn, 'cancel')
  })

  test('returns 400 for a field that cannot be set, or if the agent no longer stores conversations', async () => {
    const { app, key, id } = await start()
    const { turn } = await startEndless(app, { key })
    await send(app, turn, 'cancel')
    const unknown = await send(app, turn, 'continue', undefined, { input: 'a' })
    expect([unknown.status, unknown.body.error.message]).toEqual([400, expect.stringContaining('input')])
    await app.call('PUT', `/v1/agents/${id}`, { body: { yaml: 'name: A\ninstructions: B\n' } })
    const off = await send(app, turn, 'continue')
    expect([off.status, off.body.error.code]).toEqual([400, 'conversations_off'])
  })
})
