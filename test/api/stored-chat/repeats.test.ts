/** Tests that a stored chat with an idempotency key runs once, no matter how often the client repeats it. */
import { describe, expect, test } from 'vitest'
import { createTenant } from '../../support/agents.ts'
import { type Answer, readEvents } from '../../support/app.ts'
import { startChatHarness } from '../../support/chat-harness.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import { listTurns, openStream, sendChat, splitStream, storingAgent } from '../../support/stored-chats.ts'

const harness = await startChatHarness()
const KEY = { 'Idempotency-Key': 'order-7' }
const DAY_SECONDS = 86_400

async function startStoring(env: Readonly<Record<string, string>> = {}) {
  const clock = createFakeClock()
  const app = await harness.start(env, { clock })
  const { agent_key: key } = await app.createAgent(storingAgent())
  return { app, key, clock }
}

function turnOf({ headers }: Pick<Answer, 'headers'>): string | null {
  return headers.get('x-parley-turn')
}

describe('a repeated request with the same idempotency key', () => {
  test.each([true, false])(
    'returns the same answer after the turn has ended (stream: %s)',
    async (stream) => {
      const { app, key } = await startStoring()
      const options = { key, headers: KEY, more: { stream } }
      const first = await sendChat(app, 'hello', options)
      const second = await sendChat(app, 'hello', options)
      expect([second.status, second.text, turnOf(second)]).toEqual([200, first.text, turnOf(first)])
      expect(second.headers.get('content-type')).toBe(first.headers.get('content-type'))
      expect(await harness.listChats()).toHaveLength(1)
    },
  )

  test('returns the stream of the running turn from its first event', async () => {
    const { app, key } = await startStoring()
    const options = { key, headers: KEY }
    const text = '{{up:chunks 12}}{{up:delay 20}}'
    const running = await openStream(app, text, options)
    await running.readEvents(4)
    const repeated = await sendChat(app, text, options)
    expect(repeated.text).toBe(await running.readAll())
    expect(await harness.listChats()).toHaveLength(1)
  })

  test("counts toward the stream limit of the client's address", async () => {
    const { app, key } = await startStoring({ PARLEY_MAX_STREAMS_ADDRESS: '2' })
    const text = '{{up:chunks 5}}{{up:hang-after 2}}'
    const options = { key, headers: KEY }
    const first = await openStream(app, text, options)
    await first.readEvents(1)
    const repeated = await openStream(app, text, options)
    await repeated.readEvents(1)
    const { status, body } = await sendChat(app, text, options)
    expect([status, body.error.code]).toEqual([429, 'rate_limit_exceeded'])
    repeated.disconnect()
    const next = async () => (await openStream(app, text, options)).headers.get('x-parley-turn')
    await expect.poll(next).toBe(first.headers.get('x-parley-turn'))
  })

  test('waits for the running turn if the completion is not streamed', async () => {
    const { app, key } = await startStoring()
    const text = 'hello {{up:slow-head 300}}'
    const options = { key, headers: KEY, more: { stream: false } }
    const first = sendChat(app, text, options)
    await harness.upstream.waitForRequest('slow-head')
    const second = await sendChat(app, text, options)
    expect(second.text).toBe((await first).text)
    expect(await harness.listChats()).toHaveLength(1)
  })

  test.each([true, false])(
    'calls the model only once even if 100 requests arrive at the same time (stream: %s)',
    async (stream) => {
      const { app, key } = await startStoring({
        PARLEY_RATE_LIMIT_AGENT_ADDRESS: '1000',
        PARLEY_MAX_STREAMS_AGENT: '1000',
        PARLEY_MAX_STREAMS_ADDRESS: '1000',
      })
      const options = { key, headers: KEY, more: { stream } }
      const answers = await Promise.all(
        Array.from({ length: 100 }, () => sendChat(app, 'hello {{up:slow-head 100}}', options)),
      )
      expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
      expect(new Set(answers.map(({ text }) => text)).size).toBe(1)
      expect(new Set(answers.map(turnOf)).size).toBe(1)
      expect(await harness.listChats()).toHaveLength(1)
      expect(await listTurns(app)).toHaveLength(1)
    },
  )

  test.each<[what: string, text: string, more: object]>([
    ['a different message', 'goodbye', {}],
    ['a different setting', 'hello', { max_tokens: 7 }],
    ['a different value of `stream`', 'hello', { stream: false }],
  ])('returns 422 idempotency_key_reused if it has %s', async (_what, text, more) => {
    const { app, key } = await startStoring()
    await sendChat(app, 'hello', { key, headers: KEY })
    const { status, body } = await sendChat(app, text, { key, headers: KEY, more })
    expect([status, body.error.code]).toEqual([422, 'idempotency_key_reused'])
    expect(await harness.listChats()).toHaveLength(1)
  })

  test('starts a new turn after 24 hours', async () => {
    const { app, key, clock } = await startStoring()
    const first = await sendChat(app, 'hello', { key, headers: KEY })
    clock.advance(DAY_SECONDS)
    expect(turnOf(await sendChat(app, 'hello', { key, headers: KEY }))).toBe(turnOf(first))
    clock.advance(1)
    const later = await sendChat(app, 'goodbye', { key, headers: KEY })
    expect([later.status, turnOf(later)]).not.toEqual([200, turnOf(first)])
    expect(await harness.listChats()).toHaveLength(2)
  })

  test.each([true, false])(
    'calls the model again if the turn failed before the answer started (stream: %s)',
    async (stream) => {
      const { app, key } = await startStoring({ PARLEY_BACKEND_ATTEMPTS: '1' })
      const options = { key, headers: KEY, more: { stream } }
      const text = 'hello {{up:status 500}}{{up:first 1}}'
      const first = await sendChat(app, text, options)
      expect([first.status, first.body.error.code]).toEqual([502, 'backend_error'])
      const second = await sendChat(app, text, options)
      expect(second.status).toBe(200)
      expect(await harness.listChats()).toHaveLength(2)
    },
  )

  test('returns the same interrupted stream if the turn failed mid-answer', async () => {
    const { app, key } = await startStoring()
    const text = 'a b c {{up:usage never}}{{up:reset-after 3}}'
    const first = await sendChat(app, text, { key, headers: KEY })
    const second = await sendChat(app, text, { key, headers: KEY })
    expect(second.text).toBe(first.text)
    expect(readEvents(second.text).events.at(-1).error.code).toBe('stream_interrupted')
    expect(await harness.listChats()).toHaveLength(1)
  })
})

describe('an idempotency key', () => {
  test('applies only to the agent or parent key that uses it', async () => {
    const { app, key } = await startStoring()
    const { agent_key: otherAgent } = await app.createAgent(storingAgent())
    const otherTenant = await createTenant(app)
    const { agent_key: theirs } = await app.createAgent(storingAgent(), otherTenant)
    const answers = []
    for (const caller of [key, otherAgent, theirs])
      answers.push(await sendChat(app, `hello ${answers.length}`, { key: caller, headers: KEY }))
    const { body } = await app.call('GET', '/v1/agents', {})
    const more = { model: `agent/${body.data[0].id}` }
    answers.push(await sendChat(app, 'hello', { headers: KEY, more }))
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200])
    expect(new Set(answers.map(turnOf)).size).toBe(4)
  })

  test('is not stored in plain text', async () => {
    const { app, key } = await startStoring()
    await sendChat(app, 'hello', { key, headers: KEY })
    expect(JSON.stringify(await listTurns(app))).not.toContain('order-7')
  })

  test.each([
    ['is empty', ''],
    ['contains a space', 'a b'],
    ['contains a character that is not ASCII', 'caf\u00e9'],
    ['has 256 characters', 'k'.repeat(256)],
  ])('returns 400 if it %s', async (_what, value) => {
    const { app, key } = await startStoring()
    const { status, body } = await sendChat(app, 'hello', { key, headers: { 'Idempotency-Key': value } })
    expect([status, body.error.code]).toEqual([400, 'invalid_value'])
    expect(body.error.message).toBe('Idempotency-Key: must be 1 to 255 visible ASCII characters')
    expect(await harness.listChats()).toHaveLength(0)
  })

  test('can have 255 characters', async () => {
    const { app, key } = await startStoring()
    const headers = { 'Idempotency-Key': 'k'.repeat(255) }
    const [first, second] = [
      await sendChat(app, 'hello', { key, headers }),
      await sendChat(app, 'hello', { key, headers }),
    ]
    expect(splitStream(second.text)).toEqual(splitStream(first.text))
  })
})
