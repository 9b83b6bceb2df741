/** Tests stored conversations with the unmodified official OpenAI client. */
import OpenAI from 'openai'
import { describe, expect, test } from 'vitest'
import { systemClock } from '../../src/lib/clock.ts'
import { startAnswerCutter } from '../support/answer-cutter.ts'
import { startChatHarness } from '../support/chat-harness.ts'
import { collect, createKeeper, failureOf } from '../support/conversations.ts'

const harness = await startChatHarness()

async function start() {
  const app = await harness.start(
    { PARLEY_RECONNECT_SECONDS: '60', PARLEY_RATE_LIMIT_AGENT: '0', PARLEY_RATE_LIMIT_AGENT_ADDRESS: '0' },
    { clock: systemClock },
  )
  return { app, ...(await createKeeper(app)) }
}

/** Lists the roles and texts that the model received in each call, without the agent's instructions. */
async function listHeard(): Promise<string[][]> {
  const chats = await harness.listChats()
  return chats.map(({ body }) => {
    const { messages } = body as { messages: { role: string; content: string }[] }
    return messages.slice(1).map(({ role, content }) => `${role}: ${content}`)
  })
}

describe('the official client', () => {
  test('can continue a response, read its input items, and delete it', async () => {
    const { visitor } = await start()
    const first = await visitor.responses.create({ input: '{{up:text One.}} a' })
    const second = await visitor.responses.create({ input: 'b', previous_response_id: first.id })
    expect((await listHeard())[1]).toEqual(['user: {{up:text One.}} a', 'assistant: One.', 'user: b'])
    expect(await collect(visitor.responses.inputItems.list(second.id))).toMatchObject([
      { content: [{ type: 'input_text', text: 'b' }] },
    ])
    await visitor.responses.delete(second.id)
    expect(await failureOf(visitor.responses.retrieve(second.id))).toMatchObject({ status: 404 })
    expect((await visitor.responses.retrieve(first.id)).output_text).toBe('One.')
  })

  test('can add responses to a conversation and read, change and delete it', async () => {
    const { owner, model } = await start()
    const { id } = await owner.conversations.create({ metadata: { topic: 'a' } })
    await owner.conversations.items.create(id, { items: [{ role: 'user', content: 'before' }] })
    const response = await owner.responses.create({ model, input: '{{up:text One.}}', conversation: id })
    expect(response.conversation).toEqual({ id })
    await owner.responses.create({ model, input: 'b', conversation: { id } })
    expect((await listHeard())[1]).toEqual([
      'user: before',
      'user: {{up:text One.}}',
      'assistant: One.',
      'user: b',
    ])
    const items = await collect(owner.conversations.items.list(id, { order: 'asc', limit: 2 }))
    expect(items).toHaveLength(5)
    const item = items[2] as OpenAI.Conversations.Message
    expect(item).toMatchObject({ id: response.output[0]?.id, content: [{ text: 'One.' }] })
    expect(await owner.conversations.items.retrieve(item.id, { conversation_id: id })).toMatchObject(item)
    await owner.conversations.items.delete(item.id, { conversation_id: id })
    expect(await owner.conversations.update(id, { metadata: { topic: 'b' } })).toMatchObject({
      metadata: { topic: 'b' },
    })
    expect(await owner.conversations.delete(id)).toMatchObject({ id, deleted: true })
    expect(await failureOf(owner.conversations.retrieve(id))).toMatchObject({ status: 404 })
  })

  test('can poll a background response until it ends', async () => {
    const { visitor } = await start()
    const input = '{{up:chunks 5}}{{up:delay 200}}'
    let response = await visitor.responses.create({ input, background: true })
    const seen = new Set([response.status])
    while (response.status === 'queued' || response.status === 'in_progress') {
      response = await visitor.responses.retrieve(response.id)
      seen.add(response.status)
    }
    expect([...seen]).toEqual(['queued', 'in_progress', 'completed'])
    expect(response.output_text).toBe('w0 w1 w2 w3 w4 ')
  })

  test('can resume the stream of a background response after the last received event', async () => {
    const { visitor } = await start()
    const input = '{{up:reasoning Hm.}}{{up:chunks 40}}{{up:delay 5}}'
    const started = await visitor.responses.create({ input, background: true, stream: true })
    const events: OpenAI.Responses.ResponseStreamEvent[] = []
    for await (const event of started) if (events.push(event) === 12) break
    const [first] = events as [OpenAI.Responses.ResponseCreatedEvent]
    const query = { stream: true as const, starting_after: 11 }
    events.push(...(await collect(await visitor.responses.retrieve(first.response.id, query))))
    expect(events.map((event) => event.sequence_number)).toEqual(events.map((_, index) => index))
    const helper = visitor.responses.stream({ response_id: first.response.id, starting_after: 11 })
    expect(await collect(helper)).toEqual(events.slice(12).map((event) => expect.objectContaining(event)))
    expect((await helper.finalResponse()).status).toBe('completed')
    expect(await harness.listChats()).toHaveLength(1)
  })

  test('can cancel a background response, whose stream then ends as incomplete', async () => {
    const { visitor } = await start()
    const { id } = await visitor.responses.create({ input: '{{up:hang-after 3}}', background: true })
    const events: OpenAI.Responses.ResponseStreamEvent[] = []
    for await (const event of await visitor.responses.retrieve(id, { stream: true })) {
      events.push(event)
      if (event.type === 'response.output_text.delta') await visitor.responses.cancel(id)
    }
    expect(events.at(-1)).toMatchObject({ type: 'response.incomplete', response: { status: 'cancelled' } })
    const [call] = await harness.listChats()
    expect((await harness.upstream.waitForEnd(call?.id as number)).endedBy).toBe('client')
    expect(await visitor.responses.cancel(id)).toMatchObject({ id, status: 'cancelled' })
  })

  test.each(['responses', 'chat completions'])(
    'repeats a request for %s after a lost connection, and the model is called once',
    async (what) => {
      const { app, visitor } = await start()
      const cutter = await startAnswerCutter(app.url, () =>
        cutter.cuts < 2 ? 100 : Number.POSITIVE_INFINITY,
      )
      const client = new OpenAI({ baseURL: `${cutter.url}/v1`, apiKey: visitor.apiKey })
      const options = { headers: { 'Idempotency-Key': 'one' } }
      const text = '{{up:text Once.}}{{up:slow-head 50}}'
      if (what === 'responses')
        expect((await client.responses.create({ input: text }, options)).output_text).toBe('Once.')
      else {
        const messages = [{ role: 'user' as const, content: text }]
        const completion = await client.chat.completions.create({ model: 'up-chat', messages }, options)
        expect(completion.choices[0]?.message.content).toBe('Once.')
      }
      expect(cutter.cuts).toBe(2)
      expect(await harness.listChats()).toHaveLength(1)
    },
  )

  test('can stream a stored chat with its usage', async () => {
    const { visitor } = await start()
    const messages = [{ role: 'user' as const, content: '{{up:text One two.}}' }]
    const request = { model: 'up-chat', messages, stream_options: { include_usage: true } }
    const completion = await visitor.chat.completions.stream(request).finalChatCompletion()
    expect(completion.choices[0]?.message.content).toBe('One two.')
    expect(completion.usage?.completion_tokens).toBeGreaterThan(0)
  })
})
