/** Measures how fast two processes reserve and settle in the four budgets of one key on PostgreSQL. */
import { spawn } from 'node:child_process'
import { createSecretKey, randomBytes } from 'node:crypto'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { BudgetEnforcer } from '../../src/budgets/enforcer.ts'
import { parseConfig } from '../../src/config/parse.ts'
import { openDatabase } from '../../src/db/open.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { startPostgres } from '../support/postgres.ts'
import { type Row, toRow } from './report.ts'

const PROCESSES = 2
const CALLERS = 16
const SHARE = 0.99
const tenantId = 'benchmarkkey'

interface Pairs {
  readonly perSecond: number
  readonly p99Ms: number
}

/** `pairs` is the number of reservations that each caller settles. */
export async function measurePairs(pairs: number): Promise<Row[]> {
  const postgres = await startPostgres()
  try {
    const databaseUrl = postgres.urlOf('postgres')
    const opened = await openDatabase({ dataDir: ':memory:', databaseUrl, role: 'server' })
    const scope = { parent_key_id: tenantId, scope_kind: 'key', scope_id: tenantId } as const
    const more = {
      amount: 10 ** 12,
      warn_at: '[]',
      mode: 'enforce',
      managed_by: 'operator',
      created_at: 1,
    } as const
    for (const period of ['day', 'week', 'month', 'total'] as const) {
      const row = { id: period, ...scope, ...more, unit: 'tokens', period } as const
      await opened.db.insertInto('budgets').values(row).execute()
    }
    await opened.close()
    const runs = await Promise.all(Array.from({ length: PROCESSES }, () => runElsewhere(databaseUrl, pairs)))
    const perSecond = runs.reduce((sum, run) => sum + run.perSecond, 0)
    const p99Ms = Math.max(...runs.map((run) => run.p99Ms))
    const name = `one key with 4 budgets on PostgreSQL, ${PROCESSES * CALLERS} callers`
    return [
      toRow(`${name}: µs a pair`, [Number.NaN], [1e6 / perSecond], { value: 500 }),
      toRow(`${name}: p99 ms to reserve`, [Number.NaN], [p99Ms], { value: 25 }),
    ]
  } finally {
    await postgres.remove()
  }
}

async function runElsewhere(databaseUrl: string, pairs: number): Promise<Pairs> {
  const path = fileURLToPath(import.meta.url)
  const child = spawn(process.execPath, [path, databaseUrl, String(pairs)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  return JSON.parse(await text(child.stdout))
}

/** Runs in a separate process. */
async function runCallers(databaseUrl: string, pairs: number): Promise<Pairs> {
  const { config } = await parseConfig({ DATABASE_URL: databaseUrl, PARLEY_DATA_DIR: ':memory:' })
  const { db } = await openDatabase({ ...config, role: 'command' })
  const metrics = { budgetRefused() {}, budgetWait: { observe() {} } }
  const deps = { config, db, clock: systemClock, random: randomBytes, log: console, metrics }
  const enforcer = new BudgetEnforcer({ ...deps, subjectKey: createSecretKey(Buffer.alloc(32)) } as never)
  const times: number[] = []
  const reserveOnce = async () => {
    const startedMs = performance.now()
    const body = { messages: [{ role: 'user', content: 'hello' }], max_tokens: 100 }
    const reservation = await enforcer.reserve({ tenantId, agentId: undefined }, body, {} as never)
    times.push(performance.now() - startedMs)
    await reservation?.settle({ tokens: 50n, usd: 0n })
  }
  const startedMs = performance.now()
  await Promise.all(
    Array.from({ length: CALLERS }, async () => {
      for (let pair = 0; pair < pairs; pair++) await reserveOnce()
    }),
  )
  const perSecond = (times.length * 1_000) / (performance.now() - startedMs)
  const sorted = times.toSorted((one, other) => one - other)
  return { perSecond, p99Ms: sorted[Math.floor(sorted.length * SHARE)] as number }
}

const [, main, databaseUrl, pairs] = process.argv
if (main === fileURLToPath(import.meta.url)) {
  process.stdout.write(JSON.stringify(await runCallers(databaseUrl as string, Number(pairs))))
  process.exit()
}
