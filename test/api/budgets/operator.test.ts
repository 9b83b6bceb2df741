/** Tests the budgets that administrators set on a key. */
import { expect, test } from 'vitest'
import { asAdmin, startAdminApp } from '../../support/admin.ts'
import { ownerOf } from '../../support/usage.ts'

test('a key owner sees the budgets that administrators set on the key, but cannot change, raise or correct them', async () => {
  const app = await startAdminApp()
  const path = `/keys/${ownerOf(app).tenantId}/budgets`
  const limits = { budgets: [{ unit: 'tokens', period: 'month', limit: '1000' }] }
  expect((await asAdmin(app, 'PUT', path, { body: limits })).status).toBe(200)
  const [budget] = (await app.call('GET', '/v1/budgets')).body.data
  expect(budget).toMatchObject({ limit: '1000', managed_by: 'operator' })
  const entry = { amount: '500', reason: 'more' }
  for (const [method, more, body] of [
    ['PATCH', '', { limit: '2000' }],
    ['DELETE', '', undefined],
    ['POST', '/grants', entry],
    ['POST', '/adjustments', entry],
  ] as const) {
    const answer = await app.call(method, `/v1/budgets/${budget.id}${more}`, body && { body })
    expect([method, more, answer.status]).toEqual([method, more, 403])
  }
  expect((await app.call('GET', `/v1/budgets/${budget.id}`)).body).toEqual(budget)
})
