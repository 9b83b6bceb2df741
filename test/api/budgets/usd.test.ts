/** Tests what budgets in US dollars book, grant and reject. */

import { describe, expect, test } from 'vitest'
import { startApp } from '../../support/app.ts'
import { createUsdBudget, readBudget } from '../../support/budgets.ts'
import {
  hello,
  INPUT,
  inputOf,
  METERED,
  OUTPUT,
  PER_CALL,
  startPriced,
  usd,
} from '../../support/priced-provider.ts'
import { agentWith } from '../../support/tools.ts'
import { ownerOf, sendChat } from '../../support/usage.ts'

describe('a US dollar budget', () => {
  test('has decimal amounts, and starts with the cost already booked in the current period', async () => {
    const { app } = await startPriced(() => ({ usage: { prompt_tokens: 1000, completion_tokens: 100 } }))
    await sendChat(app, 'before', METERED)
    const id = await createUsdBudget(app, { limit: 12.5 })
    expect(await readBudget(app, id)).toMatchObject({
      ...{ unit: 'usd', limit: '12.5', granted: '0', booked: '0.0022', reserved: '0', remaining: '12.4978' },
    })
    const path = `/v1/budgets/${id}`
    const grant = await app.call('POST', `${path}/grants`, { body: { amount: '0.000000001', reason: 'r' } })
    expect([grant.status, grant.body.amount]).toEqual([201, '0.000000001'])
    const adjustment = { amount: '-0.0002', reason: 'refund' }
    const adjusted = await app.call('POST', `${path}/adjustments`, { body: adjustment })
    expect([adjusted.status, adjusted.body.amount]).toEqual([201, '-0.0002'])
    expect((await app.call('PATCH', path, { body: { limit: 1e-7 } })).body).toMatchObject({
      ...{ limit: '0.0000001', granted: '0.000000001', booked: '0.002', remaining: '0' },
    })
  })

  test.each([['-1'], ['1000000.1'], ['0.0000000001'], ['1e3'], ['']])(
    'is rejected with the limit %s',
    async (limit) => {
      const { app } = await startPriced()
      const scope = { type: 'key', id: ownerOf(app).tenantId }
      const { status, body } = await app.call('POST', '/v1/budgets', {
        body: { scope, unit: 'usd', period: 'day', limit },
      })
      expect([status, body.error.param]).toEqual([400, 'limit'])
    },
  )

  test('can exist in addition to a token budget, and both must admit a call', async () => {
    const { app } = await startPriced()
    const tokens = await createUsdBudget(app, { unit: 'tokens', limit: 100_000 })
    const money = await createUsdBudget(app)
    expect((await sendChat(app, 'hello', METERED)).status).toBe(200)
    expect((await readBudget(app, money)).booked).not.toBe('0')
    await app.call('PATCH', `/v1/budgets/${tokens}`, { body: { limit: 0 } })
    const refused = await sendChat(app, 'hello', METERED)
    expect(refused.body.error.message).toBe('The token budget of this key for this day is used up.')
    await app.call('PATCH', `/v1/budgets/${tokens}`, { body: { limit: 100_000 } })
    await app.call('PATCH', `/v1/budgets/${money}`, { body: { limit: 0 } })
    const { body, headers } = await sendChat(app, 'hello', METERED)
    expect(body.error).toMatchObject({
      ...{ code: 'insufficient_quota', message: 'The budget of this key for this day is used up.' },
    })
    expect(headers.get('x-should-retry')).toBe('false')
  })

  test('books the exact cost of the reported usage, once for each request of a turn', async () => {
    const usage = { prompt_tokens: 1000, completion_tokens: 10 }
    const { app } = await startPriced((body) => ({
      usage,
      tool: body.messages.length > 2 ? undefined : 'lookup',
    }))
    const id = await createUsdBudget(app)
    const { agent_id } = await app.createAgent(agentWith(['lookup'], 'Guide'))
    const question = 'hello '.repeat(200)
    expect((await sendChat(app, question, { model: `agent/${agent_id}` })).status).toBe(200)
    expect(await readBudget(app, id)).toMatchObject({
      booked: usd(2 * (1_000_000 + 20_000 + PER_CALL)),
      reserved: '0',
    })
    const { body } = await app.call('GET', '/v1/usage/calls')
    expect(body.data[0].cost).toBe('0.00404')
  })

  test('books the reservation rates for an answer without usage', async () => {
    const { app } = await startPriced(() => ({ tokens: 4, usage: undefined }))
    const id = await createUsdBudget(app)
    await sendChat(app, 'hello', METERED)
    const bytes = 'word '.length * 4
    expect((await readBudget(app, id)).booked).toBe(usd(inputOf(hello) * INPUT + bytes * OUTPUT + PER_CALL))
  })

  test.each<[string, unknown]>([
    ['is 0', { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 }],
    ['is null', null],
    ['is negative', { prompt_tokens: -5, completion_tokens: 20, total_tokens: 15 }],
    ['is 1e308', { prompt_tokens: 1e308, completion_tokens: 1e308, total_tokens: 1e308 }],
    ['is text', { prompt_tokens: '12', completion_tokens: '12', total_tokens: '24' }],
  ])('books the bytes of an answer whose usage %s', async (_what, usage) => {
    for (const stream of [false, true]) {
      const { app } = await startPriced(() => ({ tokens: 20, usage }))
      const id = await createUsdBudget(app)
      expect((await sendChat(app, 'hello', { ...METERED, stream })).status).toBe(200)
      const nano = inputOf(hello) * INPUT + 'word '.length * 20 * OUTPUT + PER_CALL
      expect(await readBudget(app, id)).toMatchObject({ booked: usd(nano), reserved: '0' })
      const { body } = await app.call('GET', '/v1/usage/calls')
      expect(body.data[0].estimated).toBe(true)
    }
  })

  test('books a usage that is smaller than its parts without counting a token twice', async () => {
    const usage = {
      ...{ prompt_tokens: 100, completion_tokens: 10, total_tokens: 110 },
      prompt_tokens_details: { cached_tokens: 5_000, audio_tokens: 900 },
      completion_tokens_details: { reasoning_tokens: 77, audio_tokens: -1 },
    }
    const { app } = await startPriced(() => ({ usage }))
    const id = await createUsdBudget(app)
    await sendChat(app, 'hello', METERED)
    expect((await readBudget(app, id)).booked).toBe(usd(100 * 10_000 + 10 * 3_000 + PER_CALL))
  })

  test('grants the remaining amount, sends it as the token limit, and never costs more than the limit', async () => {
    const { app, provider } = await startPriced(() => ({ tokens: 100_000 }))
    const input = inputOf(hello) * INPUT + PER_CALL
    const id = await createUsdBudget(app, { limit: usd(input + 300 * OUTPUT + OUTPUT - 1) })
    const { headers, body } = await sendChat(app, 'hello', METERED)
    expect(headers.get('x-parley-budget')).toBe('limited')
    expect(body.choices[0].finish_reason).toBe('length')
    expect(provider.requests[0]).toMatchObject({ max_completion_tokens: 300 })
    expect(provider.requests[0]?.max_tokens).toBeUndefined()
    const { booked, limit } = await readBudget(app, id)
    expect(Number(booked)).toBeLessThanOrEqual(Number(limit))
  })

  test('rejects a call that could cost more than is left, without a request to the provider', async () => {
    const { app, provider } = await startPriced()
    await createUsdBudget(app, { limit: usd(inputOf(hello) * INPUT + PER_CALL + 255 * OUTPUT) })
    const { status, body } = await sendChat(app, 'hello', METERED)
    expect([status, body.error.code]).toEqual([429, 'insufficient_quota'])
    expect(provider.requests).toEqual([])
    expect((await sendChat(app, 'hello', { ...METERED, max_tokens: 100 })).status).toBe(200)
  })
})

test('free models answer when the US dollar budget is spent', async () => {
  const app = await startApp()
  await createUsdBudget(app, { limit: 0 })
  expect((await sendChat(app, 'hello')).status).toBe(200)
})

test('an agent key sees no amount, cost or budget id', async () => {
  const { app } = await startPriced()
  const id = await createUsdBudget(app, { limit: '0.01' })
  const { agent_key } = await app.createAgent()
  const more = { ...METERED, stream_options: { include_usage: true } }
  const answers = [
    await sendChat(app, 'hello', more, agent_key),
    await sendChat(app, 'hello', { ...more, stream: true }, agent_key),
    await sendChat(app, 'hello', { model: 'spare' }, agent_key),
  ]
  await app.call('PATCH', `/v1/budgets/${id}`, { body: { limit: 0 } })
  answers.push(await sendChat(app, 'hello', more, agent_key))
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 403, 429])
  for (const { text, headers } of answers) {
    const all = `${text} ${JSON.stringify([...headers])}`
    expect(all).not.toMatch(/cost|bud_|0\.0\d/i)
  }
})
