/** Tests that budgets forget visitors and conversations when these are deleted. */
import { describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../support/app.ts'
import { maintain, storeChat } from '../../support/conversations.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import { eventually } from '../../support/process.ts'
import { storingAgent } from '../../support/stored-chats.ts'
import { sendChat } from '../../support/usage.ts'

/** Starts an app with a budget without a period for each visitor or conversation of an agent. */
async function start(type: 'visitor' | 'conversation') {
  const clock = createFakeClock()
  const app = await startApp({}, { clock })
  const { agent_id: agentId } = await app.createAgent(storingAgent())
  const { status, body } = await app.call('POST', '/v1/budgets', {
    body: { scope: { type, id: agentId }, period: 'total', limit: 100_000 },
  })
  expect(status).toBe(201)
  return { app, clock, agentId, budgetId: body.id as string }
}

async function listSubjects(app: TestApp, budgetId: string): Promise<string[]> {
  const { body } = await app.call('GET', `/v1/budgets/${budgetId}/subjects`)
  return body.data.map(({ subject }: { subject: string }) => subject)
}

async function countRows({ service }: TestApp) {
  const { db } = service.deps
  const counters = await db
    .selectFrom('budget_counters')
    .select('subject')
    .where('subject', '!=', '')
    .execute()
  const entries = await db.selectFrom('budget_entries').select('subject').execute()
  return { counters: counters.length, entries: entries.length }
}

describe('the counters and grants', () => {
  test('of a deleted conversation are deleted with it', async () => {
    const { app, agentId, budgetId } = await start('conversation')
    const first = await storeChat(app, agentId, 'hello')
    const [subject] = await listSubjects(app, budgetId)
    await app.call('POST', `/v1/budgets/${budgetId}/grants`, { body: { amount: 5, reason: 'more', subject } })
    await storeChat(app, agentId, 'hello')
    expect(await countRows(app)).toEqual({ counters: 2, entries: 1 })
    expect((await app.call('DELETE', `/v1/conversations/${first}`)).status).toBe(200)
    expect(await countRows(app)).toEqual({ counters: 1, entries: 0 })
    expect(await listSubjects(app, budgetId)).not.toContain(subject)
  })

  test('of an expired conversation are deleted with it', async () => {
    const { app, clock, agentId } = await start('conversation')
    await storeChat(app, agentId, 'hello')
    clock.advance(400 * 86_400)
    await maintain(app)
    expect(await countRows(app)).toEqual({ counters: 0, entries: 0 })
  })

  test('of an erased visitor are deleted, and those of others remain', async () => {
    const { app, agentId, budgetId } = await start('visitor')
    const more = (user: string) => ({ model: `agent/${agentId}`, safety_identifier: user })
    for (const user of ['ada', 'bob']) expect((await sendChat(app, 'hello', more(user))).status).toBe(200)
    expect(await countRows(app)).toEqual({ counters: 2, entries: 0 })
    const visitors = await app.call('GET', '/v1/visitors?subject=ada')
    const { body } = await app.call('DELETE', `/v1/visitors/${visitors.body.data[0].id}`)
    const readStatus = async () => (await app.call('GET', `/v1/erasures/${body.id}`)).body.status
    await eventually(readStatus, 'done')
    expect(await listSubjects(app, budgetId)).toHaveLength(1)
    // Bob's counter still applies.
    await sendChat(app, 'hello', more('bob'))
    expect(await listSubjects(app, budgetId)).toHaveLength(1)
  })

  test('are not created again by a call that ends after the deletion', async () => {
    const { app, agentId } = await start('conversation')
    const id = await storeChat(app, agentId, 'hello')
    const { budgets } = app.service.deps
    const spender = { tenantId: app.key.slice(4, 16), agentId, conversationId: id }
    const reservation = await budgets.reserve(
      spender,
      { messages: [], max_tokens: 10 },
      { price: undefined, metering: 'reported' },
    )
    await app.call('DELETE', `/v1/conversations/${id}`)
    await reservation?.settle({ tokens: 20n, usd: 0n })
    expect(await countRows(app)).toEqual({ counters: 0, entries: 0 })
    expect(await app.service.deps.db.selectFrom('budget_reservations').selectAll().execute()).toEqual([])
  })
})
