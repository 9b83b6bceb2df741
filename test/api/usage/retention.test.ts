/** Usage survives: a stop right after calls, a database that is busy, and the pruning of old calls. */

import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import Sqlite from 'better-sqlite3'
import { describe, expect, onTestFinished, test } from 'vitest'
import { mintKey } from '../../../src/lib/api-key.ts'
import { pruneCalls } from '../../../src/usage/retention.ts'
import { startApp, type TestApp } from '../../support/app.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import { ask, totalUsage } from '../../support/usage.ts'

async function countCalls({ service }: TestApp): Promise<number> {
  const { db } = service.deps
  const row = await db
    .selectFrom('usage_calls')
    .select(({ fn }) => fn.countAll<number>().as('calls'))
    .executeTakeFirstOrThrow()
  return row.calls
}

/** A served data directory; answers its address, and how it is stopped. */
async function startServer(dataDir: string, env: Readonly<Record<string, string>>) {
  const main = join(import.meta.dirname, '../../../src/main.ts')
  const child = spawn(process.execPath, [main, 'serve'], {
    cwd: tmpdir(),
    env: { ...process.env, PORT: '0', LOG_LEVEL: 'silent', PARLEY_DATA_DIR: dataDir, ...env },
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const exited = once(child, 'exit')
  onTestFinished(() => void child.kill('SIGKILL'))
  for await (const line of createInterface(child.stdout)) {
    const url = /^listening on (.*)$/.exec(line)?.[1]
    if (url !== undefined) return { url, child, exited }
  }
  throw new Error('the server did not start')
}

describe('a stop by SIGTERM', () => {
  /** Has a server chat, stops it in the middle of so many streams, and counts what its database then holds. */
  async function countAfterStop(wholeCount: number, streamCount: number) {
    const folder = await mkdtemp(join(tmpdir(), 'parley-usage-'))
    onTestFinished(() => rm(folder, { recursive: true, force: true }))
    const dataDir = join(folder, 'data')
    const key = mintKey('parent', randomBytes).text
    const env = { PARLEY_PARENT_KEY: key, PARLEY_SHUTDOWN_SECONDS: '0.01' }
    const { url, child, exited } = await startServer(dataDir, env)
    const chat = (content: string, stream: boolean) =>
      fetch(`${url}/v1/chat/completions`, {
        method: 'POST',
        headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
        body: JSON.stringify({ messages: [{ role: 'user', content }], stream }),
      })
    const open = () => chat('[[delay:20]] [[tokens:50000]]', true)
    const streams = await Promise.all(Array.from({ length: streamCount }, open))
    const ends = Promise.all(streams.map((stream) => stream.text()))
    await Promise.all(Array.from({ length: wholeCount }, async () => (await chat('hello', false)).text()))
    child.kill('SIGTERM')
    expect(await exited).toEqual([0, null])
    for (const end of await ends) expect(end).toContain('"service_unavailable"')
    const database = new Sqlite(join(dataDir, 'parley.db'), { readonly: true })
    onTestFinished(() => void database.close())
    return {
      calls: database.prepare('select status, count(*) as n from usage_calls group by status').all(),
      sums: database.prepare('select sum(requests) as n from usage_days').pluck().get(),
    }
  }

  test('right after calls keeps all of them', async () => {
    expect(await countAfterStop(30, 0)).toEqual({ calls: [{ status: 'ok', n: 30 }], sums: 30 })
  })

  test('in the middle of streams keeps all of them', async () => {
    expect(await countAfterStop(0, 3)).toEqual({
      calls: [{ status: 'service_unavailable', n: 3 }],
      sums: 3,
    })
  })
})

test('calls are written without a request for usage', async () => {
  const app = await startApp()
  await ask(app, 'hello')
  await expect.poll(() => countCalls(app), { timeout: 10_000 }).toBe(1)
})

test('many calls are written in many statements, each once', async () => {
  const app = await startApp({ PARLEY_RATE_LIMIT_PARENT: '0' })
  for (let round = 0; round < 5; round++) {
    await Promise.all(Array.from({ length: 47 }, () => ask(app, 'hello')))
  }
  expect((await totalUsage(app)).requests).toBe(235)
  expect(await countCalls(app)).toBe(235)
})

test('calls are kept while the database cannot be written, and written afterwards', async () => {
  const app = await startApp()
  const { db } = app.service.deps
  await db.schema.alterTable('usage_days').renameTo('hidden').execute()
  await ask(app, 'hello')
  expect((await app.call('GET', '/v1/usage')).status).toBe(500)
  expect(await countCalls(app)).toBe(0)
  await db.schema.alterTable('hidden').renameTo('usage_days').execute()
  expect((await totalUsage(app)).requests).toBe(1)
  expect(await countCalls(app)).toBe(1)
})

describe('retention', () => {
  const never = new AbortController().signal

  test('deletes calls after the retention time, and keeps their sums', async () => {
    const clock = createFakeClock()
    const app = await startApp({ PARLEY_USAGE_RETENTION_DAYS: '2' }, { clock })
    const { deps } = app.service
    await ask(app, 'old', { stream: true })
    clock.advance(86_400)
    await ask(app, 'newer')
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

  test('deletes in batches until none is left, or until it is stopped', async () => {
    const clock = createFakeClock()
    const app = await startApp({}, { clock })
    const { deps } = app.service
    await ask(app, 'hello')
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
