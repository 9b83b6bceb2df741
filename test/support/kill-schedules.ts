/** Runs random schedules of budgeted calls while servers are killed, and checks what the provider charges. */
import { setImmediate } from 'node:timers/promises'
import fc from 'fast-check'
import { expect } from 'vitest'
import type { CallPlan, Ledger, LedgerProvider } from './ledger-provider.ts'
import { callServer, type RunningServer } from './process.ts'

/** A failure names its schedule; repeat it with `PARLEY_TEST_SEED`. */
const seed = Number(process.env.PARLEY_TEST_SEED ?? Date.now() % 2 ** 31)
const runMs = Number(process.env.PARLEY_TEST_SECONDS ?? 40) * 1000

/** The prices of the provider's model, and its nano-dollars for each token. */
export const LEDGER_PRICES = `
prices:
  gateway/metered:
    - per_million: { input: 1, output: 2 }
`
const [INPUT, OUTPUT] = [1_000, 2_000]

/** Removes all limits other than those of budgets. */
export const withoutLimits = {
  PARLEY_RATE_LIMIT_PARENT: '0',
  PARLEY_RATE_LIMIT_AUTH_FAILURES: '0',
  PARLEY_MAX_STREAMS_PARENT: '0',
  PARLEY_MAX_STREAMS_ADDRESS: '0',
  PARLEY_BREAKER_CALLS: '100000',
}

const plan = fc.record({
  wanted: fc.oneof(fc.nat(40), fc.nat(2_000)),
  ending: fc.constantFrom<CallPlan['ending'][]>(
    'whole',
    'whole',
    'whole',
    'silent',
    'lies',
    'cut',
    'hangs',
    'refused',
  ),
  at: fc.oneof(fc.nat(3), fc.nat(60)),
  doesLeave: fc.nat(4).map((one) => one === 0),
})
const schedule = fc.record({
  calls: fc.array(
    fc.record({
      plan,
      stream: fc.boolean(),
      maxTokens: fc.option(fc.integer({ min: 1, max: 3_000 }), { nil: undefined }),
    }),
    { minLength: 16, maxLength: 48, size: 'max' },
  ),
  callers: fc.constantFrom(4, 16, 32),
  limit: fc.integer({ min: 2_000, max: 60_000 }),
  /** The number of requests to the provider after which a server is killed. */
  killAfter: fc.nat(8),
  victim: fc.nat(1),
})
type Schedule = typeof schedule extends fc.Arbitrary<infer S> ? S : never
type Call = Schedule['calls'][number]

/** A committed counter of an agent's budget. */
export interface CounterRow {
  readonly unit: 'tokens' | 'usd'
  readonly amount: number
  readonly booked: number
  readonly reserved: number
}

/** The columns of `CounterRow` in SQL, without the value of `scope_id`. */
export const selectCounters =
  'select unit, amount, booked, reserved from budget_counters join budgets on budgets.id = budget_id where scope_id = '

interface Installation {
  readonly provider: LedgerProvider
  readonly key: string
  readonly servers: RunningServer[]
  readonly start: () => Promise<RunningServer>
  readonly readCounters: (agentId: string) => Promise<readonly CounterRow[]>
}

/** Number of agents that exist at the same time. Each has two of the 20 budgets that a key may have. */
const MOST_AGENTS = 8

/** Runs schedules for PARLEY_TEST_SECONDS (40); returns the number of schedules and what happened in them. */
export async function runKillSchedules(installation: Installation) {
  const seen: Record<string, number> = {}
  const untilMs = performance.now() + runMs
  const agents: string[] = []
  let index = 0
  for (; index === 0 || performance.now() < untilMs; index++) {
    const [sample] = fc.sample(schedule, { seed: seed + index, numRuns: 1 })
    const name = `schedule of PARLEY_TEST_SEED=${seed + index}`
    const agentId = await createAgent(serverOf(installation), installation.key, (sample as Schedule).limit)
    agents.push(agentId)
    for (const what of await runSchedule(installation, agentId, sample as Schedule, name))
      seen[what] = (seen[what] ?? 0) + 1
    if (agents.length > MOST_AGENTS) await deleteAgent(installation, agents.shift() as string)
  }
  return { schedules: index, seen }
}

async function runSchedule(
  { provider, key, servers, start, readCounters }: Installation,
  agentId: string,
  { calls, callers, killAfter, victim }: Schedule,
  name: string,
): Promise<readonly string[]> {
  const ledger: Ledger = { input: 0, output: 0 }
  const results: string[] = []
  const at = victim % servers.length
  let requests = 0
  let isKilled = false
  const kill = async () => {
    isKilled = true
    await servers[at]?.crash()
    servers[at] = await start()
  }
  let killing = Promise.resolve()
  const onRequest = () => {
    requests += 1
    if (requests > killAfter && !isKilled) killing = kill()
  }

  async function send(
    { plan, stream, maxTokens }: Call,
    text: string,
    server: RunningServer,
  ): Promise<string> {
    const leaving = new AbortController()
    const onReached = () => {
      onRequest()
      if (plan.doesLeave || plan.ending === 'hangs') leaving.abort()
    }
    provider.plans.set(text, { plan: { ...plan, onReached }, ledger })
    const body = {
      model: `agent/${agentId}`,
      stream,
      max_tokens: maxTokens,
      messages: [{ role: 'user', content: text }],
    }
    try {
      const response = await fetch(`${server.url}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
        signal: leaving.signal,
      })
      await response.text()
      return String(response.status)
    } catch {
      return leaving.signal.aborted ? 'left' : 'lost'
    }
  }

  async function check(): Promise<readonly CounterRow[]> {
    const charged = {
      tokens: ledger.input + ledger.output,
      usd: ledger.input * INPUT + ledger.output * OUTPUT,
    }
    const counters = await readCounters(agentId)
    for (const { unit, amount, booked, reserved } of counters) {
      expect(booked + reserved, name).toBeLessThanOrEqual(amount)
      expect(charged[unit], name).toBeLessThanOrEqual(booked + reserved)
    }
    return counters
  }

  const queue = calls.map((call, index) => ({ call, text: `${name}, call ${index}` }))
  let isRunning = true
  const checking = (async () => {
    for (; isRunning; await setImmediate()) await check()
  })()
  // Is awaited below; until then, its rejection is handled.
  checking.catch(() => {})
  await Promise.all(
    Array.from({ length: callers }, async (_, caller) => {
      for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
        // While a server restarts, its callers wait for it, as a load balancer would make them.
        const result = await send(next.call, next.text, servers[caller % servers.length] as RunningServer)
        results.push(result)
        if (result === 'lost') await killing
      }
    }),
  ).finally(() => {
    isRunning = false
  })
  await checking
  if (!isKilled) await kill()
  await killing
  await check()
  return results
}

function serverOf({ servers }: Installation): RunningServer {
  return servers[0] as RunningServer
}

async function deleteAgent(installation: Installation, id: string): Promise<void> {
  const { status } = await callServer(
    serverOf(installation).url,
    'DELETE',
    `/v1/agents/${id}`,
    installation.key,
  )
  expect(status).toBeLessThan(300)
}

/** Creates an agent with a budget of `tokens` tokens and a similar one in US dollars. */
async function createAgent({ url }: RunningServer, key: string, tokens: number): Promise<string> {
  const created = await fetch(`${url}/v1/agents`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/yaml' },
    body: 'name: Metered\ninstructions: Answer.\nmodel: metered\n',
  })
  const { agent_id: id } = (await created.json()) as { agent_id: string }
  const usd = ((tokens * OUTPUT) / 1e9).toFixed(9)
  for (const [unit, limit] of [
    ['tokens', tokens],
    ['usd', usd],
  ]) {
    const budget = { scope: { type: 'agent', id }, unit, period: 'total', limit }
    const { status, body } = await callServer(url, 'POST', '/v1/budgets', key, budget)
    if (status !== 201) throw new Error(JSON.stringify(body))
  }
  return id
}
