/** Tests the `parley` commands with PostgreSQL, both with and without running servers. */
import { readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import { createTestDatabase, query } from '../support/postgres.ts'
import { callServer, makeFolder, runParley, startServer } from '../support/process.ts'

vi.setConfig({ testTimeout: 120_000 })

/** Creates a database, a working directory and the environment for commands. */
async function prepareCommands(kind?: 'empty') {
  const folder = await makeFolder()
  const env = { PORT: '0', DATABASE_URL: await createTestDatabase(kind) }
  async function parley(...words: string[]) {
    const { code, stdout, stderr } = await runParley(words, { folder, env })
    if (code !== 0) throw new Error(`parley ${words.join(' ')} exited with code ${code}: ${stdout}${stderr}`)
    return stdout
  }
  async function runDoctor(more: Record<string, string> = {}) {
    const { stdout } = await runParley(['doctor', '--json'], { folder, env: { ...env, ...more } })
    const { checks } = JSON.parse(stdout) as { checks: { check: string; state: string; message: string }[] }
    return Object.fromEntries(checks.map(({ check, state, message }) => [check, `${state}: ${message}`]))
  }
  return { folder, env, parley, runDoctor }
}

test('`migrate` creates the tables, and `keys create` creates the first key, before the first server start', async () => {
  const { env, folder, parley } = await prepareCommands('empty')
  expect((await runParley(['keys', 'list'], { folder, env })).stderr).toContain(
    'missing migrations: 0001_create_keys_and_agents',
  )
  expect(await parley('migrate')).toBe('the database in DATABASE_URL is up to date\n')
  const key = (await parley('keys', 'create', '--name', 'ci')).trim()
  const server = await startServer({ folder, env })
  expect(server.key).toBeUndefined()
  expect((await callServer(server.url, 'GET', '/v1/keys/validate', key)).status).toBe(200)
  expect(await server.stop()).toMatchObject({ code: 0 })
})

test('an agent change and a key revocation by commands take effect on both running servers', async () => {
  const { env, folder, parley } = await prepareCommands()
  const [one, other] = [await startServer({ folder, env }), await startServer({ folder, env })]
  expect([one.key, other.key].filter((key) => key !== undefined)).toHaveLength(1)
  await writeFile(join(folder, 'guide.yaml'), 'name: Guide\ninstructions: Guide people.\n')
  expect(await parley('agents', 'apply', 'guide.yaml', '--yes')).toContain('Guide')
  const [agent] = JSON.parse(await parley('agents', 'list', '--json'))
  for (const { url } of [one, other])
    expect((await callServer(url, 'GET', `/v1/agents/${agent.id}`, one.key)).status).toBe(200)
  expect(await parley('sign-in')).toContain('/console/sign-in#')
  const [{ id }] = JSON.parse(await parley('keys', 'list', '--json'))
  await parley('keys', 'revoke', id)
  for (const { url } of [one, other])
    await expect
      .poll(async () => (await callServer(url, 'GET', '/v1/keys/validate', one.key)).status)
      .toBe(401)
  expect((await readdir(join(folder, 'data'))).filter((name) => /parley\.db|lock/.test(name))).toEqual([])
  for (const server of [one, other]) expect(await server.stop()).toMatchObject({ code: 0 })
})

describe('parley doctor', () => {
  test('checks the database and skips the lock file check', async () => {
    const { env, folder, runDoctor } = await prepareCommands('empty')
    const name = new URL(env.DATABASE_URL).pathname.slice(1)
    expect((await runDoctor()).database).toMatch(
      new RegExp(
        `^warn: PostgreSQL \\d+\\.\\d+, ${name} at 127\\.0\\.0\\.1:\\d+; the next start runs these migrations:`,
      ),
    )
    expect(await query(env.DATABASE_URL, `select 1 from pg_tables where schemaname = 'public'`)).toEqual([])
    await (await startServer({ folder, env })).stop()
    const found = await runDoctor()
    expect(found.database).toMatch(/^ok: PostgreSQL \d+\.\d+, .*, up to date$/)
    expect(found.secret).toMatch(/^ok: .*secret decrypts the stored agent keys$/)
    expect(found).not.toHaveProperty('server')
  })

  test('reports a different secret, and reports connection errors without the password', async () => {
    const { env, folder, runDoctor } = await prepareCommands()
    await (await startServer({ folder, env })).stop()
    expect((await runDoctor({ PARLEY_SECRET: 'x'.repeat(32) })).secret).toContain(
      'fail: Other servers that use this database',
    )
    const unreachable = await runDoctor({ DATABASE_URL: 'postgres://parley:hidden@127.0.0.1:1/parley' })
    expect(unreachable.database).toMatch(/^fail: The database parley at 127\.0\.0\.1:1 is unreachable/)
    expect(JSON.stringify(unreachable)).not.toContain('hidden')
  })
})

test('a server that cannot connect to its database exits with a one-sentence error', async () => {
  const folder = await makeFolder()
  const env = { DATABASE_URL: 'postgres://parley:hidden@127.0.0.1:1/parley' }
  const { code, stdout, stderr } = await runParley(['serve'], { folder, env })
  expect([code, stdout]).toEqual([1, ''])
  expect(stderr).toMatch(/^parley: The database parley at 127\.0\.0\.1:1 is unreachable .*\n$/)
  expect(stderr).not.toContain('hidden')
})
