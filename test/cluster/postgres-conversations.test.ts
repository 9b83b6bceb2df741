/** Tests the operator's tools for stored conversations with PostgreSQL. */
import { expect, test, vi } from 'vitest'
import { STORING } from '../support/conversations.ts'
import { createTestDatabase, query } from '../support/postgres.ts'
import { callServer, makeFolder, runParley, startServer } from '../support/process.ts'

vi.setConfig({ testTimeout: 120_000 })

async function startStoring() {
  const folder = await makeFolder()
  const env = { PORT: '0', DATABASE_URL: await createTestDatabase() }
  const server = await startServer({ folder, env })
  const call = (method: string, path: string, body?: object) =>
    callServer(server.url, method, path, server.key, body)
  const { agent_id: agentId } = (await call('POST', '/v1/agents', { yaml: STORING })).body
  const store = (input: string) => call('POST', '/v1/responses', { model: `agent/${agentId}`, input })
  async function parley(...words: string[]) {
    const { code, stdout, stderr } = await runParley(words, { folder, env })
    if (code !== 0) throw new Error(`parley ${words.join(' ')} exited with code ${code}: ${stdout}${stderr}`)
    return stdout
  }
  return { env, agentId, call, store, parley }
}

const readVacuums = (url: string) =>
  query(
    url,
    `select relname from pg_stat_user_tables where last_vacuum is not null
     and relname in ('conversations', 'turns', 'items', 'turn_events') order by relname`,
  )

test('commands list, export and delete conversations on PostgreSQL, and doctor counts them', async () => {
  const { agentId, call, store, parley } = await startStoring()
  for (const input of ['One', 'Two']) expect((await store(input)).status).toBe(200)
  const [newest, oldest] = JSON.parse(await parley('conversations', 'list', '--agent', agentId, '--json'))
  const lines = (await parley('conversations', 'export'))
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))
  expect(lines).toMatchObject([
    { object: 'turn', conversation_id: oldest.id, items: [{ content: [{ text: 'One' }] }, {}] },
    { object: 'turn', conversation_id: newest.id },
    { object: 'export.end', turns: 2 },
  ])
  await parley('conversations', 'delete', oldest.id, '--yes')
  expect((await call('GET', `/v1/conversations/${oldest.id}`)).status).toBe(404)
  expect((await call('GET', `/v1/conversations/${newest.id}`)).status).toBe(200)
  const { checks } = JSON.parse(await parley('doctor', '--json'))
  const [check] = checks.filter((one: { check: string }) => one.check === 'conversations')
  expect(check).toMatchObject({
    state: 'ok',
    message: expect.stringMatching(/^1 conversations, 0 running turns, \d\.\d MiB$/),
  })
})

test('pruning expired conversations also vacuums their tables, but at most once per hour', async () => {
  const { env, store, parley } = await startStoring()
  for (const input of ['One', 'Two']) expect((await store(input)).status).toBe(200)
  const expire = (which: string) =>
    query(env.DATABASE_URL, `update conversations set last_at = 1, expires_at = 2 where title = '${which}'`)
  expect(await readVacuums(env.DATABASE_URL)).toEqual([])
  await expire('One')
  expect(JSON.parse(await parley('conversations', 'prune', '--json'))).toMatchObject({ conversations: 1 })
  const all = ['conversations', 'items', 'turn_events', 'turns'].map((relname) => ({ relname }))
  await expect.poll(() => readVacuums(env.DATABASE_URL)).toEqual(all)
  const readTimes = () =>
    query(
      env.DATABASE_URL,
      `select relname, last_vacuum, vacuum_count::int from pg_stat_user_tables
      where last_vacuum is not null order by relname`,
    )
  const before = await readTimes()
  await expire('Two')
  expect(JSON.parse(await parley('conversations', 'prune', '--json'))).toMatchObject({ conversations: 1 })
  expect(await readTimes()).toEqual(before)
})
