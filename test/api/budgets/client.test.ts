/** Tests which errors of budgets the official OpenAI client retries. */
import OpenAI from 'openai'
import { expect, test } from 'vitest'
import { startApp } from '../../support/app.ts'
import { startMeteredProvider } from '../../support/metered-provider.ts'
import { ownerOf } from '../../support/usage.ts'

type Response = Awaited<ReturnType<typeof fetch>>

/** Starts a service with one budget; the provider answers when `release` is called. */
async function startLimited(budget: object, afterAnswer: () => Promise<unknown> = async () => {}) {
  const released = Promise.withResolvers<void>()
  const provider = await startMeteredProvider(async () => {
    await released.promise
    return {}
  })
  const app = await startApp({
    PARLEY_BACKEND: 'gateway',
    PARLEY_GATEWAY_URL: provider.url,
    PARLEY_BUDGET_WAIT_SECONDS: '0',
  })
  const scope = { type: 'key', id: ownerOf(app).tenantId }
  const body = { scope, period: 'day', ...budget }
  expect((await app.call('POST', '/v1/budgets', { body })).status).toBe(201)
  const statuses: number[] = []
  const client = new OpenAI({
    baseURL: `${app.url}/v1`,
    apiKey: app.key,
    maxRetries: 2,
    fetch: async (url, init): Promise<Response> => {
      const response = await fetch(url, init)
      statuses.push(response.status)
      await afterAnswer()
      return response
    },
  })
  const ask = () =>
    client.chat.completions
      .create({ model: 'metered', messages: [{ role: 'user', content: 'hello' }], max_tokens: 5_000 })
      .then(
        () => 'answered',
        ({ code }) => code,
      )
  return { app, provider, ask, statuses, release: () => released.resolve() }
}

test('the official client retries a call while other calls have reserved the budget', async () => {
  let endHeld = async (): Promise<unknown> => undefined
  const limited = await startLimited({ unit: 'tokens', limit: 5_200 }, () => endHeld())
  const { app, provider, ask, statuses } = limited
  const body = { model: 'metered', messages: [{ role: 'user', content: 'held' }], max_tokens: 5_000 }
  const held = app.call('POST', '/v1/chat/completions', { body })
  await expect.poll(() => provider.requests.length).toBe(1)
  endHeld = async () => {
    limited.release()
    expect((await held).status).toBe(200)
  }
  expect(await ask()).toBe('answered')
  expect(statuses).toEqual([429, 200])
})

test.each([
  ['insufficient_quota', { unit: 'tokens', limit: 0 }, 429],
  ['model_not_priced', { unit: 'usd', limit: 5 }, 403],
] as const)('the official client sends a call that gets %s once', async (code, budget, status) => {
  const { provider, ask, statuses } = await startLimited(budget)
  expect(await ask()).toBe(code)
  expect(statuses).toEqual([status])
  expect(provider.requests).toEqual([])
})
