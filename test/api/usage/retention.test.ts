/** Tests how usage records are written in the background and deleted after the retention time. */

import { describe, expect, test } from 'vitest'
import { pruneCalls } from '../../../src/usage/retention.ts'
import { startApp, type TestApp } from '../../support/app.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import { sendChat, totalUsage } from '../../support/usage.ts'

async function countCalls({ service }: TestApp): Promise<number> {
  const { db } = service.deps
  const row = await db
    .selectFrom('usage_calls')
    .select(({ fn }) => fn.countAll<number>().as('calls'))
    .executeTakeFirstOrThrow()
  return row.calls
}

test('usage records are written to the database even if no client reads usage', async () => {
  const app = await startApp()
  await sendChat(app, 'hello')
  await expect.poll(() => countCalls(app), { timeout: 10_000 }).toBe(1)
})

test('each of many usage records is written exactly once', async () => {
  const app = await startApp({ PARLEY_RATE_LIMIT_PARENT: '0' })
  for (let round = 0; round < 5; round++) {
    await Promise.all(Array.from({ length: 47 }, () => sendChat(app, 'hello')))
  }
  expect((await totalUsage(app)).requests).toBe(235)
  expect(await countCalls(app)).toBe(235)
})

test('usage records stay in memory while the database rejects writes and are written afterwards', async () => {
  const app = await startApp()
  const { db } = app.service.deps
  await db.schema.alterTable('usage_days').renameTo('hidden').execute()
  await sendChat(app, 'hello')
  expect((await app.call('GET', '/v1/usage')).status).toBe(500)
  expect(await countCalls(app)).toBe(0)
  await db.schema.alterTable('hidden').renameTo('usage_days').execute()
  expect((await totalUsage(app)).requests).toBe(1)
  expect(await countCalls(app)).toBe(1)
})

describe('usage retention', () => {
  const never = new AbortController().signal

  test('deletes records after the retention time but not their totals', async () => {
    const clock = createFakeClock()
    const app = await startApp({ PARLEY_USAGE_RETENTION_DAYS: '2' }, { clock })
    const { deps } = app.service
    await sendChat(app, 'old', { stream: true })
    clock.advance(86_400)
    await sendChat(app, 'newer')
    const before = await totalUsage(app)
    expect(await pruneCalls(deps, never)).toBe(0)
    clock.advance(86_400)
    expect(await pruneCalls(deps, never)).toBe(0)
    clock.advance(1)
    expect(await pruneCalls(deps, never)).toBe(1)
    expect(await countCalls(app)).toBe(1)
    expect(await totalUsage(app)).toEqual(before)
    expect(before.requests).toBe(2)
  })

  test('deletes old records in batches until none are left or it is stopped', async () => {
    const clock = createFakeClock()
    const app = await startApp({}, { clock })
    const { deps } = app.service
    await sendChat(app, 'hello')
    await deps.usage.flush()
    const call = await deps.db.selectFrom('usage_calls').selectAll().executeTakeFirstOrThrow()
    const copies = Array.from({ length: 1_200 }, (_, index) => ({ ...call, id: `${call.id}${index}` }))
    await deps.db.insertInto('usage_calls').values(copies).execute()
    clock.advance(31 * 86_400)
    expect(await pruneCalls(deps, AbortSignal.abort())).toBe(500)
    expect(await pruneCalls(deps, never)).toBe(701)
    expect(await countCalls(app)).toBe(0)
  })
})
