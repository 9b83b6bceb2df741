/** Tests how the usage of embeddings calls is recorded and charged to budgets. */
import { describe, expect, test } from 'vitest'
import { getBudget, setBudget } from '../../../src/budgets/token-budgets.ts'
import { serviceActor } from '../../../src/identity/audit.ts'
import { type Answer, startApp, type TestApp } from '../../support/app.ts'
import { startChatHarness } from '../../support/chat-harness.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import { callProcedure } from '../../support/rpc.ts'
import { countBy, listBudgetCounters, totalUsage } from '../../support/usage.ts'

const harness = await startChatHarness()
const path = '/v1/embeddings'
/** The number of tokens that a budget reserves for `input`. */
const BOUND = 51
/** Two texts of 12 and 7 characters, which are estimated at 5 tokens. */
const input = ['twelve chars', 'seven c']

function embed(app: TestApp, more: object = {}, signal?: AbortSignal): Promise<Answer> {
  return app.call('POST', path, { body: { input, ...more }, ...(signal !== undefined && { signal }) })
}

async function readCalls(app: TestApp) {
  await app.service.deps.usage.flush()
  return app.service.deps.db
    .selectFrom('usage_calls')
    .select(['model', 'provider', 'status', 'prompt_tokens', 'completion_tokens', 'is_estimated'])
    .execute()
}

/** Makes the backend return two vectors and this usage. */
function answerWithUsage(usage: unknown): Promise<void> {
  const data = [0, 1].map((index) => ({ object: 'embedding', index, embedding: [1, 0] }))
  return harness.upstream.script(path, `{{up:body ${JSON.stringify({ object: 'list', data, usage })}}}`)
}

function ownerOf(app: TestApp) {
  return { kind: 'parent', tenantId: app.key.slice(4, 16) } as const
}

const counted = { status: 'ok', completion_tokens: 0, is_estimated: 0 }
const estimated = { ...counted, is_estimated: 1 }
const failed = { ...counted, prompt_tokens: 0 }

describe('a successful embeddings call', () => {
  test('is recorded in one row with its tenant, model and outcome', async () => {
    const app = await startApp({}, { clock: createFakeClock(1_800_000_000) })
    const { body } = await app.call('POST', path, { body: { input }, headers: { 'X-Request-Id': 'my-id' } })
    await app.service.deps.usage.flush()
    expect(await app.service.deps.db.selectFrom('usage_calls').selectAll().execute()).toEqual([
      {
        ...counted,
        id: expect.any(String),
        request_id: 'my-id',
        parent_key_id: app.key.slice(4, 16),
        agent_id: '',
        model: 'mock-embedding',
        provider: 'mock',
        prompt_tokens: body.usage.prompt_tokens,
        is_streamed: 0,
        latency_ms: 0,
        first_byte_ms: null,
        attempts: 1,
        failed_attempts: null,
        cost: 0,
        price_id: expect.stringMatching(/^[0-9a-f]{64}$/),
        rounds: 1,
        cached_tokens: 0,
        cache_write_tokens: 0,
        reasoning_tokens: 0,
        audio_tokens: 0,
        image_tokens: 0,
        created_at: 1_800_000_000,
      },
    ])
    expect(await countBy(app, 'model')).toEqual([['mock-embedding', 1]])
  })

  test('is recorded in the same way over tRPC', async () => {
    const app = await startApp()
    await callProcedure(app, 'embeddings.create', { input, dimensions: 2 })
    expect(await readCalls(app)).toMatchObject([{ ...counted, model: 'mock-embedding' }])
  })

  test.each<[string, unknown, object]>([
    ['from the provider', { prompt_tokens: 7, total_tokens: 7 }, { ...counted, prompt_tokens: 7 }],
    ["from the provider's total", { total_tokens: 9 }, { ...counted, prompt_tokens: 9 }],
    ['as an estimate if the provider reports none', undefined, { ...estimated, prompt_tokens: 5 }],
    [
      'as an estimate if the provider reports invalid counts',
      { prompt_tokens: -3, total_tokens: 1 },
      { ...estimated, prompt_tokens: 5 },
    ],
  ])('is recorded with token counts %s', async (_how, usage, row) => {
    const app = await harness.start()
    await answerWithUsage(usage)
    expect((await embed(app)).status).toBe(200)
    expect(await readCalls(app)).toEqual([{ model: 'up-embedding', provider: 'gateway', ...row }])
  })

  test('is recorded with the exact number of tokens if the input consists of token arrays', async () => {
    const app = await harness.start()
    await answerWithUsage(null)
    await embed(app, { input: [[1, 2, 3], [4]] })
    expect(await readCalls(app)).toMatchObject([{ ...estimated, prompt_tokens: 4 }])
  })
})

describe('a failed embeddings call', () => {
  test.each<[string, string, string]>([
    ['if every attempt fails', '{{up:status 500}}', 'backend_error'],
    ['if the request is invalid', '{{up:status 400}}{{up:message no}}', 'invalid_value'],
    ['if the response is invalid', '{{up:body {}}}', 'backend_error'],
    ['if the connection is lost', '{{up:cut-off}}', 'backend_unavailable'],
  ])('is recorded in one row without tokens (%s)', async (_how, script, status) => {
    const app = await harness.start()
    await embed(app, { input: script })
    expect(await readCalls(app)).toMatchObject([{ ...failed, status }])
    expect(await totalUsage(app)).toMatchObject({ requests: 1, errors: 1 })
  })

  test('is not recorded if it was rejected before it was sent to a provider', async () => {
    const app = await startApp()
    const statuses = [{ model: 'unknown' }, { input: '' }].map(
      async (more) => (await embed(app, more)).status,
    )
    expect(await Promise.all(statuses)).toEqual([404, 400])
    expect(await readCalls(app)).toEqual([])
  })
})

test('an embeddings call that the client aborts is recorded with an estimate and not as an error', async () => {
  const app = await harness.start()
  const leaving = new AbortController()
  const asked = embed(app, { input: '{{up:hang}} leaving' }, leaving.signal).catch(() => 'left')
  await harness.upstream.waitForRequest('leaving')
  leaving.abort()
  expect(await asked).toBe('left')
  await expect.poll(() => totalUsage(app), { timeout: 10_000 }).toMatchObject({ requests: 1, errors: 0 })
  expect(await readCalls(app)).toMatchObject([{ ...estimated, status: 'left', prompt_tokens: 5 }])
})

describe('a token budget', () => {
  test('is charged for embeddings tokens and rejects embeddings calls once it is spent', async () => {
    const app = await startApp({}, { clock: createFakeClock(1_800_000_000) })
    const { deps } = app.service
    const used = (await embed(app)).body.usage.prompt_tokens
    await setBudget(deps, serviceActor, ownerOf(app), { day: BOUND + used })
    expect((await embed(app)).status).toBe(200)
    expect(await getBudget(deps, ownerOf(app))).toEqual({ day: { limit: BOUND + used, used: 2 * used } })
    const refused = await embed(app)
    const error = { type: 'rate_limit_error', code: 'insufficient_quota' }
    expect(refused).toMatchObject({ status: 429, body: { error } })
    expect(await totalUsage(app)).toMatchObject({ requests: 2 })
  })

  test('prevents requests to the provider once it is spent', async () => {
    const app = await harness.start()
    await setBudget(app.service.deps, serviceActor, ownerOf(app), { day: 0 })
    expect((await embed(app)).status).toBe(429)
    expect((await harness.upstream.listRequests()).filter((seen) => seen.path === path)).toEqual([])
  })

  test('releases the reservation of a failed embeddings call', async () => {
    const app = await harness.start()
    await setBudget(app.service.deps, serviceActor, ownerOf(app), { day: 100 })
    await embed(app, { input: '{{up:status 500}}' })
    expect(await listBudgetCounters(app)).toEqual([{ period: 'day', used: 0, reserved: 0 }])
  })

  test('is never exceeded by 50 concurrent embeddings calls', async () => {
    const app = await startApp()
    await setBudget(app.service.deps, serviceActor, ownerOf(app), { day: 3 * BOUND })
    const answers = await Promise.all(Array.from({ length: 50 }, () => embed(app, { dimensions: 2 })))
    const passed = answers.filter(({ status }) => status === 200)
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(50 - passed.length)
    const perCall = passed[0]?.body.usage.prompt_tokens
    const { total_tokens } = await totalUsage(app)
    expect(total_tokens).toBe(perCall * passed.length)
    expect(total_tokens).toBeGreaterThan(0)
    expect(total_tokens).toBeLessThanOrEqual(3 * BOUND)
  })
})
