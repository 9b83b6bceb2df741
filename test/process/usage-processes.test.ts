/** Tests usage records and budgets with several processes and after a server is killed. */

import { join } from 'node:path'
import type Sqlite from 'better-sqlite3'
import { describe, expect, test, vi } from 'vitest'
import { openSqliteFile } from '../support/database.ts'
import { OtherProcess, source } from '../support/other-process.ts'
import { callServer, eventually, makeFolder, type RunningServer, startServer } from '../support/process.ts'
import { tokensPerDay } from '../support/usage.ts'

// Starting processes is slow on a busy machine.
vi.setConfig({ testTimeout: 60_000 })

const DAY_MS = 86_400_000

async function startOn(folder: string, env: Readonly<Record<string, string>> = {}) {
  return startServer({ folder, env: { PARLEY_DATA_DIR: join(folder, 'data'), ...env } })
}

function ask({ url }: RunningServer, key: string, content: string) {
  const body = { messages: [{ role: 'user', content }], max_tokens: 100 }
  return callServer(url, 'POST', '/v1/chat/completions', key, body)
}

/** Inserts a daily token budget for the key directly into the database. */
function insertBudget(database: Sqlite.Database, key: string, limit: number): void {
  database
    .prepare(
      `insert into budgets (id, parent_key_id, scope_kind, scope_id, unit, period, amount, mode, managed_by, created_at)
      values (@id, @parent_key_id, @scope_kind, @scope_id, @unit, @period, @amount, @mode, @managed_by, @created_at)`,
    )
    .run(tokensPerDay(tenantOf(key), limit))
}

function tenantOf(key: string): string {
  return key.slice(4, 16)
}

function readCounter(database: Sqlite.Database) {
  return database.prepare('select booked as used, reserved from budget_counters').get() as {
    used: number
    reserved: number
  }
}

/** A script that tries to spend 60 tokens in each of 25 concurrent calls and prints how many succeed. */
const spendingScript = (dataDir: string, tenantId: string) => `
  import { createSecretKey, randomBytes } from 'node:crypto'
  import { once } from 'node:events'
  import { parseConfig } from ${source('config/parse.ts')}
  import { openDatabase } from ${source('db/open.ts')}
  import { systemClock } from ${source('lib/clock.ts')}
  import { BudgetEnforcer } from ${source('budgets/enforcer.ts')}
  const { config } = await parseConfig({ PARLEY_DATA_DIR: ${JSON.stringify(dataDir)} })
  const { db } = await openDatabase({ dataDir: config.dataDir, role: 'command' })
  const deps = { config, db, clock: systemClock, random: randomBytes, log: console, metrics: { budgetRefused() {}, budgetWait: { observe() {} } } }
  const enforcer = new BudgetEnforcer({ ...deps, subjectKey: createSecretKey(Buffer.alloc(32)) })
  async function spend() {
    const call = { tenantId: ${JSON.stringify(tenantId)}, agentId: undefined }
    const request = { messages: [{ role: 'user', content: 'Hello.' }], max_tokens: 100 }
    const reservation = await enforcer.reserve(call, request, { metering: 'reported' })
    await reservation.settle({ tokens: 60n, usd: 0n })
  }
  console.log('ready')
  await once(process.stdin, 'data')
  const results = await Promise.allSettled(Array.from({ length: 25 }, spend))
  for (const { reason } of results) if (reason && reason.reason !== 'insufficient_quota') throw reason
  console.log(results.filter(({ status }) => status === 'fulfilled').length)
  process.exit()
`

test('concurrent calls in two processes never exceed a budget', async () => {
  const limit = 1_000
  const folder = await makeFolder()
  const server = await startOn(folder)
  const key = server.key as string
  const database = openSqliteFile(join(folder, 'data'))
  insertBudget(database, key, limit)
  const otherProcess = new OtherProcess(spendingScript(join(folder, 'data'), tenantOf(key)))
  expect(await otherProcess.hears()).toBe('ready')
  otherProcess.say('go')
  const asked = Array.from({ length: 50 }, () => ask(server, key, '[[tokens:60]] [[delay:1]]'))
  const answers = await Promise.all(asked)
  const passedElsewhere = Number(await otherProcess.hears())

  const passed = answers.filter(({ status }) => status === 200)
  const rejected = answers.filter(
    ({ status, body }) => status === 429 && body.error.code === 'insufficient_quota',
  )
  expect(passed.length + rejected.length).toBe(50)
  const used = passed.reduce((sum, { body }) => sum + body.usage.total_tokens, 60 * passedElsewhere)
  expect(readCounter(database)).toEqual({ used, reserved: 0 })
  expect(used).toBeLessThanOrEqual(limit)
  expect(rejected.length).toBeGreaterThan(0)
})

test('the token reservations of a killed server are booked when the next server starts', async () => {
  const folder = await makeFolder()
  const first = await startOn(folder)
  const key = first.key as string
  const database = openSqliteFile(join(folder, 'data'))
  insertBudget(database, key, 1_000)
  const lost = ask(first, key, '[[hang]]').catch(() => 'lost')
  const isHeld = async () => (readCounter(database)?.reserved ?? 0) > 100
  expect(await eventually(isHeld, true)).toBe(true)
  first.kill('SIGKILL')
  expect(await lost).toBe('lost')

  const { reserved } = readCounter(database)

  await startOn(folder)
  expect(readCounter(database)).toEqual({ used: reserved, reserved: 0 })
})

describe('usage retention', () => {
  const countCalls = (database: Sqlite.Database) =>
    database.prepare('select count(*) from usage_calls').pluck().get()

  test('deletes old calls while the server runs and keeps their totals', async () => {
    const folder = await makeFolder()
    const first = await startOn(folder)
    const key = first.key as string
    for (const content of ['one', 'two', 'three']) await ask(first, key, content)
    const before = await callServer(first.url, 'GET', '/v1/usage', key)
    expect(before.body.total.requests).toBe(3)
    await first.stop()

    const database = openSqliteFile(join(folder, 'data'))
    const [old] = database.prepare('select * from usage_calls order by id limit 1').all() as { id: string }[]
    const oldTime = String(Number(old?.id.slice(0, 15)) - 3 * DAY_MS).padStart(15, '0')
    database.prepare('update usage_calls set id = ? || substr(id, 16) where id = ?').run(oldTime, old?.id)
    // Inserts more rows than the server deletes in one batch.
    const columns = Object.keys(old ?? {}).filter((name) => name !== 'id')
    database.exec(`
      with recursive counted (n) as (select 1 union all select n + 1 from counted where n < 1200)
      insert into usage_calls (id, ${columns}) select '${oldTime}-copy-' || n, ${columns}
      from counted, usage_calls where id like '${oldTime}%'`)
    expect(countCalls(database)).toBe(1_203)

    const second = await startOn(folder, { PARLEY_USAGE_RETENTION_DAYS: '2' })
    expect(await eventually(async () => countCalls(database), 2)).toBe(2)
    expect(await callServer(second.url, 'GET', '/v1/usage', key)).toEqual(before)
  })
})
