/** Tests the budgets API: scopes, periods and modes, and who may change budgets. */
import { describe, expect, test } from 'vitest'
import { createTenant } from '../../support/agents.ts'
import { startApp } from '../../support/app.ts'
import { callBudgets, createBudget, ofKey } from '../../support/budgets.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import { scrape } from '../../support/scrape.ts'
import { ownerOf, sendChat } from '../../support/usage.ts'

const NOON = Date.UTC(2027, 0, 15, 12) / 1000
const DAY_START = Date.UTC(2027, 0, 15) / 1000

describe('a new budget', () => {
  test('includes the tokens already used in the current period', async () => {
    const app = await startApp({}, { clock: createFakeClock(NOON) })
    const { total_tokens: used } = (await sendChat(app, 'before')).body.usage
    const { status, body } = await callBudgets(app, 'POST', '', ofKey(app))
    expect(status).toBe(201)
    const expected = {
      id: expect.stringMatching(/^bud_\w{24}$/),
      object: 'budget',
      scope: { type: 'key', id: ownerOf(app).tenantId },
      ...{ unit: 'tokens', period: 'day', limit: '5000', granted: '0', booked: String(used) },
      ...{ reserved: '0', remaining: String(5_000 - used), refused: 0 },
      ...{ period_start: DAY_START, resets_at: DAY_START + 86_400 },
      ...{ warn_at: [50, 80, 100], mode: 'enforce', managed_by: 'tenant', created_at: NOON },
    }
    expect(body).toEqual(expected)
    expect((await callBudgets(app, 'GET', `/${body.id}`)).body).toEqual(expected)
    const list = await callBudgets(app, 'GET')
    expect(list.body).toEqual({ object: 'list', data: [expected], has_more: false })
  })

  test.each<[string, object, string, RegExp]>([
    ['an unknown scope', { scope: { type: 'team', id: 'x' } }, 'scope.type', /one of key, agent/],
    ['an unknown period', { period: 'year' }, 'period', /one of day, week/],
    ['a negative limit', { limit: -1 }, 'limit', /whole number of tokens/],
    ['a limit with decimals', { limit: '1.5' }, 'limit', /whole number of tokens/],
    ['a limit that is too large', { limit: '1000000000001' }, 'limit', /whole number of tokens/],
    ['an unknown mode', { mode: 'warn' }, 'mode', /enforce or observe/],
  ])('is rejected with %s', async (_what, more, param, message) => {
    const app = await startApp()
    const { status, body } = await callBudgets(app, 'POST', '', ofKey(app, more))
    expect({ status, param: body.error.param }).toEqual({ status: 400, param })
    expect(body.error.message).toMatch(message)
  })

  test('is rejected if a budget with the same scope, unit and period exists', async () => {
    const app = await startApp()
    await createBudget(app, ofKey(app))
    const { status, body } = await callBudgets(app, 'POST', '', ofKey(app, { limit: 7 }))
    expect([status, body.error.code]).toEqual([409, 'budget_exists'])
    await createBudget(app, ofKey(app, { period: 'week' }))
    await createBudget(app, ofKey(app, { period: 'total' }))
  })

  test('for conversations is rejected if the agent does not store any', async () => {
    const app = await startApp()
    const { agent_id: id } = await app.createAgent()
    const { status, body } = await callBudgets(app, 'POST', '', {
      ...{ scope: { type: 'conversation', id }, period: 'total', limit: 10 },
    })
    expect([status, body.error.code]).toEqual([400, 'conversations_off'])
  })

  test("can limit only the caller's own key and agents", async () => {
    const app = await startApp()
    const other = await createTenant(app)
    const { agent_id: id, agent_key } = await app.createAgent()
    expect((await callBudgets(app, 'POST', '', ofKey(app), other)).status).toBe(404)
    const ofAgent = { ...ofKey(app), scope: { type: 'agent', id } }
    expect((await callBudgets(app, 'POST', '', ofAgent, other)).status).toBe(404)
    const budgetId = await createBudget(app, ofAgent)
    for (const [method, path, body] of [
      ['GET', '', undefined],
      ['PATCH', '', { limit: 1 }],
      ['DELETE', '', undefined],
      ['POST', '/grants', { amount: 1, reason: 'r' }],
      ['POST', '/adjustments', { amount: 1, reason: 'r' }],
      ['GET', '/subjects', undefined],
    ] as const)
      expect((await callBudgets(app, method, `/${budgetId}${path}`, body, other)).status).toBe(404)
    expect((await callBudgets(app, 'GET', '', undefined, other)).body.data).toEqual([])
    expect((await callBudgets(app, 'GET', '', undefined, agent_key)).status).toBe(403)
  })
})

describe('a budget', () => {
  test('in observe mode does not reject any calls, but counts those that it would have rejected', async () => {
    const app = await startApp()
    const id = await createBudget(app, ofKey(app, { limit: 0, mode: 'observe' }))
    const answer = await sendChat(app, 'hello')
    expect(answer.status).toBe(200)
    const booked = String(answer.body.usage.total_tokens)
    const state = { booked, reserved: '0', remaining: '0', refused: 1 }
    expect((await callBudgets(app, 'GET', `/${id}`)).body).toMatchObject(state)
    expect((await callBudgets(app, 'PATCH', `/${id}`, { mode: 'enforce' })).status).toBe(200)
    expect((await sendChat(app, 'hello')).status).toBe(429)
    expect((await callBudgets(app, 'GET', `/${id}`)).body).toMatchObject({ mode: 'enforce', refused: 2 })
  })

  test('takes effect immediately when its limit changes, and no longer applies after it is deleted', async () => {
    const app = await startApp()
    const id = await createBudget(app, ofKey(app))
    expect((await sendChat(app, 'hello')).status).toBe(200)
    const changed = await callBudgets(app, 'PATCH', `/${id}`, { limit: '0' })
    expect(changed.body).toMatchObject({ limit: '0', mode: 'enforce' })
    expect((await sendChat(app, 'hello')).status).toBe(429)
    const deleted = await callBudgets(app, 'DELETE', `/${id}`)
    expect(deleted.body).toEqual({ id, object: 'budget.deleted', deleted: true })
    expect((await sendChat(app, 'hello')).status).toBe(200)
    expect((await callBudgets(app, 'GET', `/${id}`)).status).toBe(404)
  })

  test("for an agent limits its calls in addition to the key's budget, and is deleted with the agent", async () => {
    const app = await startApp()
    const { agent_id: id, agent_key } = await app.createAgent()
    const scope = { type: 'agent', id }
    const budgetId = await createBudget(app, ofKey(app, { scope, limit: 0, period: 'week' }))
    const refused = await sendChat(app, 'hi', { model: undefined }, agent_key)
    expect(refused.body.error).toMatchObject({
      message: 'The token budget of this agent for this week is used up.',
      code: 'insufficient_quota',
    })
    expect((await sendChat(app, 'hi')).status).toBe(200)
    await app.call('DELETE', `/v1/agents/${id}`)
    await app.call('DELETE', `/v1/bin/agents/${id}`)
    const list = await callBudgets(app, 'GET')
    expect(list.body.data.map((one: { id: string }) => one.id)).not.toContain(budgetId)
  })

  test('with its own time zone ends its period at midnight in that zone', async () => {
    const clock = createFakeClock(Date.UTC(2027, 6, 15, 21, 59) / 1000)
    const app = await startApp({ PARLEY_BUDGET_TIMEZONE: 'Europe/Berlin' }, { clock })
    await createBudget(app, ofKey(app, { limit: 0 }))
    const refused = await sendChat(app, 'hi')
    expect(refused.headers.get('retry-after')).toBe('60')
    clock.advance(60)
    const { body } = await callBudgets(app, 'GET')
    expect(body.data[0].period_start).toBe(Date.UTC(2027, 6, 15, 22) / 1000)
  })

  test('counts a call in the period in which it was admitted', async () => {
    const clock = createFakeClock(DAY_START + 86_399)
    const app = await startApp({}, { clock })
    const id = await createBudget(app, ofKey(app))
    const { deps } = app.service
    const call = {
      ...{ operation: 'chat' as const, requestId: 'late', ...ownerOf(app), agentId: undefined },
      ...{ provider: 'mock', model: 'mock', isStreamed: false, request: { messages: [], max_tokens: 9 } },
    }
    const late = deps.usage.begin(call)
    await late.reserve(call.request)
    clock.advance(2)
    late.used({ prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 })
    await late.end('ok')
    expect((await callBudgets(app, 'GET', `/${id}`)).body).toMatchObject({ booked: '0', reserved: '0' })
    const counters = deps.db.selectFrom('budget_counters').select(['starts_at', 'booked', 'reserved'])
    expect(await counters.execute()).toEqual([{ starts_at: DAY_START, booked: 3, reserved: 0 }])
  })

  test('that is created while a call runs counts the call once it ends', async () => {
    const app = await startApp({}, { clock: createFakeClock(NOON) })
    const { deps } = app.service
    const request = { messages: [], max_tokens: 9 }
    const call = {
      ...{ operation: 'chat' as const, requestId: 'early', ...ownerOf(app), agentId: undefined },
      ...{ provider: 'mock', model: 'mock', isStreamed: false, request },
    }
    const [unreserved, reserved] = [deps.usage.begin(call), deps.usage.begin(call)]
    expect(await unreserved.reserve(request)).toBeUndefined()
    const day = await createBudget(app, ofKey(app))
    expect(await reserved.reserve(request)).toMatchObject({ tokens: 9, metering: 'reported' })
    const week = await createBudget(app, ofKey(app, { period: 'week' }))
    // Fills the cache, so that the record does not have to wait for a lookup.
    await sendChat(app, 'hello', { max_tokens: 1 })
    const { booked } = (await callBudgets(app, 'GET', `/${week}`)).body
    for (const record of [unreserved, reserved]) {
      record.used({ prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 })
      await record.end('ok')
    }
    const expected = { booked: String(Number(booked) + 6), reserved: '0' }
    for (const id of [day, week])
      expect((await callBudgets(app, 'GET', `/${id}`)).body).toMatchObject(expected)
  })
})

test('the metrics count rejected calls by budget scope, without naming the owner', async () => {
  const app = await startApp()
  await createBudget(app, ofKey(app, { limit: 0 }))
  await sendChat(app, 'hello')
  const metrics = await scrape(app.url)
  const labels = { scope: 'key', reason: 'insufficient_quota' }
  expect(metrics.sum('parley_budget_refused_total', labels)).toBe(1)
  expect(metrics.sum('parley_budget_wait_seconds_count', {})).toBe(1)
})

describe('the list of budgets', () => {
  test('can be filtered by scope and agent, and is paginated', async () => {
    const app = await startApp()
    const { agent_id: id } = await app.createAgent()
    const scope = { type: 'agent', id }
    const ids = [
      await createBudget(app, ofKey(app)),
      await createBudget(app, ofKey(app, { scope })),
      await createBudget(app, ofKey(app, { scope, period: 'month' })),
    ]
    const list = async (query: string) => {
      const { body } = await callBudgets(app, 'GET', query)
      return [body.data.map((one: { id: string }) => one.id).toSorted(), body.has_more]
    }
    expect(await list(`?agent=${id}`)).toEqual([ids.slice(1).toSorted(), false])
    expect(await list('?scope=key')).toEqual([[ids[0]], false])
    const first = await callBudgets(app, 'GET', '?limit=2')
    expect(first.body.has_more).toBe(true)
    const rest = await callBudgets(app, 'GET', `?limit=2&after=${first.body.data[1].id}`)
    const found = [...first.body.data, ...rest.body.data].map(({ id: one }) => one)
    expect(found.toSorted()).toEqual(ids.toSorted())
    expect((await callBudgets(app, 'GET', '?after=bud_unknown')).status).toBe(400)
  })

  test('contains at most 20 budgets, of which at most 8 apply to one call', async () => {
    const app = await startApp()
    const { agent_id: id } = await app.createAgent()
    for (const type of ['key', 'agent'])
      for (const period of ['day', 'week', 'month', 'total'])
        await createBudget(
          app,
          ofKey(app, { period, scope: type === 'key' ? ofKey(app).scope : { type, id } }),
        )
    const ninth = ofKey(app, { scope: { type: 'visitor', id } })
    expect((await callBudgets(app, 'POST', '', ninth)).body.error.message).toContain('At most 8 budgets')
    for (let agents = 0; agents < 3; agents++) {
      const { agent_id: other } = await app.createAgent()
      for (const period of ['day', 'week', 'month', 'total'])
        await createBudget(app, ofKey(app, { period, scope: { type: 'agent', id: other } }))
    }
    const { agent_id: last } = await app.createAgent()
    const refused = await callBudgets(app, 'POST', '', ofKey(app, { scope: { type: 'agent', id: last } }))
    expect(refused.status).toBe(409)
    expect(refused.body.error.message).toContain('already 20 budgets')
  })
})

test('the audit log records each change to a budget', async () => {
  const app = await startApp()
  const id = await createBudget(app, ofKey(app))
  await callBudgets(app, 'PATCH', `/${id}`, { limit: 7 })
  await callBudgets(app, 'POST', `/${id}/grants`, { amount: 1, reason: 'more' })
  await callBudgets(app, 'POST', `/${id}/adjustments`, { amount: 2, reason: 'less' })
  await callBudgets(app, 'DELETE', `/${id}`)
  const rows = await app.service.deps.db
    .selectFrom('audit_events')
    .select(['action', 'details'])
    .where('target_id', '=', id)
    .orderBy('id')
    .execute()
  const scope = { type: 'key', id: ownerOf(app).tenantId }
  const of = (limit: string) => ({
    ...{ unit: 'tokens', period: 'day', limit, warn_at: [50, 80, 100], mode: 'enforce' },
    managed_by: 'tenant',
  })
  expect(rows.map(({ action, details }) => [action, JSON.parse(details)])).toEqual([
    ['budget.create', { scope, after: of('5000') }],
    ['budget.update', { scope, before: of('5000'), after: of('7') }],
    ['budget.grant', { scope, amount: '1', reason: 'more', subject: null, expires_at: null }],
    ['budget.adjust', { scope, amount: '2', reason: 'less', subject: null }],
    ['budget.delete', { scope, before: of('7') }],
  ])
})
