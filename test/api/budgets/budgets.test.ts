/** Tests that calls are rejected once a token budget is spent, even if the calls are concurrent. */
import { describe, expect, test } from 'vitest'
import { getBudget, setBudget } from '../../../src/budgets/token-budgets.ts'
import { serviceActor } from '../../../src/identity/audit.ts'
import { createTenant } from '../../support/agents.ts'
import { startApp } from '../../support/app.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import { listBudgetCounters, ownerOf, sendChat, tokensPerDay, totalUsage } from '../../support/usage.ts'

/** Eight hours before the end of the day (UTC). */
const AFTERNOON = Date.UTC(2027, 0, 15, 16) / 1000

describe('a token budget', () => {
  test('allows calls until it is spent and then rejects them until the end of the day', async () => {
    const clock = createFakeClock(AFTERNOON)
    const app = await startApp({}, { clock })
    await setBudget(app.service.deps, serviceActor, ownerOf(app), { day: 1_000 })
    expect((await sendChat(app, '[[tokens:999]]', { max_tokens: 2_000 })).status).toBe(200)
    const refused = await sendChat(app, 'one more')
    expect(refused.status).toBe(429)
    expect(refused.body.error).toEqual({
      message: 'The token budget of this key for this day is used up.',
      type: 'rate_limit_error',
      param: null,
      code: 'insufficient_quota',
    })
    expect(refused.headers.get('retry-after')).toBe(String(8 * 3600))
    clock.advance(8 * 3600)
    expect((await sendChat(app, 'a new day')).status).toBe(200)
  })

  test('rejects a stream before it starts', async () => {
    const app = await startApp({}, { clock: createFakeClock(AFTERNOON) })
    await setBudget(app.service.deps, serviceActor, ownerOf(app), { day: 0 })
    const refused = await sendChat(app, 'hello', { stream: true })
    expect({ status: refused.status, code: refused.body.error.code }).toEqual({
      status: 429,
      code: 'insufficient_quota',
    })
    expect((await totalUsage(app)).requests).toBe(0)
  })

  test('for a month also rejects calls on the next day, without Retry-After', async () => {
    const clock = createFakeClock(AFTERNOON)
    const app = await startApp({}, { clock })
    await setBudget(app.service.deps, serviceActor, ownerOf(app), { day: 10_000, month: 1_000 })
    await sendChat(app, '[[tokens:2000]]')
    clock.advance(86_400)
    const refused = await sendChat(app, 'hello')
    expect(refused.body.error.message).toBe('The token budget of this key for this month is used up.')
    expect(refused.headers.get('retry-after')).toBeNull()
    clock.advance(16 * 86_400)
    expect((await sendChat(app, 'a new month')).status).toBe(200)
  })

  test("for an agent limits only that agent, in addition to its parent key's budget", async () => {
    const app = await startApp({}, { clock: createFakeClock(AFTERNOON) })
    const [limited, unlimited] = [await app.createAgent(), await app.createAgent()]
    const owner = ownerOf(app)
    await setBudget(
      app.service.deps,
      serviceActor,
      { kind: 'agent', tenantId: owner.tenantId, agentId: limited.agent_id },
      { day: 0 },
    )
    expect((await sendChat(app, 'hi', {}, limited.agent_key)).body.error.message).toBe(
      'The token budget of this agent for this day is used up.',
    )
    expect((await sendChat(app, 'hi', { model: `agent/${limited.agent_id}` })).status).toBe(429)
    expect((await sendChat(app, 'hi', {}, unlimited.agent_key)).status).toBe(200)
    await setBudget(app.service.deps, serviceActor, owner, { day: 0 })
    expect((await sendChat(app, 'hi', {}, unlimited.agent_key)).status).toBe(429)
  })

  test('for a key does not limit other keys', async () => {
    const app = await startApp()
    const other = await createTenant(app)
    await setBudget(app.service.deps, serviceActor, ownerOf(app), { day: 0 })
    expect((await sendChat(app, 'hi', {}, other)).status).toBe(200)
  })

  test('counts earlier calls of the day, and each later call when it ends', async () => {
    const app = await startApp({}, { clock: createFakeClock(AFTERNOON) })
    const { deps } = app.service
    const before = (await sendChat(app, 'before')).body.usage.total_tokens
    await setBudget(deps, serviceActor, ownerOf(app), { day: 10_000 })
    expect(await getBudget(deps, ownerOf(app))).toEqual({ day: { limit: 10_000, used: before } })
    const after = (await sendChat(app, 'after it', { stream: false })).body.usage.total_tokens
    expect(await getBudget(deps, ownerOf(app))).toEqual({ day: { limit: 10_000, used: before + after } })
    await setBudget(deps, serviceActor, ownerOf(app), { day: 20_000, month: 500 })
    expect(await getBudget(deps, ownerOf(app))).toEqual({
      day: { limit: 20_000, used: before + after },
      month: { limit: 500, used: before + after },
    })
  })

  test('no longer applies after it is deleted', async () => {
    const app = await startApp()
    await setBudget(app.service.deps, serviceActor, ownerOf(app), { day: 0 })
    expect((await sendChat(app, 'hi')).status).toBe(429)
    await setBudget(app.service.deps, serviceActor, ownerOf(app), {})
    expect((await sendChat(app, 'hi')).status).toBe(200)
    expect(await getBudget(app.service.deps, ownerOf(app))).toEqual({})
  })

  test.each([
    ['a failed call', '[[error:500]]', {}],
    ['a failed stream', '[[error:400]]', { stream: true }],
  ])('releases the reservation of %s', async (_what, content, more) => {
    const app = await startApp({}, { clock: createFakeClock(AFTERNOON) })
    await setBudget(app.service.deps, serviceActor, ownerOf(app), { day: 1_000 })
    await sendChat(app, content, more)
    expect(await listBudgetCounters(app)).toEqual([{ period: 'day', used: 0, reserved: 0 }])
  })
})

describe('concurrent calls', () => {
  test.each([
    ['complete', {}],
    ['streamed', { stream: true }],
  ])('never exceed a budget (50 calls, %s)', async (_how, more) => {
    const app = await startApp()
    const limit = 500
    await setBudget(app.service.deps, serviceActor, ownerOf(app), { day: limit })
    const content = '[[tokens:60]] [[delay:1]]'
    const answers = await Promise.all(
      Array.from({ length: 50 }, () => sendChat(app, content, { max_tokens: 100, ...more })),
    )
    const statuses = answers.map(({ status }) => status)
    const passed = statuses.filter((status) => status === 200).length
    expect(statuses.filter((status) => status === 429)).toHaveLength(50 - passed)
    const total = await totalUsage(app)
    expect(total.requests).toBe(passed)
    expect(passed).toBeGreaterThan(0)
    expect(total.total_tokens).toBeLessThanOrEqual(limit)
    expect(await listBudgetCounters(app)).toEqual([{ period: 'day', used: total.total_tokens, reserved: 0 }])
  })
})

describe('a budget reservation', () => {
  test('is booked after a minute if no process renews it, and corrected if its call does end', async () => {
    const clock = createFakeClock(AFTERNOON)
    const app = await startApp({}, { clock })
    const { deps } = app.service
    await setBudget(deps, serviceActor, ownerOf(app), { day: 500 })
    const call = {
      operation: 'chat' as const,
      requestId: 'lost',
      ...ownerOf(app),
      agentId: undefined,
      provider: 'mock',
      model: 'mock',
      isStreamed: false,
      request: { messages: [], max_tokens: 200 },
    }
    const lost = deps.usage.begin(call)
    await lost.reserve(call.request)
    const reserved = (await listBudgetCounters(app))[0]?.reserved ?? 0
    expect(reserved).toBeGreaterThan(200)
    const held = await sendChat(app, 'hello')
    expect(held.status).toBe(429)
    expect(held.body.error.code).toBe('budget_reserved')
    expect(held.headers.get('retry-after')).toBe('1')
    expect(held.headers.get('x-should-retry')).toBe('true')
    clock.advance(61)
    expect(await deps.budgets.gate.bookExpired()).toBe(1)
    expect(await deps.budgets.gate.bookExpired()).toBe(0)
    expect(await listBudgetCounters(app)).toEqual([{ period: 'day', used: reserved, reserved: 0 }])
    const spent = await sendChat(app, 'hello')
    expect(spent.body.error.code).toBe('insufficient_quota')
    expect(spent.headers.get('x-should-retry')).toBe('false')
    lost.used({ prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 })
    await lost.end('ok')
    await lost.end('ok')
    expect(await getBudget(deps, ownerOf(app))).toEqual({ day: { limit: 500, used: 3 } })
    expect(await listBudgetCounters(app)).toMatchObject([{ reserved: 0 }])
  })
})

test('a caller without a budget is checked for a new one at most every two seconds', async () => {
  const clock = createFakeClock(AFTERNOON)
  const app = await startApp({}, { clock })
  await sendChat(app, 'first')
  // Writes the budget directly to the database, as another process would.
  const { tenantId } = ownerOf(app)
  await app.service.deps.db.insertInto('budgets').values(tokensPerDay(tenantId, 0)).execute()
  expect((await sendChat(app, 'still remembered')).status).toBe(200)
  clock.advance(2)
  expect((await sendChat(app, 'looked up again')).status).toBe(429)
})
