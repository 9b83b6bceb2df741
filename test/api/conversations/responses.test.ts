/** Tests stored responses with the official client. */
import type OpenAI from 'openai'
import { describe, expect, test } from 'vitest'
import { startChatHarness } from '../../support/chat-harness.ts'
import { collect, createKeeper, failureOf } from '../../support/conversations.ts'
import { createFakeClock } from '../../support/fake-clock.ts'

const harness = await startChatHarness()

async function start(env: Readonly<Record<string, string>> = {}) {
  const clock = createFakeClock()
  const app = await harness.start(env, { clock })
  return { app, clock, ...(await createKeeper(app)) }
}

/** Returns the messages of the last request to the model, without the agent's instructions. */
async function lastMessages(): Promise<{ role: string; content: string }[]> {
  const last = (await harness.listChats()).at(-1)?.body as { messages: { role: string; content: string }[] }
  return last.messages.filter(({ content }) => content !== 'Keep.')
}

describe('a stored response', () => {
  test('is returned unchanged when it is retrieved', async () => {
    const { visitor } = await start()
    const created = await visitor.responses.create({ input: '{{up:text Hello.}}' })
    expect(created).toMatchObject({ store: true, status: 'completed', output_text: 'Hello.' })
    const { _request_id: _one, ...read } = await visitor.responses.retrieve(created.id)
    const { _request_id: _two, ...first } = created
    expect(read).toEqual(first)
  })

  test('can be streamed again from any event, with the same events', async () => {
    const { visitor } = await start()
    const input = '{{up:reasoning Hm.}}{{up:text One two.}}{{up:tool f {"a":1}}}'
    const uncut = await collect(await visitor.responses.create({ input, stream: true }))
    const id = (uncut[0] as OpenAI.Responses.ResponseCreatedEvent).response.id
    for (let after = -1; after <= uncut.length; after++) {
      const query = { stream: true as const, ...(after >= 0 && { starting_after: after }) }
      const rest = await collect(await visitor.responses.retrieve(id, query))
      expect(rest).toEqual(uncut.slice(after + 1))
    }
  })

  test("counts toward the stream limit of the client's address while it is streamed again", async () => {
    const { visitor } = await start({ PARLEY_MAX_STREAMS_ADDRESS: '2' })
    const running = await visitor.responses.create({ input: '{{up:hang-after 2}}', stream: true })
    const events = running[Symbol.asyncIterator]()
    const { response } = (await events.next()).value as OpenAI.Responses.ResponseCreatedEvent
    const again = await visitor.responses.retrieve(response.id, { stream: true })
    await again[Symbol.asyncIterator]().next()
    const third = visitor.responses.retrieve(response.id, { stream: true }, { maxRetries: 0 })
    expect(await failureOf(third)).toMatchObject({ status: 429, code: 'rate_limit_exceeded' })
    again.controller.abort()
    running.controller.abort()
  })

  test('can be retrieved, but streamed only from the start, after PARLEY_REPLAY_HOURS', async () => {
    const { owner, visitor, clock } = await start({ PARLEY_REPLAY_HOURS: '2' })
    const input = '{{up:reasoning Hm.}}{{up:text One two.}}{{up:tool f {"a":1}}}'
    const { _request_id: _, ...created } = await visitor.responses.create({ input })
    clock.advance(3 * 3600)
    const { _request_id: __, ...read } = await owner.responses.retrieve(created.id)
    expect(read).toEqual({ ...created, model: expect.any(String) })
    const events = await collect(await owner.responses.retrieve(created.id, { stream: true }))
    const { output_text: _text, ...response } = read
    expect(events.at(-1)).toMatchObject({ type: 'response.completed', response })
    expect(events.map((event) => event.sequence_number)).toEqual(events.map((_event, index) => index))
    const cut = await failureOf(owner.responses.retrieve(created.id, { stream: true, starting_after: 0 }))
    expect(cut).toMatchObject({ status: 400, code: 'stream_expired', param: 'starting_after' })
  })

  test('is deleted with its items, and later responses continue from the one before it', async () => {
    const { visitor } = await start()
    const one = await visitor.responses.create({ input: 'one' })
    const two = await visitor.responses.create({ input: 'two', previous_response_id: one.id })
    const three = await visitor.responses.create({ input: 'three', previous_response_id: two.id })
    expect(await visitor.delete(`/responses/${two.id}`)).toEqual({
      id: two.id,
      object: 'response',
      deleted: true,
    })
    expect(await failureOf(visitor.responses.retrieve(two.id))).toMatchObject({ status: 404 })
    await visitor.responses.create({ input: 'four', previous_response_id: three.id })
    const said = (await lastMessages()).filter(({ role }) => role === 'user').map(({ content }) => content)
    expect(said).toEqual(['one', 'three', 'four'])
  })

  test('lists only its new input items, page by page', async () => {
    const { visitor } = await start()
    const first = await visitor.responses.create({ input: 'before' })
    const input = ['a', 'b', 'c'].map((content) => ({ role: 'user' as const, content }))
    const { id } = await visitor.responses.create({ input, previous_response_id: first.id })
    for (const order of ['asc', 'desc'] as const) {
      const items = await collect(visitor.responses.inputItems.list(id, { order, limit: 2 }))
      const texts = items.map((item) => (item as { content: { text: string }[] }).content[0]?.text)
      expect(texts).toEqual(order === 'asc' ? ['a', 'b', 'c'] : ['c', 'b', 'a'])
    }
    const wrong = await failureOf(visitor.responses.inputItems.list(id, { after: 'msg_x' }))
    expect(wrong).toMatchObject({ status: 400, param: 'after' })
  })
})

describe('previous_response_id', () => {
  test('adds earlier input and output, but not earlier instructions, before the new input', async () => {
    const { visitor } = await start()
    const one = await visitor.responses.create({ input: '{{up:text One.}} a', instructions: 'Be brief.' })
    for (const text of ['b', 'c']) {
      await visitor.responses.create({ input: text, previous_response_id: one.id })
      expect(await lastMessages()).toMatchObject([
        { role: 'user', content: '{{up:text One.}} a' },
        { role: 'assistant', content: 'One.' },
        { role: 'user', content: text },
      ])
    }
  })

  test('allows references to items, and does not repeat items that the chain already contains', async () => {
    const { visitor } = await start()
    const [one, other] = [
      await visitor.responses.create({ input: '{{up:text One.}}' }),
      await visitor.responses.create({ input: '{{up:text Other.}}' }),
    ]
    const idOf = ({ output }: OpenAI.Responses.Response) => (output[0] as { id: string }).id
    const refer = (id: string) => ({ type: 'item_reference' as const, id })
    const input = [refer(idOf(one)), refer(idOf(other)), { role: 'user' as const, content: 'b' }]
    await visitor.responses.create({ input, previous_response_id: one.id })
    const said = (await lastMessages()).map(({ content }) => content)
    expect(said).toEqual(['{{up:text One.}}', 'One.', 'Other.', 'b'])
    const wrong = await failureOf(visitor.responses.create({ input: [refer('msg_x')] }))
    expect(wrong).toMatchObject({ status: 400, param: 'input[0].id' })
  })

  test('returns 400 with the position of a tool output that has no matching call', async () => {
    const { visitor } = await start()
    const one = await visitor.responses.create({ input: 'a' })
    const output = { type: 'function_call_output' as const, call_id: 'x', output: 'y' }
    const request = visitor.responses.create({ input: [output], previous_response_id: one.id })
    expect(await failureOf(request)).toMatchObject({ status: 400, param: 'input[0].call_id' })
  })

  test('is rejected if it is unknown, belongs to another agent, or is too old for an agent key', async () => {
    const { app, visitor, owner, model, clock } = await start()
    const { id } = await visitor.responses.create({ input: 'a' })
    const other = await createKeeper(app)
    const notFound = { status: 400, code: 'previous_response_not_found', param: 'previous_response_id' }
    const failWith = (client: OpenAI, previous: string, named?: string) =>
      failureOf(
        client.responses.create({
          input: 'b',
          previous_response_id: previous,
          ...(named && { model: named }),
        }),
      )
    expect(await failWith(visitor, 'resp_x')).toMatchObject(notFound)
    expect(await failWith(other.visitor, id)).toMatchObject(notFound)
    expect(await failWith(owner, id, other.model)).toMatchObject({ status: 400, code: 'agent_mismatch' })
    clock.advance(24 * 3600 + 1)
    expect(await failWith(visitor, id)).toMatchObject(notFound)
    expect(await failureOf(visitor.responses.retrieve(id))).toMatchObject({ status: 404 })
    expect(await owner.responses.create({ input: 'b', model, previous_response_id: id })).toMatchObject({
      status: 'completed',
    })
  })

  test('is rejected if the request also contains a conversation', async () => {
    const { owner, model } = await start()
    const both = { previous_response_id: 'resp_x', conversation: 'conv_x', model }
    const failure = await failureOf(owner.responses.create({ input: 'a', ...both }))
    expect(failure).toMatchObject({ status: 400, param: 'conversation' })
  })
})

describe('a background response', () => {
  test('can be polled until it ends', async () => {
    const { visitor } = await start()
    const queued = await visitor.responses.create({ input: '{{up:text Done.}}', background: true })
    expect(queued).toMatchObject({ status: 'queued', background: true, output: [] })
    const events = await collect(await visitor.responses.retrieve(queued.id, { stream: true }))
    expect(events.at(-1)).toMatchObject({ type: 'response.completed' })
    expect(await visitor.responses.retrieve(queued.id)).toMatchObject({
      status: 'completed',
      output_text: 'Done.',
    })
  })

  test('has the status failed if the model fails before the first event', async () => {
    const { visitor } = await start()
    const queued = await visitor.responses.create({ input: '{{up:status 400}}', background: true })
    const events = await collect(await visitor.responses.retrieve(queued.id, { stream: true }))
    expect(events.at(-1)).toMatchObject({ type: 'response.failed' })
    expect(await visitor.responses.retrieve(queued.id)).toMatchObject({ status: 'failed' })
  })

  test('can be cancelled twice and then continued with an empty input', async () => {
    const { visitor } = await start()
    const { id } = await visitor.responses.create({ input: '{{up:hang-after 2}}', background: true })
    const { id: seen } = await harness.upstream.waitForRequest('hang-after')
    const stream = await visitor.responses.retrieve(id, { stream: true })
    for await (const { type } of stream) if (type === 'response.output_text.delta') break
    expect(await visitor.responses.cancel(id)).toMatchObject({ status: 'cancelled' })
    expect((await harness.upstream.waitForEnd(seen)).endedBy).toBe('client')
    const cancelled = await visitor.responses.cancel(id)
    expect(cancelled).toMatchObject({
      status: 'cancelled',
      incomplete_details: { reason: 'interrupted' },
    })
    await harness.answerWith({ choices: [{ message: { role: 'assistant', content: 'rest' } }] }, 1)
    await visitor.responses.create({ input: [], previous_response_id: id })
    const messages = await lastMessages()
    expect(messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'user'])
    expect(messages[1]?.content).toBe((await visitor.responses.retrieve(id)).output_text)
    expect(messages[2]?.content).toContain('interrupted')
  })

  test('cannot be cancelled, or continued without input, after it has completed', async () => {
    const { visitor } = await start()
    const { id } = await visitor.responses.create({ input: 'a' })
    expect(await failureOf(visitor.responses.cancel(id))).toMatchObject({
      status: 400,
      code: 'not_cancellable',
    })
    const request = visitor.responses.create({ input: [], previous_response_id: id })
    expect(await failureOf(request)).toMatchObject({ status: 400, param: 'input' })
  })
})

describe('a conversation in the Responses API', () => {
  test('precedes the input, belongs to its first agent, and allows one turn at a time', async () => {
    const { app, owner, model } = await start()
    const { id } = await owner.conversations.create()
    const one = await owner.responses.create({ input: '{{up:text One.}}', model, conversation: id })
    expect(one.conversation).toEqual({ id })
    await owner.responses.create({ input: 'b', model, conversation: { id } })
    expect((await lastMessages()).map(({ content }) => content)).toEqual(['{{up:text One.}}', 'One.', 'b'])
    const other = await createKeeper(app)
    const mismatch = owner.responses.create({ input: 'c', model: other.model, conversation: id })
    expect(await failureOf(mismatch)).toMatchObject({ status: 400, code: 'agent_mismatch' })
    const running = await owner.responses.create({
      ...{ input: '{{up:hang-after 2}}', model, conversation: id, background: true },
    })
    const locked = await failureOf(owner.responses.create({ input: 'd', model, conversation: id }))
    expect(locked).toMatchObject({ status: 409, code: 'conversation_locked' })
    await owner.delete(`/responses/${running.id}`)
    expect(await owner.responses.create({ input: 'e', model, conversation: id })).toMatchObject({
      status: 'completed',
    })
  })

  test('continues with an empty history after all of its turns are deleted', async () => {
    const { app, owner, model } = await start()
    const { id } = await owner.conversations.create()
    const listTurns = async () => (await app.call('GET', `/v1/conversations/${id}/turns`)).body.data
    const one = await owner.responses.create({ input: 'one', model, conversation: id })
    const two = await owner.responses.create({ input: 'two', model, conversation: id })
    expect(await listTurns()).toHaveLength(2)
    for (const response of [one, two]) await owner.delete(`/responses/${response.id}`)
    expect(await listTurns()).toEqual([])
    const next = await owner.responses.create({ input: 'three', model, conversation: id })
    expect(next).toMatchObject({ status: 'completed', conversation: { id } })
    expect((await lastMessages()).map(({ content }) => content)).toEqual(['three'])
    expect(await listTurns()).toHaveLength(1)
  })
})
