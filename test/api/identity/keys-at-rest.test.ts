/** Tests that keys are stored and logged without their secrets, and that their last use is recorded. */
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'kysely'
import { describe, expect, onTestFinished, test } from 'vitest'
import { listParentKeys } from '../../../src/identity/keys.ts'
import { digestOf } from '../../../src/lib/api-key.ts'
import { createTenant } from '../../support/agents.ts'
import { startApp, type TestApp } from '../../support/app.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import { createLineLog } from '../../support/log-lines.ts'

async function makeDataDir(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'parley-keys-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return join(folder, 'data')
}

/** Returns the contents of every file below a directory as Latin-1 text. */
async function readAll(directory: string): Promise<string> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true })
  const paths = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
  const texts = await Promise.all(paths.map((path) => readFile(path, 'latin1')))
  return texts.join('\n')
}

/**
 * Returns every row of every table as text, because PostgreSQL does not store files in the data directory.
 */
async function readRows({ service }: TestApp): Promise<string> {
  const { db } = service.deps
  const tables = await db.introspection.getTables()
  const rows = tables.map(({ name }) => sql`select * from ${sql.table(name)}`.execute(db))
  return JSON.stringify(await Promise.all(rows))
}

/** Returns the secret part of a key, without its public id and checksum. */
const secretOf = (key: string) => key.slice(-49, -6)

/** Creates, uses and rotates keys of every kind, and returns every key. */
async function useKeys(app: TestApp): Promise<string[]> {
  const { agent_id, agent_key } = await app.createAgent()
  const rotated = await app.call('POST', `/v1/agents/${agent_id}/rotate-key`, {
    body: { overlap_seconds: 60 },
  })
  const { key } = (await app.call('POST', '/v1/keys/rotate', { body: { overlap_seconds: 60 } })).body
  const keys = [app.key, agent_key, rotated.body.agent_key, key, await createTenant(app)]
  for (const key of keys) {
    expect((await app.call('GET', '/v1/keys/validate', { key })).status).toBe(200)
  }
  return keys
}

describe('stored data', () => {
  test('contains key digests but no secrets, both while the server runs and after it stops', async () => {
    const dataDir = await makeDataDir()
    const app = await startApp({ PARLEY_DATA_DIR: dataDir })
    const keys = await useKeys(app)
    const running = await readAll(dataDir)
    const rows = await readRows(app)
    await app.close()
    const stopped = await readAll(dataDir)
    for (const key of keys) {
      for (const text of [running, rows, stopped]) expect(text).not.toContain(secretOf(key))
      expect(running + rows).toContain(digestOf(key))
    }
  })

  test('is sufficient to return agent keys after a restart', async () => {
    const env = { PARLEY_DATA_DIR: await makeDataDir() }
    const before = await startApp(env)
    const { agent_key } = await before.createAgent()
    await before.close()
    const after = await startApp(env)
    const { body } = await after.call('GET', '/v1/agents', { key: before.key })
    expect(body.data[0].agent_key).toBe(agent_key)
  })
})

test('the log does not contain the secret of any key', async () => {
  const { log, lines } = createLineLog()
  const app = await startApp({}, { log })
  const keys = await useKeys(app)
  await app.call('GET', '/v1/keys/validate', { key: `${app.key}x` })
  await app.call('GET', `/v1/keys/nowhere?key=${app.key}`)
  expect(lines.length).toBeGreaterThan(0)
  for (const key of keys) expect(lines.join()).not.toContain(secretOf(key))
})

describe('a sealed agent key', () => {
  test('cannot be opened in the row of another agent', async () => {
    const app = await startApp()
    const [first, second] = [await app.createAgent(), await app.createAgent()]
    const { db } = app.service.deps
    const rows = await db.selectFrom('agents').select(['id', 'key_sealed']).execute()
    const sealed = rows.find(({ id }) => id === first.agent_id)?.key_sealed as string
    await db.updateTable('agents').set({ key_sealed: sealed }).where('id', '=', second.agent_id).execute()
    const answer = await app.call('GET', '/v1/agents')
    expect(answer.status).toBe(500)
    expect(answer.text).not.toContain(first.agent_key)
  })
})

describe("the time of a key's last use", () => {
  async function start() {
    const clock = createFakeClock(1_800_000_000)
    const app = await startApp({}, { clock })
    const { deps } = app.service
    const recorded = async () => {
      await deps.keys.recordUse()
      return (await listParentKeys(deps))[0]?.last_used_at
    }
    return { app, clock, recorded }
  }

  test('is null for an unused key', async () => {
    const { app, recorded } = await start()
    await app.call('GET', '/v1/keys/validate', { key: `${app.key}0` })
    await app.call('GET', '/healthz')
    expect(await recorded()).toBeNull()
  })

  test('is recorded at most once a minute', async () => {
    const { app, clock, recorded } = await start()
    const use = () => app.call('GET', '/v1/keys/validate')
    await use()
    expect(await recorded()).toBe(1_800_000_000)
    clock.advance(59)
    await use()
    expect(await recorded()).toBe(1_800_000_000)
    clock.advance(1)
    expect(await recorded()).toBe(1_800_000_000)
    await use()
    expect(await recorded()).toBe(1_800_000_060)
  })

  test("includes uses of its agents' keys", async () => {
    const { app, clock, recorded } = await start()
    const { agent_key: key } = await app.createAgent()
    await recorded()
    clock.advance(60)
    await app.call('GET', '/v1/agents/me', { key })
    expect(await recorded()).toBe(1_800_000_060)
  })

  test('is recorded when the server stops', async () => {
    const env = { PARLEY_DATA_DIR: await makeDataDir() }
    const clock = createFakeClock(1_800_000_000)
    const app = await startApp(env, { clock })
    await app.call('GET', '/v1/keys/validate')
    await app.close()
    const again = await startApp(env)
    const [row] = await listParentKeys(again.service.deps)
    expect(row?.last_used_at).toBe(1_800_000_000)
  })
})
