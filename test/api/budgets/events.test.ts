/** Tests the events that budgets send to webhooks when they reach a threshold or are used up. */
import { describe, expect, test } from 'vitest'
import { createTenant } from '../../support/agents.ts'
import { startApp, type TestApp } from '../../support/app.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import { ownerOf, sendChat } from '../../support/usage.ts'
import {
  allowLoopback,
  createWebhook,
  deliverDue,
  startReceiver,
  verify,
  withStatus,
} from '../../support/webhook-receiver.ts'

const NOON = Date.UTC(2027, 0, 15, 12) / 1000
const events = ['budget.threshold_reached', 'budget.exhausted']

async function start(limit: number | string, more: object = {}) {
  const clock = createFakeClock(NOON)
  const app = await startApp(allowLoopback, { clock })
  const receiver = await startReceiver()
  const webhook = await createWebhook(app, { url: receiver.url, events })
  const budget = await createBudget(app, { limit, ...more })
  const sent = async () => {
    await deliverDue(app)
    return receiver.received.map(({ body }) => body.data.threshold).sort((one, other) => one - other)
  }
  return { app, clock, receiver, webhook, id: budget.id, sent }
}

async function createBudget(app: TestApp, more: object) {
  const scope = { type: 'key', id: ownerOf(app).tenantId }
  const { status, body, text } = await app.call('POST', '/v1/budgets', {
    body: { scope, period: 'day', limit: 1_000_000, ...more },
  })
  if (status !== 201) throw new Error(text)
  return body
}

/** Books an amount as if calls had used it. */
async function adjust(app: TestApp, id: string, amount: number, more: object = {}) {
  const body = { amount, reason: 'test', ...more }
  const { status, text } = await app.call('POST', `/v1/budgets/${id}/adjustments`, { body })
  if (status !== 201) throw new Error(text)
}

describe('warn_at', () => {
  test('defaults to 50, 80 and 100, is sorted and deduplicated, and can be changed', async () => {
    const app = await startApp()
    const { id, warn_at } = await createBudget(app, {})
    expect(warn_at).toEqual([50, 80, 100])
    const changed = await app.call('PATCH', `/v1/budgets/${id}`, { body: { warn_at: [90, 10, 90] } })
    expect(changed.body.warn_at).toEqual([10, 90])
    expect((await createBudget(app, { period: 'week', warn_at: [] })).warn_at).toEqual([])
  })

  test.each([[[0]], [[101]], [[50.5]], [['50']], ['50'], [Array(11).fill(1)]])(
    'is rejected as %j',
    async (warn_at) => {
      const app = await startApp()
      const scope = { type: 'key', id: ownerOf(app).tenantId }
      const { status, body } = await app.call('POST', '/v1/budgets', {
        body: { scope, period: 'day', limit: 10, warn_at },
      })
      expect(status).toBe(400)
      expect(body.error.param).toMatch(/^warn_at/)
    },
  )
})

describe('a budget', () => {
  test('sends one signed event for each threshold, with its amounts', async () => {
    const { app, receiver, webhook, id, sent } = await start(1_000_000)
    await adjust(app, id, 499_999)
    expect(await sent()).toEqual([])
    await adjust(app, id, 1)
    await adjust(app, id, 1)
    expect(await sent()).toEqual([50])
    const [first] = receiver.received
    expect(first?.body).toEqual({
      type: 'budget.threshold_reached',
      timestamp: '2027-01-15T12:00:00Z',
      data: {
        ...{
          agent_id: null,
          budget_id: id,
          scope: { type: 'key', id: ownerOf(app).tenantId },
          subject: null,
        },
        ...{ unit: 'tokens', period: 'day', period_start: Date.UTC(2027, 0, 15) / 1000 },
        ...{ limit: '1000000', granted: '0', booked: '500000', threshold: 50 },
      },
    })
    expect(verify(webhook.secret, first as never)).toEqual(first?.body)
    const row = await app.service.deps.db.selectFrom('budget_events').selectAll().executeTakeFirstOrThrow()
    expect(first?.id).toBe(row.id)
    await adjust(app, id, 600_000)
    expect(await sent()).toEqual([50, 80, 100])
    const types = receiver.received.map(({ body }) => body.type).sort()
    expect(types).toEqual(['budget.exhausted', ...Array(2).fill('budget.threshold_reached')])
  })

  test('sends an event when calls reach a threshold, and the event for 100 at the first rejected call', async () => {
    const { app, sent } = await start(600, { warn_at: [10, 100] })
    const { status } = await sendChat(app, '[[tokens:300]]', { max_tokens: 300 })
    expect(status).toBe(200)
    expect(await sent()).toEqual([10])
    for (let calls = 0; calls < 3; calls++)
      expect((await sendChat(app, 'hello', { max_tokens: 300 })).status).toBe(429)
    expect(await sent()).toEqual([10, 100])
  })

  test('in observe mode sends the event for 100 at the first call that it would have rejected', async () => {
    const { app, sent } = await start(10, { mode: 'observe', warn_at: [100] })
    expect((await sendChat(app, 'hello')).status).toBe(200)
    expect((await sendChat(app, 'hello')).status).toBe(200)
    expect(await sent()).toEqual([100])
  })

  test('sends the events again in the next period', async () => {
    const { app, clock, id, sent } = await start(1_000)
    await adjust(app, id, 1_000)
    clock.advance(86_400)
    await adjust(app, id, 500)
    expect(await sent()).toEqual([50, 50, 80, 100])
  })

  test('whose limit was raised sends the events for the new limit that have not been reached yet', async () => {
    const { app, id, sent } = await start(1_000)
    await adjust(app, id, 1_000)
    await app.call('PATCH', `/v1/budgets/${id}`, { body: { limit: 2_000 } })
    await adjust(app, id, 599)
    expect(await sent()).toEqual([50, 80, 100])
    await adjust(app, id, 1)
    expect(await sent()).toEqual([50, 80, 80, 100])
    await app.call('POST', `/v1/budgets/${id}/grants`, { body: { amount: 2_000, reason: 'more' } })
    await adjust(app, id, 400)
    expect(await sent()).toEqual([50, 50, 80, 80, 100])
  })

  test('does not send an event again after a refund', async () => {
    const { app, id, sent } = await start(1_000)
    await adjust(app, id, 500)
    await adjust(app, id, -100)
    await adjust(app, id, 100)
    expect(await sent()).toEqual([50])
  })

  test('whose limit was lowered sends the events at the next change', async () => {
    const { app, id, sent } = await start(1_000)
    await adjust(app, id, 450)
    await app.call('PATCH', `/v1/budgets/${id}`, { body: { limit: 500 } })
    expect(await sent()).toEqual([])
    await adjust(app, id, 1)
    expect(await sent()).toEqual([50, 80])
  })

  test('in US dollars sends its amounts as decimal numbers', async () => {
    const { app, id, receiver, sent } = await start('25', { unit: 'usd' })
    await adjust(app, id, 12.5)
    expect(await sent()).toEqual([50])
    const amounts = { unit: 'usd', limit: '25', granted: '0', booked: '12.5' }
    expect(receiver.received[0]?.body.data).toMatchObject(amounts)
  })

  test('for visitors sends an event for each visitor, with a pseudonym', async () => {
    const app = await startApp(allowLoopback)
    const receiver = await startReceiver()
    const { agent_id: agentId } = await app.createAgent()
    await createWebhook(app, { url: receiver.url, events, agent_id: agentId })
    await createBudget(app, { scope: { type: 'visitor', id: agentId }, limit: 5_000, warn_at: [1] })
    for (const user of ['one', 'two', 'two'])
      expect((await sendChat(app, '[[tokens:60]]', { model: `agent/${agentId}`, user })).status).toBe(200)
    await deliverDue(app)
    const subjects = receiver.received.map(({ body }) => body.data.subject)
    expect(new Set(subjects).size).toBe(2)
    expect(receiver.received).toHaveLength(2)
    expect(receiver.received.every(({ body }) => body.data.agent_id === agentId)).toBe(true)
  })

  test('sends its events only to the webhooks of its tenant', async () => {
    const { app, id, receiver, sent } = await start(1_000)
    await createWebhook(app, { url: `${receiver.url}/foreign`, events }, await createTenant(app))
    await adjust(app, id, 500)
    expect(await sent()).toEqual([50])
  })

  test('resends an event with the same id until the receiver accepts it', async () => {
    const { app, clock, id, receiver } = await start(1_000)
    receiver.answerNext(...Array(7).fill(withStatus(500)))
    await adjust(app, id, 500)
    await deliverDue(app)
    // Each wait, with the longest random extension.
    for (const minutes of [0.1, 5.5, 33, 132, 330, 660, 924]) {
      clock.advance(minutes * 60)
      await deliverDue(app)
    }
    clock.advance(86_400)
    await deliverDue(app)
    expect(receiver.received).toHaveLength(8)
    expect(new Set(receiver.received.map((each) => each.id)).size).toBe(1)
  })

  test('drops events that are still waiting 8 days after they were created', async () => {
    const { app, clock, id } = await start(1_000)
    await adjust(app, id, 500)
    const { db, budgets } = app.service.deps
    const count = async () => (await db.selectFrom('budget_events').select('id').execute()).length
    clock.advance(7 * 86_400)
    await budgets.gate.maintain()
    expect(await count()).toBe(1)
    clock.advance(2 * 86_400)
    await budgets.gate.maintain()
    expect(await count()).toBe(0)
  })
})
