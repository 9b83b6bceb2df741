/** Tests the checks of `parley doctor` for stored conversations. */
import { truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeEach, expect, test, vi } from 'vitest'
import { openApp, type TestApp } from '../support/app.ts'
import { publicIdOf } from '../support/audit.ts'
import { runCommandInProcess } from '../support/command.ts'
import { STORING } from '../support/conversations.ts'
import { openSqliteFile } from '../support/database.ts'
import { makeFolder } from '../support/process.ts'

// Starting services is slow on a busy machine.
vi.setConfig({ testTimeout: 60_000 })

let folder: string
let app: TestApp
let agentId: string

/** Runs `parley doctor --json`; returns the exit code and the results by check name. */
async function runDoctor(env: Record<string, string> = {}): Promise<Record<string, string | number>> {
  const { code, stdout } = await runCommandInProcess(['doctor', '--json'], {
    folder,
    env: { PORT: '0', ...env },
  })
  const { checks } = JSON.parse(stdout) as { checks: Record<string, string>[] }
  const found = checks.map(({ check, state, message }) => [check, `${state}: ${message}`] as const)
  return { code: code ?? -1, ...Object.fromEntries(found) }
}

async function store(input: string): Promise<void> {
  const body = { model: `agent/${agentId}`, input }
  expect((await app.call('POST', '/v1/responses', { body })).status).toBe(200)
}

const change = (sql: string) => openSqliteFile(join(folder, 'data'), 'conversations.db').exec(sql)

/** The names of the checks that exist only if there is a problem. */
const problems = ['stored turns', 'retention', 'conversation quota', 'agents of conversations']

beforeEach(async () => {
  folder = await makeFolder()
  app = await openApp({ PARLEY_DATA_DIR: join(folder, 'data') })
  agentId = (await app.createAgent(STORING)).agent_id
  return () => app.close()
})

test('doctor reports that no conversations are stored yet', async () => {
  expect(await runDoctor()).toMatchObject({ code: 0, conversations: 'ok: no conversations are stored yet' })
})

test('doctor reports the number and size of the stored conversations while a server runs', async () => {
  await store('Hello')
  await store('Hello again')
  const found = await runDoctor()
  expect(found).toMatchObject({
    code: 0,
    conversations: expect.stringMatching(
      /^ok: 2 conversations, 0 running turns, \d\.\d MiB, no corruption found$/,
    ),
  })
  expect(Object.keys(found).filter((name) => problems.includes(name))).toEqual([])
})

test('doctor warns about interrupted turns, overdue deletions, a full quota and unknown agents', async () => {
  await store('x'.repeat(20_000))
  await store('y')
  await app.close()
  change(`update turns set status = 'in_progress', lease_until = 1 where number = 1`)
  change(`update conversations set agent_id = 'agent-unknown', expires_at = 1 where title like 'y%'`)
  expect(await runDoctor({ PARLEY_CONVERSATIONS_MAX_BYTES: '41000' })).toMatchObject({
    code: 0,
    conversations: expect.stringMatching(/^ok: 2 conversations/),
    'stored turns': expect.stringMatching(/^warn: 2 turns were interrupted .*; start a server/),
    retention: expect.stringMatching(/^warn: 1 conversations expired .* `parley conversations prune`$/),
    'conversation quota': expect.stringMatching(
      new RegExp(
        `^warn: the parent key ${publicIdOf(app.key)} has stored .* raise PARLEY_CONVERSATIONS_MAX_BYTES`,
      ),
    ),
    'agents of conversations': expect.stringMatching(
      /^warn: the database does not know 1 agents .*\(such as agent-unknown\).*restore both from the same backup/,
    ),
  })
})

test('doctor fails if conversations.db is damaged', async () => {
  await store('Hello')
  await app.close()
  const path = join(folder, 'data/conversations.db')
  await truncate(path, 10_000)
  expect(await runDoctor()).toMatchObject({
    code: 1,
    conversations: expect.stringMatching(/^fail: The database .*conversations\.db is damaged/),
  })
  await writeFile(path, 'This is a letter. '.repeat(1_000))
  expect(await runDoctor()).toMatchObject({
    code: 1,
    conversations: expect.stringMatching(/^fail: The database .*conversations\.db is damaged/),
  })
})
