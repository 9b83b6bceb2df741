/** Tests grants, which raise a budget's limit, and adjustments of what a budget has booked. */
import { describe, expect, test } from 'vitest'
import { startApp } from '../../support/app.ts'
import { callBudgets, createBudget, ofKey } from '../../support/budgets.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import { sendChat } from '../../support/usage.ts'

const NOON = Date.UTC(2027, 0, 15, 12) / 1000

describe('a grant', () => {
  test('raises the limit of the current period until it expires', async () => {
    const clock = createFakeClock(NOON)
    const app = await startApp({}, { clock })
    const id = await createBudget(app, ofKey(app, { limit: 0 }))
    const grant = { amount: '5000', reason: 'launch week', expires_at: NOON + 3_600 }
    const { status, body } = await callBudgets(app, 'POST', `/${id}/grants`, grant)
    expect(status).toBe(201)
    expect(body).toEqual({
      ...{ object: 'budget.grant', id: expect.any(String), budget_id: id, amount: '5000' },
      ...{ reason: 'launch week', subject: null, created_at: NOON, expires_at: NOON + 3_600 },
    })
    expect((await callBudgets(app, 'GET', `/${id}`)).body).toMatchObject({
      granted: '5000',
      remaining: '5000',
    })
    expect((await sendChat(app, 'hello')).status).toBe(200)
    clock.advance(3_600)
    expect((await sendChat(app, 'hello')).status).toBe(429)
    await callBudgets(app, 'POST', `/${id}/grants`, { amount: 100_000, reason: 'until midnight' })
    expect((await sendChat(app, 'hello')).status).toBe(200)
    clock.advance(12 * 3_600)
    expect((await sendChat(app, 'the next day')).status).toBe(429)
  })

  test.each<[string, object, string]>([
    ['that has expired', { amount: 1, reason: 'r', expires_at: 5 }, 'expires_at'],
    ['without a reason', { amount: 1 }, 'reason'],
    ['that is negative', { amount: -1, reason: 'r' }, 'amount'],
    ['with a subject, for a key budget', { amount: 1, reason: 'r', subject: 'x' }, 'subject'],
  ])('%s is rejected', async (_what, body, param) => {
    const app = await startApp()
    const id = await createBudget(app, ofKey(app))
    const refused = await callBudgets(app, 'POST', `/${id}/grants`, body)
    expect([refused.status, refused.body.error.param]).toEqual([400, param])
  })
})

test('an adjustment corrects the booked amount, but not to less than zero', async () => {
  const app = await startApp({}, { clock: createFakeClock(NOON) })
  const id = await createBudget(app, ofKey(app))
  const adjust = (amount: unknown) =>
    callBudgets(app, 'POST', `/${id}/adjustments`, { amount, reason: 'refund 8812' })
  expect((await adjust('4900')).body).toEqual({
    ...{ object: 'budget.adjustment', id: expect.any(String), budget_id: id, amount: '4900' },
    ...{ reason: 'refund 8812', subject: null, created_at: NOON },
  })
  expect((await sendChat(app, 'hello')).status).toBe(429)
  expect((await adjust(-4_901)).body.error.param).toBe('amount')
  expect((await adjust(-4_900)).status).toBe(201)
  expect((await callBudgets(app, 'GET', `/${id}`)).body.booked).toBe('0')
  expect((await sendChat(app, 'hello')).status).toBe(200)
})
