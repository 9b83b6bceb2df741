/** Tests that agent keys, visitors and other tenants learn no cost, amount or id of a budget. */
import { expect, test } from 'vitest'
import { createTenant } from '../../support/agents.ts'
import { type Answer, startApp, type TestApp } from '../../support/app.ts'
import { writeConfigFile } from '../../support/config-file.ts'
import { startMeteredProvider } from '../../support/metered-provider.ts'
import { callProcedure } from '../../support/rpc.ts'
import { storingAgent } from '../../support/stored-chats.ts'
import { ownerOf } from '../../support/usage.ts'
import { beginSession, followUntil, isEnd, say } from '../../support/visitors.ts'

const PRICES = `
prices:
  gateway/metered:
    - per_million: { input: 7, output: 9 }
      per_call: "0.001234567"
`
/** Amounts that appear nowhere else: costs contain the fee, and the limits begin with these digits. */
const secret = /cost|bud_|budget_id|price_id|1234567|0\.00\d|7\.7|777/i

async function startPriced() {
  // Some providers report costs.
  const usage = { prompt_tokens: 100, completion_tokens: 10, total_tokens: 110, cost: 0.00777 }
  const provider = await startMeteredProvider(() => ({ usage }))
  const app = await startApp({
    PARLEY_CONFIG: await writeConfigFile(PRICES),
    PARLEY_BACKEND: 'gateway',
    PARLEY_GATEWAY_URL: provider.url,
    PARLEY_BUDGET_WAIT_SECONDS: '0',
  })
  const { agent_id: id, agent_key: key } = await app.createAgent(
    JSON.stringify({ ...JSON.parse(storingAgent()), model: 'metered' }),
  )
  const ids: string[] = []
  for (const scope of [
    { type: 'key', id: ownerOf(app).tenantId },
    { type: 'agent', id },
    { type: 'visitor', id },
    { type: 'conversation', id },
  ]) {
    const body = { scope, unit: 'usd', period: 'day', limit: '7.77' }
    const created = await app.call('POST', '/v1/budgets', { body })
    expect(created.status).toBe(201)
    ids.push(created.body.id)
  }
  return { app, key, ids }
}

/** Calls every API that an agent key can use. */
async function callEveryApi(app: TestApp, key: string, model: string): Promise<Answer[]> {
  const messages = [{ role: 'user', content: 'hello' }]
  const chat = (more: object) =>
    app.call('POST', '/v1/chat/completions', { key, body: { model, messages, ...more } })
  const respond = (more: object) =>
    app.call('POST', '/v1/responses', { key, body: { model, input: 'hello', ...more } })
  return Promise.all([
    chat({}),
    chat({ stream: true, stream_options: { include_usage: true } }),
    chat({ store: true }),
    respond({}),
    respond({ stream: true }),
    app.call('POST', '/v1/embeddings', { key, body: { model, input: 'hello' } }),
    app.call('GET', '/v1/models', { key }),
    app.call('GET', '/v1/usage', { key }),
    app.call('GET', '/v1/usage/calls', { key }),
    app.call('GET', '/v1/budgets', { key }),
    app.call('GET', '/v1/prices?model=metered', { key }),
    app.call('GET', '/v1/conversations', { key }),
  ])
}

function expectNoSecret(answers: readonly Answer[]): void {
  for (const { text, headers } of answers) {
    // Ids are random, and could contain any digits.
    const all = `${text} ${JSON.stringify([...headers])}`.replace(
      /\b(chatcmpl|resp|msg|turn|conv|req|item)[-_]?\w+/g,
      '',
    )
    expect(all).not.toMatch(secret)
  }
}

test('no response to an agent key contains a cost, an amount or the id of a budget', async () => {
  const { app, key, ids } = await startPriced()
  const answered = await callEveryApi(app, key, 'metered')
  expect(answered.slice(0, 6).map(({ status }) => status)).toEqual([
    200,
    200,
    200,
    200,
    200,
    expect.any(Number),
  ])
  const unpriced = await callEveryApi(app, key, 'spare')
  expect(unpriced.slice(0, 5).map(({ status }) => status)).toEqual([403, 403, 403, 403, 403])
  for (const id of ids) await app.call('PATCH', `/v1/budgets/${id}`, { body: { limit: 0 } })
  const refused = await callEveryApi(app, key, 'metered')
  expect(refused.slice(0, 5).map(({ status }) => status)).toEqual([429, 429, 429, 429, 429])
  const own = await Promise.all([
    ...ids.map((id) => app.call('GET', `/v1/budgets/${id}`, { key })),
    ...ids.map((id) => app.call('PATCH', `/v1/budgets/${id}`, { key, body: { limit: 1 } })),
  ])
  expect(own.map(({ status }) => status)).toEqual(own.map(() => 403))
  expectNoSecret([...answered, ...unpriced, ...refused])
})

test('no event of a conversation contains a cost, an amount or the id of a budget for its visitor', async () => {
  const { app, key, ids } = await startPriced()
  const one = await beginSession(app, key)
  const { conversation, cursor } = await say(one, 'hello')
  const events = await followUntil(one, { conversation: conversation.id, cursor }, isEnd)
  const opened = await one.visitor.open.query({ conversation: conversation.id })
  for (const id of ids) await app.call('PATCH', `/v1/budgets/${id}`, { body: { limit: 0 } })
  const again = await say(one, 'once more', { conversation: conversation.id })
  const failed = await followUntil(one, { conversation: conversation.id, cursor: again.cursor }, isEnd)
  expect(JSON.stringify(failed)).toContain('insufficient_quota')
  for (const seen of [events, opened, failed]) {
    const text = JSON.stringify(seen, (name, value) => (/id$|cursor|_at$/.test(name) ? undefined : value))
    expect(text).not.toMatch(secret)
  }
})

test("another tenant cannot find a budget, and its usage does not contain the first tenant's calls", async () => {
  const { app, ids } = await startPriced()
  const key = await createTenant(app)
  const callAll = async (id: string) => {
    const answers = await Promise.all([
      app.call('GET', `/v1/budgets/${id}`, { key }),
      app.call('PATCH', `/v1/budgets/${id}`, { key, body: { limit: 1 } }),
      app.call('DELETE', `/v1/budgets/${id}`, { key }),
      app.call('POST', `/v1/budgets/${id}/grants`, { key, body: { amount: 1, reason: 'r' } }),
      app.call('POST', `/v1/budgets/${id}/adjustments`, { key, body: { amount: 1, reason: 'r' } }),
      app.call('GET', `/v1/budgets/${id}/subjects`, { key }),
    ])
    // The errors name the id of the request.
    return answers.map(({ status, text }) => ({ status, text: text.replaceAll(id, 'the id') }))
  }
  const unknown = await callAll('bud_unknown')
  expect(unknown.map(({ status }) => status)).toEqual(Array(6).fill(404))
  for (const id of ids) expect(await callAll(id)).toEqual(unknown)
  expect((await app.call('GET', '/v1/budgets', { key })).body.data).toEqual([])
  expect((await app.call('GET', '/v1/usage', { key })).body.total.requests).toBe(0)
  expect((await callProcedure(app, 'budgets.get', { budget_id: ids[0] }, { key })).status).toBe(404)
})
