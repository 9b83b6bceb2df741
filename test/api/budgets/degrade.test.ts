/** Tests that cheaper models answer when a budget is used up to a percentage. */

import { sql } from 'kysely'
import { describe, expect, test } from 'vitest'
import {
  book,
  createAgentBudget,
  FIRST,
  free,
  LIMIT,
  large,
  medium,
  SECOND,
  small,
  startDegrading,
  THIRD,
} from '../../support/degrading-agent.ts'
import type { Plan } from '../../support/metered-provider.ts'
import { agentWith } from '../../support/tools.ts'
import { ownerOf, sendChat } from '../../support/usage.ts'

describe('an agent with `degrade`', () => {
  test('is answered by its first model at 79 %, and by the cheaper model at 80 %', async () => {
    const given = await startDegrading()
    const budget = await createAgentBudget(given)
    await book(given.app, budget, 79_999)
    expect(await given.ask()).toEqual(FIRST)
    await book(given.app, budget, 80_000)
    expect(await given.ask()).toEqual(THIRD)
    expect(await given.ask({ stream: true })).toEqual(THIRD)
    await book(given.app, budget, 79_999)
    expect(await given.ask()).toEqual(FIRST)
  })

  test('is answered by the model of the last step that is reached', async () => {
    const steps = [
      { at: 50, to: medium },
      { at: 80, to: small },
    ]
    const given = await startDegrading({ degrade: steps })
    const budget = await createAgentBudget(given)
    const answers = []
    for (const amount of [49_999, 50_000, 79_000, 80_000]) {
      await book(given.app, budget, amount)
      answers.push(await given.ask())
    }
    expect(answers).toEqual([FIRST, SECOND, SECOND, THIRD])
  })

  test('is answered by its first model without a budget', async () => {
    const { ask } = await startDegrading()
    expect(await ask()).toEqual(FIRST)
  })

  test('is answered by the cheaper model when any of its budgets reaches the step', async () => {
    const given = await startDegrading()
    await createAgentBudget(given)
    const month = await createAgentBudget(given, { period: 'month' })
    const ofKey = { scope: { type: 'key', id: ownerOf(given.app).tenantId }, mode: 'observe' }
    const observing = await createAgentBudget(given, ofKey)
    expect(await given.ask()).toEqual(FIRST)
    await book(given.app, month, 80_000)
    expect(await given.ask()).toEqual(THIRD)
    await book(given.app, month, 0)
    expect(await given.ask()).toEqual(FIRST)
    await book(given.app, observing, 2 * LIMIT)
    expect(await given.ask()).toEqual(THIRD)
  })

  test('is answered by its first model again after a grant, until the grant expires', async () => {
    const given = await startDegrading()
    const { app, clock, ask } = given
    const budget = await createAgentBudget(given, { period: 'total' })
    await book(app, budget, 90_000)
    expect(await ask()).toEqual(THIRD)
    const grant = { amount: LIMIT, reason: 'launch', expires_at: Math.floor(clock.now() / 1000) + 3_600 }
    const granted = await app.call('POST', `/v1/budgets/${budget}/grants`, { body: grant })
    expect(granted.status).toBe(201)
    expect(await ask()).toEqual(FIRST)
    clock.advance(3_600)
    expect(await ask()).toEqual(THIRD)
  })

  test('is answered by the cheaper model also if the request names another model', async () => {
    const given = await startDegrading({ degrade: [{ at: 80, to: small }], allowed_models: [large, small] })
    const budget = await createAgentBudget(given)
    await book(given.app, budget, 80_000)
    expect(await given.ask({ model: 'metered' })).toEqual(THIRD)
    expect((await given.ask({ model: 'spare' })).status).toBe(403)
    const { headers } = await sendChat(given.app, 'hello', { model: `agent/${given.id}` })
    expect(headers.get('x-parley-degraded')).toBe('budget')
  })

  test('counts what running calls have reserved', async () => {
    const answer = Promise.withResolvers<Plan>()
    const begun = Promise.withResolvers<void>()
    const given = await startDegrading(undefined, {
      plan: ({ max_tokens }) => {
        if (max_tokens !== 85_000) return {}
        begun.resolve()
        return answer.promise
      },
    })
    await createAgentBudget(given)
    const running = given.ask({ max_tokens: 85_000 })
    await begun.promise
    expect(await given.ask({ max_tokens: 300 })).toEqual(THIRD)
    answer.resolve({})
    expect(await running).toMatchObject({ status: 200, degraded: null })
    expect(await given.ask()).toEqual(FIRST)
  })

  test('keeps its model for the later rounds of a turn', async () => {
    const booking: { run?: () => Promise<void> } = {}
    const given = await startDegrading(undefined, {
      yaml: agentWith(['lookup']),
      plan: async ({ messages }) => {
        if (messages.at(-1)?.role === 'tool') return {}
        await booking.run?.()
        return { tool: 'lookup' }
      },
    })
    const budget = await createAgentBudget(given)
    booking.run = () => book(given.app, budget, 80_000)
    expect(await given.ask()).toEqual(FIRST)
    expect(given.provider.requests.map(({ model }) => model)).toEqual(['metered', 'metered'])
  })

  test('is answered by a free model when a budget in US dollars is used up', async () => {
    const config = 'prices:\n  gateway/metered:\n    - per_million: { input: 1, output: 1 }\n'
    const given = await startDegrading({ degrade: [{ at: 80, to: free }] }, { config })
    const budget = await createAgentBudget(given, { unit: 'usd', limit: '1' })
    expect(await given.ask()).toEqual(FIRST)
    for (const booked of [1, 1.5]) {
      await book(given.app, budget, booked)
      const { status, headers } = await sendChat(given.app, 'hello', { model: undefined }, given.key)
      expect([status, headers.get('x-parley-provider'), headers.get('x-parley-degraded')]).toEqual([
        ...[200, 'play', 'budget'],
      ])
    }
    await given.app.call('PATCH', `/v1/budgets/${budget}`, { body: { limit: '0' } })
    expect((await given.ask()).status).toBe(200)
    expect(given.provider.requests).toHaveLength(1)
  })

  test('uses the fallbacks of the policy if the cheaper model fails', async () => {
    const given = await startDegrading(
      { degrade: [{ at: 80, to: small }], fallback_models: [small, medium] },
      { plan: ({ model }) => (model === 'thrifty' ? { status: 500 } : {}) },
    )
    const budget = await createAgentBudget(given)
    await book(given.app, budget, 80_000)
    expect(await given.ask()).toEqual(SECOND)
  })

  test('reveals no amount and no budget to its visitors', async () => {
    const given = await startDegrading()
    const budget = await createAgentBudget(given, { limit: 123_456 })
    await book(given.app, budget, 111_111)
    const { headers, text } = await sendChat(given.app, 'hello', { model: undefined }, given.key)
    expect(headers.get('x-parley-degraded')).toBe('budget')
    const all = JSON.stringify([...headers]) + text
    for (const secret of [budget, '123456', '111111']) expect(all).not.toContain(secret)
  })

  test('is answered by its first model in observe mode if the counters cannot be read, else rejected', async () => {
    const given = await startDegrading()
    const budget = await createAgentBudget(given, { mode: 'observe' })
    await book(given.app, budget, 90_000)
    expect(await given.ask()).toEqual(THIRD)
    const { db } = given.app.service.deps
    const rename = (from: string, to: string) => sql.raw(`alter table ${from} rename to ${to}`).execute(db)
    await rename('budget_counters', 'away')
    expect(await given.ask()).toEqual(FIRST)
    await rename('away', 'budget_counters')
    await given.app.call('PATCH', `/v1/budgets/${budget}`, { body: { mode: 'enforce' } })
    expect(await given.ask()).toEqual(THIRD)
    await rename('budget_counters', 'away')
    expect((await given.ask()).status).toBe(503)
    await rename('away', 'budget_counters')
  })
})
