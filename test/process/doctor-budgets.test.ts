/** Tests how `parley doctor` checks the counters of budgets. */
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { openApp, type TestApp } from '../support/app.ts'
import { runCommandInProcess } from '../support/command.ts'
import { openSqliteFile } from '../support/database.ts'
import { makeFolder } from '../support/process.ts'
import { ownerOf, sendChat } from '../support/usage.ts'

// Starting processes is slow on a busy machine.
vi.setConfig({ testTimeout: 60_000 })

/** Creates budgets, sends a chat and stops the server. */
async function makeInstallation(): Promise<{ folder: string; ids: string[] }> {
  const folder = await makeFolder()
  const app: TestApp = await openApp({ PARLEY_DATA_DIR: join(folder, 'data') })
  const scope = { type: 'key', id: ownerOf(app).tenantId }
  const ids: string[] = []
  for (const period of ['day', 'total']) {
    const { body } = await app.call('POST', '/v1/budgets', { body: { scope, period, limit: 5_000 } })
    ids.push(body.id)
  }
  expect((await sendChat(app, 'hello')).status).toBe(200)
  await app.call('POST', `/v1/budgets/${ids[1]}/adjustments`, { body: { amount: -3, reason: 'refund' } })
  await app.close()
  return { folder, ids }
}

async function findings(folder: string): Promise<string[]> {
  const { stdout } = await runCommandInProcess(['doctor', '--json'], { folder, env: { PORT: '0' } })
  const { checks } = JSON.parse(stdout) as { checks: { check: string; state: string; message: string }[] }
  return checks.filter(({ check }) => check === 'budgets').map(({ state, message }) => `${state}: ${message}`)
}

test('doctor finds no problem in the counters of a stopped server', async () => {
  const { folder } = await makeInstallation()
  expect(await findings(folder)).toEqual(['ok: the counters of 2 budgets are consistent'])
})

test('doctor names budgets whose counters differ from reservations and days, and says what to do', async () => {
  const { folder, ids } = await makeInstallation()
  const database = openSqliteFile(join(folder, 'data'))
  database.prepare('update budget_counters set reserved = 7 where budget_id = ?').run(ids[0])
  database.prepare('update budget_counters set booked = 0 where budget_id = ?').run(ids[1])
  database
    .prepare(
      `insert into budget_reservations (id, budget_id, subject, starts_at, amount, process_id, expires_at)
      select 'r', budget_id, '', starts_at, 7, 'gone', 1 from budget_counters where budget_id = ?`,
    )
    .run(ids[1])
  const found = await findings(folder)
  expect(found).toHaveLength(3)
  const both = [...ids].sort().join(', ')
  expect(found[0]).toMatch(`warn: the reserved amount of ${both} differs from its reservations;`)
  expect(found[1]).toBe(
    `warn: ${ids[1]} has reservations of a stopped server; start a server, which books them`,
  )
  expect(found[2]).toMatch(`warn: ${ids[1]} has booked less than the usage of its period;`)
})
