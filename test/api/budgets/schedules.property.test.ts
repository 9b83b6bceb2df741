/**
 * Tests with random schedules of calls, processes that die and processes that pause that a provider never
 * charges more than a budget.
 */
import { createSecretKey } from 'node:crypto'
import fc from 'fast-check'
import { expect, inject, test } from 'vitest'
import { BudgetEnforcer } from '../../../src/budgets/enforcer.ts'
import { ServiceError } from '../../../src/lib/errors.ts'
import { createUsageTracker, type UsageRecord, type UsageTracker } from '../../../src/usage/tracker.ts'
import { startApp, type TestApp } from '../../support/app.ts'
import {
  type Amounts,
  addAmounts,
  divideUp,
  outputOf,
  PRICES,
  type Request,
  type SentRequest,
  type Step,
  schedule,
  sumOf,
  toBody,
  toBooking,
  toCharge,
  toReserved,
  toUsage,
} from '../../support/budget-schedules.ts'
import { writeConfigFile } from '../../support/config-file.ts'
import { createFakeClock } from '../../support/fake-clock.ts'

/** Repeat a failed run with the printed seed: `PARLEY_TEST_SEED=1 PARLEY_TEST_SCHEDULES=10000`. */
const seed = Number(process.env.PARLEY_TEST_SEED ?? Date.now() % 2 ** 31)
const schedules = Number(process.env.PARLEY_TEST_SCHEDULES ?? (inject('database') === 'sqlite' ? 2_000 : 300))

const DAY_SECONDS = 86_400
interface Process {
  readonly enforcer: BudgetEnforcer
  readonly usage: UsageTracker
}

/** A request that the provider has received, and that the service has not settled. */
interface OpenRound extends SentRequest {
  readonly record: UsageRecord
  readonly process: Process
  readonly day: number
  readonly next: readonly Request[]
}

let app: TestApp
const clock = createFakeClock()
let schedulesRun = 0
/** Counts the outcomes in all schedules, which shows that they reach each of them. */
const seen: Record<string, number> = {}
const count = (what: string, more = 1) => {
  seen[what] = (seen[what] ?? 0) + more
}

/** Starts the parts of a process that admit calls. It does not renew reservations on its own. */
function startProcess(): Process {
  const deps = { ...app.service.deps, subjectKey: createSecretKey(Buffer.alloc(32)) }
  const enforcer = new BudgetEnforcer(deps)
  return { enforcer, usage: createUsageTracker({ ...deps, budgets: enforcer }) }
}

/** The budgets of each schedule. */
const kinds = [
  ['tokens', 'day'],
  ['usd', 'day'],
  ['usd', 'total'],
] as const
/** Makes limits in tokens and in nano-dollars similar. */
const unitsOf = { tokens: 1, usd: 60 }

/** Two processes, a provider and its ledger. */
class World {
  readonly tenantId = `tenant${String(schedulesRun++).padStart(6, '0')}`
  readonly open: OpenRound[] = []
  /** Amounts that the provider charges, and that the service must book when all calls have ended, by day. */
  private readonly charged = new Map<number, Amounts>()
  private readonly expected = new Map<number, Amounts>()
  private processes: [Process, Process] = [startProcess(), startProcess()]
  private readonly limit: number
  private grants = 0

  constructor(limit: number) {
    this.limit = limit
  }

  async createBudgets(): Promise<void> {
    const untilMidnight = DAY_SECONDS - ((clock.now() / 1000) % DAY_SECONDS)
    // Schedules cross the end of a period.
    clock.advance(untilMidnight + DAY_SECONDS - 300)
    const row = { parent_key_id: this.tenantId, scope_kind: 'key', scope_id: this.tenantId } as const
    const more = { warn_at: '[50,80,100]', mode: 'enforce', managed_by: 'operator', created_at: 1 } as const
    const rows = kinds.map(([unit, period]) => ({
      ...{ id: this.idOf(unit, period), ...row, ...more, unit, period },
      amount: this.limit * unitsOf[unit] * (period === 'total' ? 2 : 1),
    }))
    await app.service.deps.db.insertInto('budgets').values(rows).execute()
  }

  private idOf(unit: string, period: string): string {
    return `${this.tenantId} ${unit} ${period}`
  }

  async run(each: Step): Promise<void> {
    if (each.kind === 'begin')
      await Promise.all(each.calls.map(({ replica, rounds }) => this.begin(this.processes[replica], rounds)))
    else if (each.kind === 'end') {
      const picked = new Set(each.picks.flatMap((pick) => this.open[pick] ?? []))
      await Promise.all([...picked].map((round) => this.end(round)))
    } else if (each.kind === 'kill') this.kill(each.replica)
    else if (each.kind === 'restart') await this.restart()
    else if (each.kind === 'pass') await this.pass(each.seconds, each.paused)
    else await this.grant(each.amount)
  }

  private async begin(process: Process, [first, ...next]: readonly Request[]): Promise<void> {
    if (first === undefined) return
    const record = process.usage.begin({
      ...{ operation: 'chat', requestId: 'r', tenantId: this.tenantId, agentId: undefined },
      ...{ provider: 'gateway', model: 'metered', isStreamed: true, request: toBody(first) },
    })
    await this.beginRound({ process, record, next }, first)
  }

  private async beginRound(
    call: Pick<OpenRound, 'process' | 'record' | 'next'>,
    request: Request,
  ): Promise<void> {
    const { record } = call
    record.calling({ name: 'gateway', metering: undefined }, 'metered', toBody(request))
    const day = Math.floor(clock.now() / 86_400_000)
    let granted: number | undefined
    try {
      granted = (await record.reserve(toBody(request)))?.tokens
    } catch (thrown) {
      if (!(thrown instanceof ServiceError) || thrown.reason !== 'insufficient_quota') throw thrown
      count(thrown.code)
      await record.end('insufficient_quota')
      return
    }
    expect(granted).toBeDefined()
    const round = { ...call, request, granted: granted as number, day }
    if (record.isLimited) count('limited')
    if (request.ending.kind !== 'refused') addAmounts(this.charged, day, toCharge(round))
    this.open.push(round)
  }

  /** Ends a request to the provider; the call then makes its next one. */
  private async end(round: OpenRound): Promise<void> {
    this.open.splice(this.open.indexOf(round), 1)
    const { record, request, day, next } = round
    const { ending } = request
    count(ending.kind === 'whole' ? `usage ${ending.usage}` : ending.kind)
    addAmounts(this.expected, day, toBooking(round))
    const sent = ending.kind === 'cut' ? Math.min(ending.seen, outputOf(round)) : outputOf(round)
    const textBytes = sent * request.bytesPerToken
    const said = { text: undefined, textBytes, audioBytes: 0, mediaBytes: 0, isUsageEarly: false }
    if (ending.kind === 'hangs') return record.end('left')
    if (ending.kind === 'refused') record.failCall('unused')
    else if (ending.kind === 'timeout') record.failCall('unknown')
    else if (ending.kind === 'lost') record.used(undefined, said, 'lost')
    else if (ending.kind === 'cut') record.used(undefined, said, 'cut')
    else record.used(toUsage(round) as never, said, 'whole')
    const [following, ...others] = next
    if (following === undefined) await record.end('ok')
    else await this.beginRound({ ...round, next: others }, following)
  }

  /** The process stops at once; its calls never settle. */
  private kill(index: 0 | 1): void {
    const killed = this.processes[index]
    this.processes[index] = startProcess()
    for (const round of this.open.filter(({ process }) => process === killed)) {
      this.open.splice(this.open.indexOf(round), 1)
      addAmounts(this.expected, round.day, toReserved(round))
      count('killed')
    }
  }

  /** Kills both processes, and starts one that knows that it is alone. */
  private async restart(): Promise<void> {
    this.kill(0)
    this.kill(1)
    const { gate } = this.processes[0].enforcer
    await gate.start(true)
    await gate.close()
  }

  private async pass(seconds: number, paused: 0 | 1 | undefined): Promise<void> {
    for (let left = seconds; left > 0; left -= 20) {
      clock.advance(Math.min(left, 20))
      for (const [index, { enforcer }] of this.processes.entries())
        if (index !== paused) await enforcer.gate.maintain()
    }
  }

  private async grant(amount: number): Promise<void> {
    const seconds = Math.floor(clock.now() / 1000)
    const common = { subject: '', kind: 'grant', reason: 'r', actor: 'a', created_at: seconds } as const
    const rows = kinds.map(([unit, period]) => ({
      id: `${this.tenantId} ${this.grants++}`,
      budget_id: this.idOf(unit, period),
      starts_at: period === 'total' ? 0 : Math.floor(seconds / DAY_SECONDS) * DAY_SECONDS,
      ...{ ...common, amount: amount * unitsOf[unit], expires_at: null },
    }))
    await app.service.deps.db.insertInto('budget_entries').values(rows).execute()
  }

  private readCounters() {
    return app.service.deps.db
      .selectFrom('budget_counters')
      .innerJoin('budgets', 'budgets.id', 'budget_counters.budget_id')
      .select(['unit', 'period', 'starts_at', 'booked', 'reserved', 'amount'])
      .select(({ selectFrom }) =>
        selectFrom('budget_entries')
          .select(({ fn }) => fn.sum<number | null>('budget_entries.amount').as('sum'))
          .whereRef('budget_entries.budget_id', '=', 'budget_counters.budget_id')
          .whereRef('budget_entries.starts_at', '=', 'budget_counters.starts_at')
          .as('granted'),
      )
      .where('parent_key_id', '=', this.tenantId)
      .execute()
  }

  /** Reads the committed counters, and compares them with their limits and with the provider's ledger. */
  async check(isCalm: boolean): Promise<void> {
    for (const counter of await this.readCounters()) {
      const { unit, period, amount, granted, booked, reserved, starts_at } = counter
      const limit = amount + Number(granted ?? 0)
      expect(booked + reserved, `${unit} ${period}`).toBeLessThanOrEqual(limit)
      if (!isCalm) continue
      const day = period === 'total' ? undefined : starts_at / 86_400
      const ledger = sumOf(this.charged, day)
      const charged = unit === 'tokens' ? ledger.tokens : divideUp(ledger.milliNano)
      expect(charged, `charged ${unit} ${period}`).toBeLessThanOrEqual(BigInt(booked + reserved))
    }
  }

  /** Ends everything, and compares what is booked with the tester's own arithmetic. */
  async finish(): Promise<void> {
    while (this.open.length > 0) await Promise.all([...this.open].map((round) => this.end(round)))
    await this.pass(100, undefined)
    await this.check(true)
    for (const { unit, period, booked, reserved, starts_at } of await this.readCounters()) {
      const expected = sumOf(this.expected, period === 'total' ? undefined : starts_at / 86_400)
      const amount = unit === 'tokens' ? expected.tokens : expected.milliNano / 1_000n
      expect([unit, period, BigInt(booked), reserved]).toEqual([unit, period, amount, 0])
      if (expected.tokens > 0n) count('booked counters')
    }
  }
}

test('an honest provider never charges more than a budget, and the booked amounts are exact', async () => {
  app = await startApp(
    {
      PARLEY_CONFIG: await writeConfigFile(PRICES),
      PARLEY_BACKEND: 'gateway',
      PARLEY_GATEWAY_URL: 'http://127.0.0.1:1/v1',
      PARLEY_BUDGET_WAIT_SECONDS: '0',
    },
    { clock },
  )
  await fc.assert(
    fc.asyncProperty(schedule, async ({ steps, limit }) => {
      const world = new World(limit)
      await world.createBudgets()
      for (const each of steps) {
        // Also reads the counters while the calls run.
        await Promise.all([world.run(each), world.check(false)])
        await world.check(true)
      }
      await world.finish()
    }),
    { numRuns: schedules, seed },
  )
  expect(seen).toMatchObject(
    Object.fromEntries(
      ['insufficient_quota', 'budget_reserved', 'limited', 'usage correct', 'usage none', 'cut', 'lost']
        .concat(['timeout', 'refused', 'hangs', 'killed', 'booked counters'])
        .map((what) => [what, expect.any(Number)]),
    ),
  )
}, 600_000)
