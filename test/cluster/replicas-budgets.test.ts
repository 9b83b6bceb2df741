/** Tests that a provider never charges more than a budget while replicas are killed at random. */
import pg from 'pg'
import { expect, onTestFinished, test } from 'vitest'
import { writeConfigFile } from '../support/config-file.ts'
import {
  type CounterRow,
  LEDGER_PRICES,
  runKillSchedules,
  selectCounters,
  withoutLimits,
} from '../support/kill-schedules.ts'
import { startLedgerProvider } from '../support/ledger-provider.ts'
import { makeFolder, startServer } from '../support/process.ts'
import { createReplicaSettings } from '../support/replicas.ts'

test('killed replicas never let a provider charge more than a budget, and others book their open calls', async () => {
  const provider = await startLedgerProvider()
  const folder = await makeFolder()
  const settings = await createReplicaSettings('PostgreSQL')
  const env = {
    ...settings,
    PARLEY_CONFIG: await writeConfigFile(LEDGER_PRICES),
    PARLEY_BACKEND: 'gateway',
    PARLEY_GATEWAY_URL: provider.url,
    PARLEY_BUDGET_WAIT_SECONDS: '1',
    ...withoutLimits,
  }
  const start = () => startServer({ folder, env })
  const servers = [await start(), await start()]
  const client = new pg.Client({ connectionString: settings.DATABASE_URL })
  await client.connect()
  onTestFinished(() => client.end())
  const { schedules, seen } = await runKillSchedules({
    ...{ provider, servers, start, key: settings.PARLEY_PARENT_KEY as string },
    readCounters: async (agentId) => {
      const { rows } = await client.query(`${selectCounters} $1`, [agentId])
      // Numbers of the type bigint arrive as text.
      return rows.map(
        ({ unit, amount, booked, reserved }): CounterRow => ({
          ...{ unit, amount: Number(amount), booked: Number(booked), reserved: Number(reserved) },
        }),
      )
    },
  })
  expect(schedules).toBeGreaterThan(0)
  expect(seen).toMatchObject({ 200: expect.any(Number), 429: expect.any(Number), lost: expect.any(Number) })
  // The reservations of killed processes end after a minute without renewal.
  await client.query('update budget_reservations set expires_at = 0')
  const readReserved = async () =>
    (await client.query('select sum(reserved)::float8 as sum from budget_counters')).rows[0].sum
  await expect.poll(readReserved, { timeout: 60_000 }).toBe(0)
}, 300_000)
