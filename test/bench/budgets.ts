/** Measures the cost of budgets: calls of an agent with four budgets, and the bound of a request's input. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { boundTokens } from '../../src/budgets/bounds/tokens.ts'
import { measurePairs } from './budget-pairs.ts'
import { BenchFailure } from './connection.ts'
import { runRequests, runStreams } from './load.ts'
import type { Server } from './processes.ts'
import { type Row, toRow } from './report.ts'
import { agentYaml, chatRequest, isCompletion } from './requests.ts'
import { type Contestant, compare, median } from './rounds.ts'
import { type BenchSetup, model } from './setup.ts'
import { microsPer } from './stored-turns.ts'

/** The maximum duration of one turn, in milliseconds. Calls with budgets take longer than others. */
const limitMs = 120_000
/** Below this number of rounds, as with `--quick`, each turn makes fewer calls. */
const MANY_ROUNDS = 20

function countFor({ effort }: BenchSetup, count: number): number {
  return effort.rounds < MANY_ROUNDS ? count / 4 : count
}

/** Budgets that no run of the benchmark uses up. Each call reserves in all of them. */
const budgets = [
  { unit: 'usd', period: 'month', limit: '1000000' },
  { unit: 'usd', period: 'day', limit: '1000000' },
  { unit: 'tokens', period: 'month', limit: '900000000000' },
  { unit: 'tokens', period: 'day', limit: '900000000000' },
]

/** The column `bare` shows calls without a budget on the same server. */
export async function measureBudgets(setup: BenchSetup): Promise<Row[]> {
  const config = join(setup.folder, 'prices.json')
  const price = { per_million: { input: 1, output: 4 } }
  const metered = { url: '${PARLEY_GATEWAY_URL}', api_key: '${PARLEY_GATEWAY_API_KEY}', metering: 'bytes' }
  const prices = { [`gateway/${model}`]: [price] }
  writeFileSync(config, JSON.stringify({ providers: { metered }, prices }))
  const server = await setup.startOursEmpty({ PARLEY_CONFIG: config })
  try {
    const parentKey = await server.printedKey()
    const keys = [await createAgent(server, parentKey, []), await createAgent(server, parentKey, budgets)]
    const requestsOf = (stream: boolean): Contestant[] =>
      keys.map((key) => ({ server, request: chatRequest(key, { stream }) }))
    const rows = [
      await measureChat(setup, requestsOf(false)),
      await measureStream(setup, requestsOf(true)),
      await measureFirstToken(setup, requestsOf(true)),
      await measureMetering(setup, server, 'gateway', { metering: 'reported', ratio: 1.05 }),
      await measureMetering(setup, server, 'metered', { metering: 'bytes', ratio: 1.25 }),
      await measureBound('2 MiB of Chinese', '漢'.repeat((2 * 1024 ** 2) / 3), 30),
      await measureBound('100 KiB of English', 'plain text '.repeat(9_310), 0.5),
    ]
    return [...rows, ...(await measurePairs(countFor(setup, 200)))]
  } finally {
    await server.stop()
  }
}

/** Creates an agent with budgets; returns its key. */
async function createAgent(
  { port }: Server,
  parentKey: string,
  limits: readonly object[],
  yaml = agentYaml,
): Promise<string> {
  const create = async (path: string, type: string, body: string) => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${parentKey}`, 'content-type': type },
      body,
    })
    const text = await response.text()
    if (response.status !== 201) throw new BenchFailure(`${path} returned ${response.status}: ${text}`)
    return JSON.parse(text)
  }
  const agent = await create('/v1/agents', 'application/yaml', yaml)
  for (const limit of limits)
    await create(
      '/v1/budgets',
      'application/json',
      JSON.stringify({ scope: { type: 'agent', id: agent.agent_id }, ...limit }),
    )
  return agent.agent_key
}

async function measureChat(setup: BenchSetup, contestants: readonly Contestant[]): Promise<Row> {
  const count = countFor(setup, 2_000)
  const outcomes = await compare(contestants, setup.effort, ({ server: { port }, request }) =>
    runRequests({ port, request, connections: 32, count, isRight: isCompletion, limitMs }),
  )
  const [without = [], within = []] = outcomes.map((outcome) => microsPer(count, outcome))
  return toRow('chat with 4 budgets (bare: without): CPU ms per 1,000', without, within, { ratio: 1.15 })
}

async function measureStream(setup: BenchSetup, contestants: readonly Contestant[]): Promise<Row> {
  const load = { connections: 50, streamsEach: 2, chunks: countFor(setup, 400) }
  await setup.plan({ chunks: load.chunks, chunksPerWrite: 4, intervalMs: 0 })
  const outcomes = await compare(contestants, setup.effort, ({ server: { port }, request }) =>
    runStreams({ ...load, port, request, limitMs }),
  )
  const units = load.connections * load.streamsEach * load.chunks
  const [without = [], within = []] = outcomes.map((outcome) => microsPer(units, outcome))
  return toRow('stream with 4 budgets (bare: without): CPU µs a chunk', without, within, { ratio: 1.05 })
}

/** Compares streams of an agent with one budget to those of an agent without a budget. */
async function measureMetering(
  setup: BenchSetup,
  server: Server,
  provider: string,
  { metering, ratio }: { readonly metering: string; readonly ratio: number },
): Promise<Row> {
  const parentKey = await server.printedKey()
  const yaml = agentYaml.replace(model, `${provider}/${model}`)
  const keys = [
    await createAgent(server, parentKey, [], yaml),
    await createAgent(server, parentKey, budgets.slice(-1), yaml),
  ]
  const load = { connections: 50, streamsEach: 2, chunks: 400 }
  await setup.plan({ chunks: load.chunks, chunksPerWrite: 4, intervalMs: 0 })
  // With the metering `bytes`, a smaller limit would end the streams early.
  const requests = keys.map((key) => ({
    server,
    request: chatRequest(key, { stream: true, maxTokens: 4_000 }),
  }))
  const outcomes = await compare(requests, setup.effort, ({ server: { port }, request }) =>
    runStreams({ ...load, port, request, limitMs }),
  )
  const units = load.connections * load.streamsEach * load.chunks
  const [without = [], within = []] = outcomes.map((outcome) => microsPer(units, outcome))
  return toRow(
    `stream metered by \`${metering}\` (bare: without a budget): CPU µs a chunk`,
    without,
    within,
    {
      ratio,
    },
  )
}

async function measureFirstToken(setup: BenchSetup, contestants: readonly Contestant[]): Promise<Row> {
  const load = { connections: 1, streamsEach: countFor(setup, 200), chunks: 4 }
  await setup.plan({ chunks: load.chunks, chunksPerWrite: 1, intervalMs: 0 })
  const outcomes = await compare(contestants, setup.effort, async ({ server: { port }, request }) =>
    median(await runStreams({ ...load, port, request, limitMs })),
  )
  const [without = [], within = []] = outcomes.map(({ results }) => results)
  const goal = { ratio: 1, added: 2 }
  return toRow('stream with 4 budgets (bare: without): p50 ms to first token', without, within, goal)
}

/** Measures in this process how long it takes to bound the tokens of a text. */
async function measureBound(name: string, text: string, mostMs: number): Promise<Row> {
  const times: number[] = []
  for (let round = 0; round < 15; round++) {
    const startedMs = performance.now()
    await boundTokens({ messages: [{ role: 'user', content: text }] }, 1)
    times.push(performance.now() - startedMs)
  }
  return toRow(`input bound of ${name}: ms`, [Number.NaN], times.slice(5), { value: mostMs })
}
