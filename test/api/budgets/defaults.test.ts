/** Tests the default budget of new agents, and that definitions never change budgets. */
import { describe, expect, test } from 'vitest'
import { GREETER, startApp, type TestApp } from '../../support/app.ts'
import { asUser, behindProxy, claimKey } from '../../support/console.ts'
import { ownerOf } from '../../support/usage.ts'

const withDefault = { PARLEY_BUDGET_DEFAULT_AGENT_USD: '2.50' }

async function listBudgets(app: TestApp, query = '') {
  return (await app.call('GET', `/v1/budgets?limit=100${query}`)).body.data
}

describe('a new agent', () => {
  test('has no budget by default', async () => {
    const app = await startApp()
    await app.createAgent()
    expect(await listBudgets(app)).toEqual([])
  })

  test('gets the daily budget of PARLEY_BUDGET_DEFAULT_AGENT_USD, which its owner can change and delete', async () => {
    const app = await startApp(withDefault)
    const { agent_id: id } = await app.createAgent()
    const [budget, ...others] = await listBudgets(app)
    expect(others).toEqual([])
    expect(budget).toMatchObject({
      ...{ scope: { type: 'agent', id }, unit: 'usd', period: 'day', limit: '2.5', booked: '0' },
      ...{ warn_at: [50, 80, 100], mode: 'enforce', managed_by: 'tenant' },
    })
    const path = `/v1/budgets/${budget.id}`
    expect((await app.call('PATCH', path, { body: { limit: 5 } })).body.limit).toBe('5')
    expect((await app.call('DELETE', path)).status).toBe(200)
  })

  test('gets it even if the key has the largest number of other budgets', async () => {
    const app = await startApp(withDefault)
    for (let count = 0; count < 25; count++) await app.createAgent()
    expect(await listBudgets(app)).toHaveLength(25)
    const scope = { type: 'key', id: ownerOf(app).tenantId }
    const { status } = await app.call('POST', '/v1/budgets', { body: { scope, period: 'day', limit: 10 } })
    expect(status).toBe(201)
  })

  test('keeps its budgets, and gets no other, when it is restored from the bin', async () => {
    const app = await startApp(withDefault)
    const { agent_id: id } = await app.createAgent()
    const [budget] = await listBudgets(app)
    await app.call('DELETE', `/v1/budgets/${budget.id}`)
    await app.call('POST', `/v1/agents/${id}/bin`)
    expect((await app.call('POST', `/v1/bin/agents/${id}/restore`)).status).toBe(200)
    expect(await listBudgets(app)).toEqual([])
  })

  test('that moves to a claimed key gets it if it has none', async () => {
    const app = await startApp({ ...behindProxy, ...withDefault })
    const ada = 'ada@example.org'
    const create = () => app.call('POST', '/v1/manager/agents', asUser(ada, { body: { yaml: GREETER } }))
    expect((await create()).status).toBe(201)
    await app.service.deps.db.deleteFrom('budgets').execute()
    expect((await create()).status).toBe(201)
    expect((await claimKey(app, ada, app.key)).status).toBe(200)
    const budgets = await listBudgets(app)
    expect(budgets).toHaveLength(2)
    expect(budgets.map(({ limit }: { limit: string }) => limit)).toEqual(['2.5', '2.5'])
  })
})

test('an amount that is not in US dollars is rejected when the server starts', async () => {
  await expect(startApp({ PARLEY_BUDGET_DEFAULT_AGENT_USD: '-1' })).rejects.toThrow(
    /PARLEY_BUDGET_DEFAULT_AGENT_USD must be an amount in US dollars/,
  )
})

test('a new version and an earlier version of a definition do not change the budgets of an agent', async () => {
  const app = await startApp()
  const { agent_id: id } = await app.createAgent()
  const body = { scope: { type: 'agent', id }, period: 'total', limit: 5_000 }
  const { body: budget } = await app.call('POST', '/v1/budgets', { body })
  await app.call('POST', `/v1/budgets/${budget.id}/grants`, { body: { amount: 10, reason: 'more' } })
  await app.call('POST', `/v1/budgets/${budget.id}/adjustments`, { body: { amount: 20, reason: 'less' } })
  const before = await listBudgets(app)
  const yaml = `${GREETER}budget:\n  day: 1\nbudgets:\n  - limit: 1\n`
  const replaced = await app.call('PUT', `/v1/agents/${id}`, { body: { yaml } })
  expect(replaced.status).toBe(200)
  expect(await listBudgets(app)).toEqual(before)
  expect((await app.call('POST', `/v1/agents/${id}/versions/1/restore`)).status).toBe(200)
  expect(await listBudgets(app)).toEqual(before)
})
