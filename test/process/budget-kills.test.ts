/** Tests that a provider never charges more than a budget while the server is killed at random. */
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { writeConfigFile } from '../support/config-file.ts'
import { openSqliteFile } from '../support/database.ts'
import {
  type CounterRow,
  LEDGER_PRICES,
  runKillSchedules,
  selectCounters,
  withoutLimits,
} from '../support/kill-schedules.ts'
import { startLedgerProvider } from '../support/ledger-provider.ts'
import { makeFolder, startServer } from '../support/process.ts'

test('a killed server never lets a provider charge more than a budget, and books its open calls when it restarts', async () => {
  const provider = await startLedgerProvider()
  const folder = await makeFolder()
  const env = {
    PARLEY_CONFIG: await writeConfigFile(LEDGER_PRICES),
    PARLEY_BACKEND: 'gateway',
    PARLEY_GATEWAY_URL: provider.url,
    PARLEY_BUDGET_WAIT_SECONDS: '1',
    ...withoutLimits,
  }
  const start = () => startServer({ folder, env })
  const servers = [await start()]
  const database = openSqliteFile(join(folder, 'data'))
  const counters = database.prepare(`${selectCounters} ?`)
  const { schedules, seen } = await runKillSchedules({
    ...{ provider, servers, start, key: servers[0]?.key as string },
    readCounters: async (agentId) => counters.all(agentId) as CounterRow[],
  })
  expect(schedules).toBeGreaterThan(0)
  expect(seen).toMatchObject({ 200: expect.any(Number), 429: expect.any(Number), lost: expect.any(Number) })
  expect(database.prepare('select sum(reserved) as sum from budget_counters').get()).toEqual({ sum: 0 })
}, 300_000)
