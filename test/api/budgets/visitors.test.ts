/** Tests budgets that limit each visitor or each conversation of an agent separately. */
import { describe, expect, test } from 'vitest'
import { startApp } from '../../support/app.ts'
import { callBudgets, createBudget, ofKey } from '../../support/budgets.ts'
import { STORING } from '../../support/conversations.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import { sendChat } from '../../support/usage.ts'

const NOON = Date.UTC(2027, 0, 15, 12) / 1000

describe('a visitor budget', () => {
  test('limits each visitor separately, and lists visitors by pseudonym, highest usage first', async () => {
    const app = await startApp()
    const { agent_id: id } = await app.createAgent()
    const budgetId = await createBudget(app, ofKey(app, { scope: { type: 'visitor', id }, limit: 600 }))
    expect((await callBudgets(app, 'GET', `/${budgetId}`)).body).toMatchObject({
      ...{ granted: null, booked: null, reserved: null, remaining: null, refused: null, limit: '600' },
    })
    const model = `agent/${id}`
    const ask = (visitor: string, tokens: number) =>
      sendChat(app, `[[tokens:${tokens}]]`, { model, safety_identifier: visitor, max_tokens: tokens })
    expect((await ask('ada', 300)).status).toBe(200)
    const refused = await ask('ada', 300)
    expect(refused.body.error.message).toBe('The token budget of this visitor for this day is used up.')
    expect((await ask('bob', 10)).status).toBe(200)
    const { body } = await callBudgets(app, 'GET', `/${budgetId}/subjects`)
    expect(body.data).toHaveLength(2)
    expect(Number(body.data[0].booked)).toBeGreaterThan(300)
    expect(body.data[0]).toMatchObject({ refused: 1, granted: '0', reserved: '0' })
    expect(Number(body.data[1].booked)).toBeLessThan(300)
    expect(JSON.stringify(body)).not.toMatch(/ada|bob/)
    const ascending = await callBudgets(app, 'GET', `/${budgetId}/subjects?order=booked&limit=1`)
    expect(ascending.body.data).toEqual([body.data[1]])
    const { subject } = body.data[0]
    const grant = { amount: '1000', reason: 'asked nicely', subject }
    expect((await callBudgets(app, 'POST', `/${budgetId}/grants`, grant)).status).toBe(201)
    expect((await ask('ada', 300)).status).toBe(200)
  })

  test('identifies visitors without an identity by their IP address', async () => {
    const app = await startApp()
    const { agent_id: id, agent_key } = await app.createAgent()
    await createBudget(app, ofKey(app, { scope: { type: 'visitor', id }, limit: 600 }))
    const body = { max_tokens: 300, model: undefined }
    expect((await sendChat(app, '[[tokens:300]]', body, agent_key)).status).toBe(200)
    expect((await sendChat(app, '[[tokens:300]]', body, agent_key)).status).toBe(429)
  })
})

test('visitor counters are deleted 8 days after their period, and key counters after 25 months', async () => {
  const clock = createFakeClock(NOON)
  const app = await startApp({}, { clock })
  const { agent_id: id } = await app.createAgent()
  const ofVisitors = await createBudget(app, ofKey(app, { scope: { type: 'visitor', id }, limit: 9_000 }))
  const day = await createBudget(app, ofKey(app, { limit: 9_000 }))
  const total = await createBudget(app, ofKey(app, { period: 'total', limit: 9_000 }))
  await sendChat(app, 'hi', { model: `agent/${id}`, safety_identifier: 'ada' })
  const { db, budgets: enforcer } = app.service.deps
  const listCounters = async () => {
    await enforcer.gate.maintain()
    const rows = await db.selectFrom('budget_counters').select('budget_id').execute()
    return rows.map(({ budget_id }) => budget_id).toSorted()
  }
  const DAY = 86_400
  clock.advance(8 * DAY)
  expect(await listCounters()).toEqual([ofVisitors, day, total].toSorted())
  clock.advance(DAY)
  expect(await listCounters()).toEqual([day, total].toSorted())
  clock.advance(752 * DAY)
  expect(await listCounters()).toEqual([day, total].toSorted())
  clock.advance(DAY)
  expect(await listCounters()).toEqual([total])
})

test('a conversation budget limits each stored conversation separately', async () => {
  const app = await startApp()
  const { agent_id: id } = await app.createAgent(STORING)
  const budgetId = await createBudget(app, {
    ...{ scope: { type: 'conversation', id }, period: 'total', limit: 600 },
  })
  const ask = (conversation: string | undefined) =>
    app.call('POST', '/v1/chat/completions', {
      body: {
        model: `agent/${id}`,
        messages: [{ role: 'user', content: '[[tokens:300]]' }],
        max_tokens: 300,
      },
      headers: conversation === undefined ? {} : { 'X-Parley-Conversation': conversation },
    })
  const first = await ask(undefined)
  expect(first.status).toBe(200)
  const conversation = first.headers.get('x-parley-conversation') as string
  const refused = await ask(conversation)
  expect(refused.body.error.message).toBe('The token budget of this conversation is used up.')
  expect((await ask(undefined)).status).toBe(200)
  expect((await callBudgets(app, 'GET', `/${budgetId}/subjects`)).body.data).toHaveLength(2)
})
