/**
 * Tests that calls never use more tokens than their budget allows, because each provider request has a token
 * limit.
 */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { setBudget } from '../../../src/budgets/token-budgets.ts'
import { serviceActor } from '../../../src/identity/audit.ts'
import { startApp, type TestApp } from '../../support/app.ts'
import { writeConfigFile } from '../../support/config-file.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import {
  type ChatBody,
  type MeteredProvider,
  type Plan,
  startMeteredProvider,
} from '../../support/metered-provider.ts'
import { agentWith, tool } from '../../support/tools.ts'
import { listBudgetCounters, ownerOf, sendChat, totalUsage } from '../../support/usage.ts'

const MODEL = { model: 'metered' }

interface Metered {
  readonly app: TestApp
  readonly provider: MeteredProvider
}

/** Starts a service with a daily budget for its parent key. */
async function startMetered(
  limit: number | undefined,
  plan: (body: ChatBody, app: TestApp) => Plan | Promise<Plan>,
  env: Record<string, string> = {},
  clock = createFakeClock(),
): Promise<Metered> {
  const started = Promise.withResolvers<TestApp>()
  const provider = await startMeteredProvider(async (body) => plan(body, await started.promise))
  const app = await startApp(
    {
      PARLEY_BACKEND: 'gateway',
      PARLEY_GATEWAY_URL: provider.url,
      PARLEY_GATEWAY_API_KEY: 'provider-key-0123456789',
      ...env,
    },
    { clock, tools: { lookup: tool(() => 'x'.repeat(2_000)) } },
  )
  started.resolve(app)
  if (limit !== undefined) await setBudget(app.service.deps, serviceActor, ownerOf(app), { day: limit })
  return { app, provider }
}

async function readCounter(app: TestApp): Promise<{ used: number; reserved: number }> {
  const [counter] = await listBudgetCounters(app)
  return { used: counter?.used ?? 0, reserved: counter?.reserved ?? 0 }
}

describe('six concurrent calls without max_tokens', () => {
  test.each([
    ['complete', {}],
    ['streamed', { stream: true }],
  ])('use at most the budget, even if each of them could use all of it (%s)', async (_how, more) => {
    const release = Promise.withResolvers<void>()
    let decided = 0
    const plan = async () => {
      decided += 1
      await release.promise
      return { tokens: 10_000 }
    }
    const { app, provider } = await startMetered(10_000, plan, { PARLEY_BUDGET_WAIT_SECONDS: '0' })
    const answers = Array.from({ length: 6 }, async () => {
      const answer = await sendChat(app, 'Count to ten thousand.', { ...MODEL, ...more })
      if (answer.status === 429) decided += 1
      return answer
    })
    await expect.poll(() => decided).toBe(6)
    expect((await readCounter(app)).reserved).toBeLessThanOrEqual(10_000)
    release.resolve()
    const statuses = (await Promise.all(answers)).map(({ status }) => status)
    expect(statuses.toSorted()).toEqual([200, 200, 200, 429, 429, 429])
    expect(provider.charged).toBeLessThanOrEqual(10_000)
    expect(await readCounter(app)).toEqual({ used: provider.charged, reserved: 0 })
    expect((await totalUsage(app)).total_tokens).toBe(provider.charged)
  })
})

describe('the token limit of a request to a provider', () => {
  test("is the grant, or the client's own limit if that is smaller", async () => {
    const { app, provider } = await startMetered(100_000, () => ({}))
    for (const more of [{}, { max_tokens: 7 }, { max_completion_tokens: 900_000 }, { max_tokens: 900_000 }])
      await sendChat(app, 'hi', { ...MODEL, ...more })
    const limits = provider.requests.map(({ max_tokens, max_completion_tokens }) => [
      max_tokens,
      max_completion_tokens,
    ])
    expect(limits).toEqual([
      [4_096, undefined],
      [7, undefined],
      [undefined, expect.any(Number)],
      [expect.any(Number), undefined],
    ])
    for (const most of [limits[2]?.[1], limits[3]?.[0]]) {
      expect(most).toBeGreaterThan(90_000)
      expect(most).toBeLessThanOrEqual(100_000)
    }
  })

  test('is PARLEY_BUDGET_OUTPUT_TOKENS if the client sets none', async () => {
    const { app, provider } = await startMetered(100_000, () => ({}), { PARLEY_BUDGET_OUTPUT_TOKENS: '50' })
    await sendChat(app, 'hi', MODEL)
    expect(provider.requests).toMatchObject([{ max_tokens: 50 }])
  })

  test('is absent without a budget', async () => {
    const { app, provider } = await startMetered(undefined, () => ({}))
    await sendChat(app, 'hi', MODEL)
    expect(provider.requests[0]).not.toHaveProperty('max_tokens')
  })

  test('ends an answer with finish_reason length', async () => {
    const { app } = await startMetered(1_000, () => ({ tokens: 5_000 }))
    const { body } = await sendChat(app, 'hi', MODEL)
    expect(body.choices[0].finish_reason).toBe('length')
  })
})

describe('while other calls have reserved the rest of a budget, a call', () => {
  /** Starts a call that reserves most of a budget of 6,000 tokens until `release` is called. */
  async function startHeld(env: Record<string, string>) {
    const released = Promise.withResolvers<void>()
    const clock = createFakeClock()
    const { app, provider } = await startMetered(
      6_000,
      async ({ messages }) => {
        if (messages[0]?.content === 'held') await released.promise
        return { tokens: 10 }
      },
      env,
      clock,
    )
    const held = sendChat(app, 'held', MODEL)
    await expect.poll(() => provider.requests.length).toBe(1)
    return { app, provider, held, clock, release: () => released.resolve() }
  }

  test('waits until one of them ends, and then receives its full grant', async () => {
    const { app, provider, held, release } = await startHeld({})
    const waiting = sendChat(app, 'waits', MODEL)
    const behind = sendChat(app, 'behind', { ...MODEL, max_tokens: 20 })
    const { waitingCalls } = app.service.deps.budgets.gate
    await expect.poll(() => waitingCalls()).toBe(2)
    release()
    expect((await held).status).toBe(200)
    const answer = await waiting
    expect(answer.status).toBe(200)
    expect(answer.headers.get('x-parley-budget')).toBeNull()
    expect((await behind).status).toBe(200)
    expect(provider.requests.map(({ max_tokens }) => max_tokens)).toEqual([4_096, 4_096, 20])
  })

  test('receives fewer tokens after it has waited for PARLEY_BUDGET_WAIT_SECONDS', async () => {
    const { app, provider, held, clock, release } = await startHeld({ PARLEY_BUDGET_WAIT_SECONDS: '2' })
    const waiting = sendChat(app, 'waits', MODEL)
    await expect.poll(() => app.service.deps.budgets.gate.waitingCalls()).toBe(1)
    clock.advance(2)
    const answer = await waiting
    expect(answer.status).toBe(200)
    expect(answer.headers.get('x-parley-budget')).toBe('limited')
    expect(provider.requests[1]?.max_tokens).toBeLessThan(2_000)
    release()
    await held
  })

  test('reserves nothing if its client disconnects while it waits', async () => {
    const { app, provider, held, release } = await startHeld({})
    const leaving = new AbortController()
    const body = { ...MODEL, messages: [{ role: 'user', content: 'leaves' }] }
    const left = app
      .call('POST', '/v1/chat/completions', { body, signal: leaving.signal })
      .catch(() => 'left')
    const { waitingCalls } = app.service.deps.budgets.gate
    await expect.poll(() => waitingCalls()).toBe(1)
    leaving.abort()
    expect(await left).toBe('left')
    await expect.poll(() => waitingCalls()).toBe(0)
    release()
    await held
    expect(provider.requests).toHaveLength(1)
    expect((await readCounter(app)).reserved).toBe(0)
  })
})

test('each tool round has its own grant, so the turn ends with 429 when the budget is spent', async () => {
  const { app, provider } = await startMetered(20_000, () => ({ tool: 'lookup' }))
  const { agent_key: key } = await app.createAgent(agentWith(['lookup']))
  const answer = await sendChat(app, 'look it up', { max_tokens: 1_000, model: undefined }, key)
  expect(answer.status).toBe(429)
  expect(answer.body.error.code).toBe('insufficient_quota')
  expect(provider.requests.length).toBeGreaterThan(2)
  expect(provider.requests.every(({ max_tokens: most }) => most !== undefined && most <= 1_000)).toBe(true)
  expect(provider.charged).toBeLessThanOrEqual(20_000)
  expect(await readCounter(app)).toEqual({ used: provider.charged, reserved: 0 })
})

test('images and tool definitions count toward the input tokens that a call reserves from its budget', async () => {
  const { app, provider } = await startMetered(4_000, () => ({}))
  const image = { type: 'image_url', image_url: { url: `data:image/png;base64,${'A'.repeat(20_000)}` } }
  const withImage = { ...MODEL, messages: [{ role: 'user', content: [image] }] }
  expect((await sendChat(app, '', withImage)).status).toBe(429)
  const description = 'd'.repeat(5_000)
  const withTool = { ...MODEL, tools: [{ type: 'function', function: { name: 'f', description } }] }
  expect((await sendChat(app, 'hi', withTool)).status).toBe(429)
  expect(provider.requests).toEqual([])
  await setBudget(app.service.deps, serviceActor, ownerOf(app), { day: 10_000 })
  expect((await sendChat(app, '', withImage)).status).toBe(200)
})

describe('an answer whose usage the provider', () => {
  const text = 'word '.repeat(200)
  test.each<[string, unknown]>([
    ['does not report', undefined],
    ['reports as null', null],
    ['reports as 0', { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 }],
    ['reports as too small for the text', { prompt_tokens: 9, completion_tokens: 3, total_tokens: 12 }],
    ['reports with a negative count', { prompt_tokens: 9, completion_tokens: -3, total_tokens: 6 }],
    ['reports as text', { prompt_tokens: '9', completion_tokens: '200', total_tokens: '209' }],
    ['reports as 1e308', { prompt_tokens: 9, completion_tokens: 1e308, total_tokens: 1e308 }],
  ])('%s is charged by its bytes', async (_how, usage) => {
    for (const more of [{}, { stream: true }]) {
      const { app } = await startMetered(50_000, () => ({ tokens: 200, usage }))
      expect((await sendChat(app, 'hi', { ...MODEL, ...more })).status).toBe(200)
      const { used, reserved } = await readCounter(app)
      expect(reserved).toBe(0)
      expect(used).toBeGreaterThan(text.length)
      expect(used).toBeLessThan(text.length + 200)
      expect((await totalUsage(app)).total_tokens).toBe(used)
    }
  })
})

test('the usage of a stream that continues after the usage is not trusted', async () => {
  const { app } = await startMetered(50_000, () => ({ tokens: 6, isUsageEarly: true }))
  expect((await sendChat(app, 'hi', { ...MODEL, stream: true })).status).toBe(200)
  expect((await readCounter(app)).used).toBeGreaterThan('word '.length * 6)
})

describe('a stream that the provider ends too early is charged', () => {
  const startCut = async (config: string) => {
    const provider = await startMeteredProvider(() => ({ tokens: 300, cutAfter: 3 }))
    const PARLEY_CONFIG = await writeConfigFile(`providers:\n  far: { url: ${provider.url}${config} }\n`)
    const app = await startApp({ PARLEY_CONFIG, PARLEY_BACKEND_ATTEMPTS: '1' })
    await setBudget(app.service.deps, serviceActor, ownerOf(app), { day: 50_000 })
    const cut = { model: 'far/metered', max_tokens: 1_000, stream: true }
    expect((await sendChat(app, 'hi', cut)).text).toContain('stream_interrupted')
    expect((await readCounter(app)).reserved).toBe(0)
    return (await readCounter(app)).used
  }

  test('the whole grant, because the provider may charge for more than it has sent', async () => {
    expect(await startCut('')).toBeGreaterThan(1_000)
  })

  test('what it has sent and 256 more tokens with `unknown_outcome: release`', async () => {
    const used = await startCut(', unknown_outcome: release')
    expect(used).toBeGreaterThan(256 + 3 * 'word '.length)
    expect(used).toBeLessThan(500)
  })
})

test('a request whose connection is lost is not charged with `unknown_outcome: release`', async () => {
  const provider = await startMeteredProvider(() => ({ isLost: true }))
  const far = `providers:\n  far: { url: ${provider.url}, unknown_outcome: release }\n`
  const app = await startApp({ PARLEY_CONFIG: await writeConfigFile(far), PARLEY_BACKEND_ATTEMPTS: '1' })
  await setBudget(app.service.deps, serviceActor, ownerOf(app), { day: 50_000 })
  expect((await sendChat(app, 'hi', { model: 'far/metered' })).status).toBe(503)
  expect(await readCounter(app)).toEqual({ used: 0, reserved: 0 })
})

describe('a failed request to a provider', () => {
  test('is charged the whole grant if the connection is lost after the request was sent', async () => {
    const { app } = await startMetered(50_000, () => ({ isLost: true }), { PARLEY_BACKEND_ATTEMPTS: '1' })
    expect((await sendChat(app, 'hi', { ...MODEL, max_tokens: 300 })).status).toBe(503)
    const { used, reserved } = await readCounter(app)
    expect(reserved).toBe(0)
    expect(used).toBeGreaterThan(300)
    expect(used).toBeLessThan(500)
    expect((await totalUsage(app)).total_tokens).toBe(used)
  })

  test('is not charged if the provider returns an error or cannot be reached', async () => {
    const { app } = await startMetered(50_000, () => ({ status: 500 }))
    await sendChat(app, 'hi', MODEL)
    const unreachable = await startMetered(50_000, () => ({}), {
      PARLEY_GATEWAY_URL: 'http://127.0.0.1:1/v1',
    })
    await sendChat(unreachable.app, 'hi', MODEL)
    for (const each of [app, unreachable.app])
      expect(await readCounter(each)).toEqual({ used: 0, reserved: 0 })
  })
})

/** One client's call in a random schedule. */
interface Call {
  readonly isStream: boolean
  readonly withTools: boolean
  readonly maxTokens: number | undefined
  readonly choices: number
  readonly plans: readonly Plan[]
}

const plan = fc.oneof(
  { weight: 6, arbitrary: fc.record({ tokens: fc.integer({ min: 0, max: 6_000 }) }) },
  { weight: 3, arbitrary: fc.constant({ tool: 'lookup' }) },
  { weight: 1, arbitrary: fc.constant({ status: 500 }) },
  { weight: 1, arbitrary: fc.constant({ isLost: true, tokens: 5_000 }) },
  { weight: 1, arbitrary: fc.constant({ usage: undefined, tokens: 500 }) },
  { weight: 1, arbitrary: fc.record({ cutAfter: fc.integer({ min: 1, max: 40 }), tokens: fc.constant(40) }) },
)
const call: fc.Arbitrary<Call> = fc.record({
  isStream: fc.boolean(),
  withTools: fc.boolean(),
  maxTokens: fc.option(fc.integer({ min: 1, max: 500_000 }), { nil: undefined }),
  choices: fc.constantFrom(1, 1, 1, 3),
  plans: fc.array(plan, { minLength: 1, maxLength: 6 }),
})

test('random schedules of six concurrent callers with tools, retries and fallbacks never exceed a budget', async () => {
  const schedules = new Map<string, Plan[]>()
  let limit = 0
  let most = 0
  const { app, provider } = await startMetered(1, async ({ messages }, started) => {
    const { used, reserved } = await readCounter(started)
    most = Math.max(most, used + reserved)
    const name = messages.map(({ content }) => content).find((content) => schedules.has(String(content)))
    return schedules.get(String(name))?.shift() ?? {}
  })
  const { agent_id: id, agent_key: withTools } = await app.createAgent(agentWith(['lookup']))
  const { agent_id: otherId, agent_key: plain } = await app.createAgent(agentWith([]))
  const gateway = (model: string) => ({ provider: 'gateway', model })
  for (const each of [id, otherId]) {
    const body = { default_model: gateway('metered'), fallback_models: [gateway('spare')] }
    await app.call('PUT', `/v1/agents/${each}/model-policy`, { body })
  }
  const { db } = app.service.deps
  let calls = 0
  await fc.assert(
    fc.asyncProperty(
      fc.array(call, { minLength: 6, maxLength: 12 }),
      fc.integer({ min: 500, max: 40_000 }),
      async (wanted, budget) => {
        await db.deleteFrom('budget_counters').execute()
        await setBudget(app.service.deps, serviceActor, ownerOf(app), {})
        limit = budget
        most = 0
        await setBudget(app.service.deps, serviceActor, ownerOf(app), { day: budget })
        await db.updateTable('budget_counters').set({ booked: 0 }).execute()
        const chargedBefore = provider.charged
        const queue = wanted.map((each) => ({ each, name: `call ${++calls}` }))
        for (const { each, name } of queue) schedules.set(name, [...each.plans])
        await Promise.all(
          Array.from({ length: 6 }, async () => {
            for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
              const { each, name } = next
              const more = {
                model: undefined,
                stream: each.isStream,
                n: each.withTools ? 1 : each.choices,
                max_tokens: each.maxTokens,
              }
              await sendChat(app, name, more, each.withTools ? withTools : plain)
            }
          }),
        )
        const { used, reserved } = await readCounter(app)
        expect(reserved).toBe(0)
        expect(most).toBeLessThanOrEqual(limit)
        expect(used).toBeLessThanOrEqual(limit)
        expect(provider.charged - chargedBefore).toBeLessThanOrEqual(used)
      },
    ),
    { numRuns: 40 },
  )
}, 120_000)
