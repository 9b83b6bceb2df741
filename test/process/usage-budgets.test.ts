/** Tests that two processes on one database share a token budget. */
import { spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { describe, expect, onTestFinished, test } from 'vitest'
import { setBudget } from '../../src/budgets/token-budgets.ts'
import { serviceActor } from '../../src/identity/audit.ts'
import { databaseEnvironmentOf, startApp } from '../support/app.ts'
import { listBudgetCounters, ownerOf } from '../support/usage.ts'

describe('concurrent calls in two processes', () => {
  test('together reserve no more than their shared budget', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'parley-budget-'))
    onTestFinished(() => rm(folder, { recursive: true, force: true }))
    const dataDir = join(folder, 'data')
    const env = {
      PARLEY_BUDGET_WAIT_SECONDS: '0',
      PARLEY_DATA_DIR: dataDir,
      ...(await databaseEnvironmentOf(dataDir)),
    }
    const app = await startApp(env)
    await setBudget(app.service.deps, serviceActor, ownerOf(app), { day: 10 * 115, month: 100_000 })
    const wins = await Promise.all([reserveElsewhere(), reserveElsewhere()])
    expect(wins[0] + wins[1]).toBe(10)
    expect(await listBudgetCounters(app)).toEqual([
      { period: 'day', used: 0, reserved: 1_150 },
      { period: 'month', used: 0, reserved: 1_150 },
    ])

    /**
     * Starts a process that makes 25 reservations of 115 tokens, 15 of them for the input; returns how many
     * succeed.
     */
    async function reserveElsewhere(): Promise<number> {
      const source = (path: string) => JSON.stringify(join(import.meta.dirname, '../../src', path))
      const script = `
        import { parseConfig } from ${source('config/parse.ts')}
        import { openDatabase } from ${source('db/open.ts')}
        import { systemClock } from ${source('lib/clock.ts')}
        import { createSecretKey, randomBytes } from 'node:crypto'
        import { BudgetEnforcer } from ${source('budgets/enforcer.ts')}
        const { config } = await parseConfig(${JSON.stringify(env)})
        const opened = await openDatabase({ ...config, role: 'command' })
        const deps = { config, db: opened.db, clock: systemClock, random: randomBytes, log: console, metrics: { budgetRefused() {}, budgetWait: { observe() {} } } }
        const enforcer = new BudgetEnforcer({ ...deps, subjectKey: createSecretKey(Buffer.alloc(32)) })
        const call = { tenantId: ${JSON.stringify(ownerOf(app).tenantId)}, agentId: undefined }
        const reserve = () => enforcer.reserve(call, { messages: [], max_tokens: 100 }, { metering: 'reported' })
        const results = await Promise.allSettled(Array.from({ length: 25 }, reserve))
        for (const { reason } of results) if (reason && reason.reason !== 'insufficient_quota') throw reason
        console.log(results.filter(({ status }) => status === 'fulfilled').length)
        process.exit()`
      const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
        stdio: ['ignore', 'pipe', 'inherit'],
      })
      return Number(await text(child.stdout))
    }
  })
})
