/** Tests that servers use the time of the PostgreSQL server instead of the local system clock. */
import { sql } from 'kysely'
import { expect, onTestFinished, test } from 'vitest'
import { startDatabaseClock } from '../../src/db/database-clock.ts'
import { openDatabase } from '../../src/db/open.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { startApp } from '../support/app.ts'
import { createTestDatabase } from '../support/postgres.ts'

const HOUR_MS = 3_600_000

test("a database clock returns the database's time even if the local clock is wrong", async () => {
  const databaseUrl = await createTestDatabase()
  const { db, close } = await openDatabase({ dataDir: ':memory:', databaseUrl, role: 'server' })
  onTestFinished(close)
  let offsetMs = 5 * HOUR_MS
  const local = { ...systemClock, now: () => systemClock.now() + offsetMs }
  const warnings: unknown[] = []
  const clock = await startDatabaseClock(db, local, { warn: (fields: unknown) => void warnings.push(fields) })
  onTestFinished(clock.stop)
  const expectDatabaseTime = async () => {
    const query = sql<{ ms: number }>`select extract(epoch from clock_timestamp()) * 1000 as ms`
    const { rows } = await query.execute(db)
    expect(Math.abs(clock.now() - Number(rows[0]?.ms))).toBeLessThan(HOUR_MS / 2)
  }
  await expectDatabaseTime()
  expect(warnings).toHaveLength(1)
  offsetMs = -5 * HOUR_MS
  await expectDatabaseTime()
})

test('a database clock corrects itself after the machine was suspended', async () => {
  const databaseUrl = await createTestDatabase()
  const { db, close } = await openDatabase({ dataDir: ':memory:', databaseUrl, role: 'server' })
  onTestFinished(close)
  let pausedMs = 0
  // Simulates a monotonic clock that stopped while the machine was suspended.
  const local = { ...systemClock, monotonic: () => systemClock.monotonic() - pausedMs }
  const clock = await startDatabaseClock(db, local, { warn() {} })
  onTestFinished(clock.stop)
  pausedMs = 5 * HOUR_MS
  expect(Math.abs(clock.now() - systemClock.now())).toBeGreaterThan(4 * HOUR_MS)
  await clock.compare()
  expect(Math.abs(clock.now() - systemClock.now())).toBeLessThan(HOUR_MS / 2)
})

test('a service on PostgreSQL uses the database clock', async () => {
  const databaseUrl = await createTestDatabase()
  const app = await startApp({ DATABASE_URL: databaseUrl })
  expect(app.service.deps.clock.now).not.toBe(systemClock.now)
  expect(app.service.deps.clock).toHaveProperty('compare')
})
