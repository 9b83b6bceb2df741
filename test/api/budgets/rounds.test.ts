/** Tests US dollar budgets over the requests of one turn, and over many concurrent streams. */
import { expect, test } from 'vitest'
import { startApp, type TestApp } from '../../support/app.ts'
import { writeConfigFile } from '../../support/config-file.ts'
import { createFakeClock, type FakeClock } from '../../support/fake-clock.ts'
import { type ChatBody, type Plan, startMeteredProvider } from '../../support/metered-provider.ts'
import { agentWith, tool } from '../../support/tools.ts'
import { ownerOf, sendChat } from '../../support/usage.ts'

const NOON = Date.UTC(2026, 10, 20, 12) / 1000
const PRICES = `
prices:
  gateway/metered:
    - per_million: { input: 1, cache_write: 1.25, output: 5 }
      per_call: "0.001"
    - since: 2026-11-20T12:00:00.001Z
      per_million: { input: 2.5, output: 7.0000125 }
`
/** Nano-dollars for each token at the highest rates of the first price. */
const [INPUT, OUTPUT, PER_CALL] = [1_250, 5_000, 1_000_000]
/** Instructions that Parley adds to a prompt with tools, at most. */
const TOOL_TOKENS = 512

async function start(plan: (body: ChatBody) => Plan | Promise<Plan>, clock: FakeClock) {
  const provider = await startMeteredProvider(plan)
  const app = await startApp(
    {
      PARLEY_CONFIG: await writeConfigFile(PRICES),
      PARLEY_BACKEND: 'gateway',
      PARLEY_GATEWAY_URL: provider.url,
      PARLEY_MAX_STREAMS_PARENT: '0',
      PARLEY_MAX_STREAMS_ADDRESS: '0',
    },
    { clock, tools: { lookup: tool(() => 'x'.repeat(64 * 1024)) } },
  )
  return { app, provider }
}

async function createBudget(app: TestApp, nanoUsd: number): Promise<string> {
  const scope = { type: 'key', id: ownerOf(app).tenantId }
  const body = { scope, unit: 'usd', period: 'day', limit: (nanoUsd / 1e9).toFixed(9) }
  const created = await app.call('POST', '/v1/budgets', { body })
  expect(created.status).toBe(201)
  return created.body.id
}

/** Returns amounts of a budget in nano-dollars. */
async function read(app: TestApp, id: string) {
  const { body } = await app.call('GET', `/v1/budgets/${id}`)
  const nano = (amount: string) => Math.round(Number(amount) * 1e9)
  return { limit: nano(body.limit), booked: nano(body.booked), reserved: nano(body.reserved) }
}

/** The most that a request can cost with the first price, as docs/budgets.md defines it. */
function worstCase({ messages, tools, max_tokens = 0 }: ChatBody): number {
  const bytes = Buffer.byteLength(JSON.stringify({ messages, tools }))
  return (bytes + 16 * messages.length + TOOL_TOKENS) * INPUT + max_tokens * OUTPUT + PER_CALL
}

test.each([
  ['all eight rounds', 1_050_000_000, 200, 8],
  ['some rounds', 500_000_000, 429, 4],
] as const)(
  'each tool round with a 64 KiB result reserves no more than the budget has left (%s)',
  async (_which, nano, status, leastRounds) => {
    const started = Promise.withResolvers<{ app: TestApp; id: string }>()
    const rounds: { limit: number; booked: number; reserved: number; worst: number; most: unknown }[] = []
    const { app, provider } = await start(async (body) => {
      const { app, id } = await started.promise
      rounds.push({ ...(await read(app, id)), worst: worstCase(body), most: body.max_tokens })
      return { tool: 'lookup' }
    }, createFakeClock(NOON))
    const id = await createBudget(app, nano)
    started.resolve({ app, id })
    const { agent_key: key } = await app.createAgent(agentWith(['lookup']))
    const answer = await sendChat(app, 'look it up', { model: 'metered' }, key)
    expect(answer.status).toBe(status)
    expect(rounds.length).toBeGreaterThanOrEqual(leastRounds)
    for (const { limit, booked, reserved, worst, most } of rounds) {
      expect(most).toEqual(expect.any(Number))
      expect(reserved).toBe(worst)
      expect(worst).toBeLessThanOrEqual(limit - booked)
    }
    expect(provider.requests.at(-1)?.messages.at(-1)?.content).toHaveLength(64 * 1024)
    const { limit, booked, reserved } = await read(app, id)
    expect(booked).toBeLessThanOrEqual(limit)
    expect(reserved).toBe(0)
  },
)

test('each round of a turn costs the price at its start, and the call names the last price', async () => {
  const clock = createFakeClock(NOON)
  const { app } = await start(({ messages }) => {
    const isFirst = messages.length <= 2
    // The price changes while the provider answers the first request.
    if (isFirst) clock.advance(0.001)
    const prompt_tokens = isFirst ? 200 : 4_000
    return { usage: { prompt_tokens, completion_tokens: 11 }, tool: isFirst ? 'lookup' : undefined }
  }, clock)
  const id = await createBudget(app, 1_000_000_000)
  const { agent_id } = await app.createAgent(agentWith(['lookup']))
  expect((await sendChat(app, 'look it up', { model: `agent/${agent_id}` })).status).toBe(200)
  const [first, second] = [200 * 1_000 + 11 * OUTPUT + PER_CALL, 4_000 * 2_500 + Math.ceil(11 * 7_000.0125)]
  expect((await read(app, id)).booked).toBe(first + second)
  const [call] = (await app.call('GET', '/v1/usage/calls')).body.data
  expect([call.rounds, Math.round(Number(call.cost) * 1e9)]).toEqual([2, first + second])
  const snapshots = await app.service.deps.db.selectFrom('price_snapshots').selectAll().execute()
  const stored = snapshots.find((snapshot) => snapshot.id === call.price_id)
  expect(JSON.parse(stored?.entry ?? '{}')).toMatchObject({ since: '2026-11-20T12:00:00.001Z' })
})

test('64 streams receive all tokens that they ask for from a budget that can reserve only 40 of them at once', async () => {
  const asked = { model: 'metered', max_tokens: 16_384, stream: true }
  const clock = createFakeClock(NOON)
  const release = Promise.withResolvers<void>()
  const usage = { prompt_tokens: 20, completion_tokens: 2_000, total_tokens: 2_020 }
  const { app, provider } = await start(async () => {
    await release.promise
    return { tokens: 2_000, usage }
  }, clock)
  const messages = [{ role: 'user', content: 'hello' }]
  const bytes = Buffer.byteLength(JSON.stringify({ messages })) + 16
  const limit = 40 * (bytes * INPUT + 16_384 * OUTPUT + PER_CALL)
  const id = await createBudget(app, limit)
  const answers = Array.from({ length: 64 }, () => sendChat(app, 'hello', asked))
  await expect.poll(() => provider.requests.length).toBe(40)
  await expect.poll(() => app.service.deps.budgets.gate.waitingCalls()).toBe(24)
  expect((await read(app, id)).reserved).toBe(limit)
  clock.advance(2)
  release.resolve()
  for (const { status, headers, text } of await Promise.all(answers)) {
    expect([status, headers.get('x-parley-budget')]).toEqual([200, null])
    expect(text).toContain('"finish_reason":"stop"')
  }
  expect(provider.requests.map(({ max_tokens }) => max_tokens)).toEqual(Array(64).fill(16_384))
  const { booked, reserved } = await read(app, id)
  expect([booked, reserved]).toEqual([64 * (20 * 1_000 + 2_000 * OUTPUT + PER_CALL), 0])
  expect(booked).toBeLessThan(limit / 2)
})
