/** Tests that two processes on one database send each event of a budget exactly once. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { databaseEnvironmentOf, startApp } from '../support/app.ts'
import { createFakeClock } from '../support/fake-clock.ts'
import { OtherProcess, source } from '../support/other-process.ts'
import { ownerOf, sendChat } from '../support/usage.ts'
import {
  allowLoopback,
  createWebhook,
  deliverDue,
  startReceiver,
  verify,
  withStatus,
} from '../support/webhook-receiver.ts'

vi.setConfig({ testTimeout: 120_000 })

const CALLERS = 32
/** Minutes before the second to the eighth attempt, with the longest random extension. */
const waits = [0.1, 5.5, 33, 132, 330, 660, 924]

/** A script that waits for a line, and then lets callers spend 60 tokens each until the budget is used up. */
const spendingScript = (env: Readonly<Record<string, string>>, tenantId: string) => `
  import { createSecretKey, randomBytes } from 'node:crypto'
  import { once } from 'node:events'
  import { parseConfig } from ${source('config/parse.ts')}
  import { openDatabase } from ${source('db/open.ts')}
  import { systemClock } from ${source('lib/clock.ts')}
  import { BudgetEnforcer } from ${source('budgets/enforcer.ts')}
  const { config } = await parseConfig(${JSON.stringify(env)})
  const { db } = await openDatabase({ ...config, role: 'command' })
  const deps = { config, db, clock: systemClock, random: randomBytes, log: console, metrics: { budgetRefused() {}, budgetWait: { observe() {} } } }
  const enforcer = new BudgetEnforcer({ ...deps, subjectKey: createSecretKey(Buffer.alloc(32)) })
  async function spend() {
    const call = { tenantId: ${JSON.stringify(tenantId)}, agentId: undefined }
    for (;;) {
      const request = { messages: [{ role: 'user', content: 'Hello.' }], max_tokens: 60 }
      const reservation = await enforcer.reserve(call, request, { metering: 'reported' })
      await reservation.settle({ tokens: 60n, usd: 0n })
    }
  }
  console.log('ready')
  await once(process.stdin, 'data')
  const results = await Promise.allSettled(Array.from({ length: ${CALLERS} }, spend))
  for (const { reason } of results) if (reason.reason !== 'insufficient_quota') throw reason
  console.log('spent')
  process.exit()
`

test('64 callers in two processes cause three events, each of which a receiver receives once after seven failures', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'parley-budget-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const dataDir = join(folder, 'data')
  const database = { PARLEY_DATA_DIR: dataDir, ...(await databaseEnvironmentOf(dataDir)) }
  const clock = createFakeClock()
  const app = await startApp({ ...database, ...allowLoopback }, { clock })
  const receiver = await startReceiver()
  receiver.answerNext(...Array(3 * 7).fill(withStatus(500)))
  const events = ['budget.threshold_reached', 'budget.exhausted']
  const { secret } = await createWebhook(app, { url: receiver.url, events })
  const { tenantId } = ownerOf(app)
  const scope = { type: 'key', id: tenantId }
  const budget = await app.call('POST', '/v1/budgets', { body: { scope, period: 'total', limit: 20_000 } })
  expect(budget.status).toBe(201)

  const other = new OtherProcess(spendingScript({ ...database, PARLEY_BUDGET_WAIT_SECONDS: '0' }, tenantId))
  expect(await other.hears()).toBe('ready')
  other.say('go')
  await Promise.all(
    Array.from({ length: CALLERS }, async () => {
      while ((await sendChat(app, '[[tokens:60]]', { max_tokens: 60 })).status === 200);
    }),
  )
  expect(await other.hears()).toBe('spent')

  await deliverDue(app)
  for (const [index, minutes] of waits.entries()) {
    expect(receiver.received).toHaveLength(3 * (index + 1))
    clock.advance(minutes * 60)
    await deliverDue(app)
  }
  clock.advance(86_400)
  await deliverDue(app)
  expect(receiver.received).toHaveLength(3 * 8)
  const accepted = receiver.received.slice(-3)
  for (const each of accepted) expect(verify(secret, each)).toEqual(each.body)
  expect(new Set(receiver.received.map(({ id }) => id))).toEqual(new Set(accepted.map(({ id }) => id)))
  const thresholds = accepted.map(({ body }) => [body.type, body.data.threshold])
  expect(thresholds.sort((one, other) => one[1] - other[1])).toEqual([
    ['budget.threshold_reached', 50],
    ['budget.threshold_reached', 80],
    ['budget.exhausted', 100],
  ])
})
