/** Tests the costs of stored turns, and who can read them. */
import { expect, test } from 'vitest'
import { startApp } from '../../support/app.ts'
import { writeConfigFile } from '../../support/config-file.ts'
import { type Plan, startMeteredProvider } from '../../support/metered-provider.ts'
import { tool } from '../../support/tools.ts'
import { beginSession, followUntil, isEnd, say, sayAndWait } from '../../support/visitors.ts'

const usage = { prompt_tokens: 1000, completion_tokens: 100, total_tokens: 1100 }
const prices = 'prices: { gateway/metered: [{ per_million: { input: 1, output: 1 } }] }\n'
const definition =
  'name: Guide\ninstructions: Help.\nmodel: metered\ntools: [lookup]\nconversations: { keep: 30d }\n'

/** Starts a service whose provider answers requests as `plan` returns, in order. */
async function startPriced(plan: (text: string, round: number) => Plan | Promise<Plan>, yaml = definition) {
  const provider = await startMeteredProvider(({ messages }) => {
    const text = JSON.stringify(messages.findLast(({ role }) => role === 'user')?.content)
    return plan(text, messages.at(-1)?.role === 'tool' ? 2 : 1)
  })
  const app = await startApp(
    {
      PARLEY_CONFIG: await writeConfigFile(prices),
      PARLEY_BACKEND: 'gateway',
      PARLEY_GATEWAY_URL: provider.url,
    },
    { tools: { lookup: tool(() => 'found') } },
  )
  const { agent_key: key } = await app.createAgent(yaml)
  const visitor = await beginSession(app, key)
  const readTurn = async (id: string) => (await app.call('GET', `/v1/turns/${id}`)).body
  const readConversation = async (id: string) =>
    (await app.call('GET', `/v1/conversations/${id}`)).body.parley
  return { app, key, visitor, readTurn, readConversation }
}

const toolFirst = (_text: string, round: number): Plan =>
  round === 1 ? { usage, tool: 'lookup' } : { usage }

test("the cost of a stored turn is the total of its calls, and the conversation's cost is the total of its turns", async () => {
  const { app, visitor, readTurn, readConversation } = await startPriced(toolFirst)
  const { sent } = await sayAndWait(visitor, 'first')
  const conversation = sent.conversation.id
  expect((await readTurn(sent.turn.id)).cost).toBe('0.0022')
  const next = await sayAndWait(visitor, 'second', { conversation })
  expect((await readTurn(next.sent.turn.id)).cost).toBe('0.0022')
  expect((await readConversation(conversation)).cost).toBe('0.0044')
  const { body } = await app.call('GET', `/v1/conversations/${conversation}/turns`)
  expect(body.data.map(({ cost }: { cost: string }) => cost)).toEqual(['0.0022', '0.0022'])
  const { text } = await app.call('GET', '/v1/conversations/export')
  const [line] = text.split('\n').map((one) => one && JSON.parse(one))
  expect(line).toMatchObject({ object: 'turn', cost: '0.0022', conversation: { parley: { cost: '0.0044' } } })
})

test('a failed turn has the cost of the calls that preceded the failure', async () => {
  const { visitor, readTurn, readConversation } = await startPriced((_text, round) =>
    round === 1 ? { usage, tool: 'lookup' } : { status: 400 },
  )
  const { sent } = await sayAndWait(visitor, 'Hello')
  const turn = await readTurn(sent.turn.id)
  expect([turn.error_code, turn.cost]).toEqual([expect.any(String), '0.0011'])
  expect((await readConversation(sent.conversation.id)).cost).toBe('0.0011')
})

test('a cancelled turn has the estimated cost of its input', async () => {
  const asked = Promise.withResolvers<void>()
  const { visitor, readTurn } = await startPriced(() => {
    asked.resolve()
    return new Promise<Plan>(() => {})
  })
  const sent = await say(visitor, 'Hello')
  await asked.promise
  await visitor.visitor.cancel.mutate({ turn: sent.turn.id })
  await followUntil(visitor, { conversation: sent.conversation.id, cursor: sent.cursor }, isEnd)
  const turn = await readTurn(sent.turn.id)
  expect(turn.status).toBe('cancelled')
  expect(Number(turn.cost)).toBeGreaterThan(0)
})

test("the cost of a turn is null without a price, and its conversation's total includes only the other turns", async () => {
  const { app, key, readTurn, readConversation } = await startPriced(
    () => ({ usage }),
    definition.replace('model: metered\n', ''),
  )
  const ask = (model: string, more: object = {}) =>
    app.call('POST', '/v1/responses', { key, body: { model, input: 'Hello', ...more } })
  const first = await ask('spare')
  const { cost, conversation_id: conversation } = await readTurn(first.headers.get('x-parley-turn') ?? '')
  expect([cost, (await readConversation(conversation)).cost]).toEqual([null, null])
  const second = await ask('metered', { previous_response_id: first.body.id })
  await ask('spare', { previous_response_id: second.body.id })
  expect(await readConversation(conversation)).toMatchObject({ turns: 3, cost: '0.0011' })
})

test('agent keys and visitors do not receive the cost of a turn', async () => {
  const { app, key, visitor } = await startPriced(toolFirst)
  const { sent, events } = await sayAndWait(visitor, 'Hello')
  const conversation = sent.conversation.id
  const opened = await visitor.visitor.open.query({ conversation })
  const list = await visitor.visitor.conversations.query({})
  const answer = await app.call('POST', '/v1/responses', { key, body: { model: 'metered', input: 'Hi' } })
  const again = await app.call('GET', `/v1/responses/${answer.body.id}`, { key })
  expect(JSON.stringify([sent, events, opened, list, answer.body, again.body])).not.toMatch(/cost/i)
  for (const path of [`/v1/turns/${sent.turn.id}`, `/v1/conversations/${conversation}`])
    expect((await app.call('GET', path, { key })).text).not.toMatch(/cost/i)
})
