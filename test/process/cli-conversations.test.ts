/** Tests the `conversations` commands, both with and without a running server. */
import { randomUUID } from 'node:crypto'
import { readdir } from 'node:fs/promises'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { beforeEach, describe, expect, test, vi } from 'vitest'
import { publicIdOf } from '../support/audit.ts'
import { runCommandInProcess } from '../support/command.ts'
import { STORING } from '../support/conversations.ts'
import { openSqliteFile } from '../support/database.ts'
import { callServer, makeFolder, type RunningServer, runParley, startServer } from '../support/process.ts'

// Starting processes is slow on a busy machine.
vi.setConfig({ testTimeout: 60_000 })

const CANARY = 'pademelon-5512'

let folder: string
let server: RunningServer
let key: string

beforeEach(async () => {
  folder = await makeFolder()
  server = await startServer({ folder })
  key = server.key as string
})

const call = (method: string, path: string, body?: object) => callServer(server.url, method, path, key, body)

async function createAgent(): Promise<string> {
  return (await call('POST', '/v1/agents', { yaml: STORING })).body.agent_id
}

/** Stores a turn; returns the id of its response. */
async function respond(agentId: string, input: string, more: object = {}) {
  const { status, body } = await call('POST', '/v1/responses', { model: `agent/${agentId}`, input, ...more })
  expect([status, body.status]).toEqual([200, 'completed'])
  return body.id as string
}

/** Inserts copies of the only conversation's rows; the server must have stopped. */
function copyConversation(copies: number): void {
  const db = openSqliteFile(join(folder, 'data'), 'conversations.db')
  const change = (table: string, changes: Record<string, string>) => {
    const columns = db.pragma(`table_info(${table})`) as { name: string }[]
    const names = columns.map(({ name }) => name).filter((name) => !(table === 'items' && name === 'n'))
    const values = names.map((name) => changes[name] ?? name)
    return db.prepare(`insert into ${table} (${names}) select ${values} from ${table} where id in (
      select id from ${table} where id not like '%-copy%')`)
  }
  const id = (name: string) => `${name} || '-copy' || @copy`
  const inserts = [
    change('conversations', { id: id('id'), position: 'position + @copy' }),
    change('turns', { id: id('id'), conversation_id: id('conversation_id'), response_id: id('response_id') }),
    change('items', { id: id('id'), conversation_id: id('conversation_id'), turn_id: id('turn_id') }),
  ]
  for (let copy = 1; copy <= copies; copy++) for (const insert of inserts) insert.run({ copy })
  db.close()
}

const parley = (...words: string[]) => runCommandInProcess(['conversations', ...words], { folder })

/** Runs a command that must succeed; returns its output as JSON. */
async function parleyJson(...words: string[]) {
  const { code, stdout, stderr } = await parley(...words, '--json')
  expect([code, stderr]).toEqual([0, ''])
  return JSON.parse(stdout)
}

async function exportLines(...words: string[]) {
  const { code, stdout } = await parley('export', ...words)
  expect(code).toBe(0)
  expect(stdout.endsWith('\n')).toBe(true)
  return stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))
}

const listAudit = (action: string) =>
  openSqliteFile(join(folder, 'data'))
    .prepare(`select * from audit_events where action = ? order by id`)
    .all(action) as {
    actor_kind: string
    actor: string
    target_id: string
    tenant: string
    details: string
  }[]

describe('conversations list', () => {
  test('prints the conversations of all keys, newest first, and can filter them', async () => {
    const [one, two] = [await createAgent(), await createAgent()]
    for (const agent of [one, one, two]) await respond(agent, CANARY)
    const all = await parleyJson('list')
    expect(all).toMatchObject([
      { object: 'conversation', key_id: publicIdOf(key), parley: { agent_id: two, turns: 1 } },
      { parley: { agent_id: one } },
      { parley: { agent_id: one } },
    ])
    const idsOf = async (...words: string[]) =>
      (await parleyJson('list', ...words)).map((row: { id: string }) => row.id)
    const [newest, middle, oldest] = all.map(({ id }: { id: string }) => id)
    expect(await idsOf('--agent', one)).toEqual([middle, oldest])
    expect(await idsOf('--key', key)).toEqual([newest, middle, oldest])
    expect(await idsOf('--key', '000000000000')).toEqual([])
    const tomorrow = new Date(Date.now() + 86_400_000).toISOString()
    expect(await idsOf('--from', tomorrow)).toEqual([])
    expect(await idsOf('--to', tomorrow, '--from', '2026-01-01')).toHaveLength(3)
    expect(await idsOf('--to', '2026-01-01')).toEqual([])
    // The end of a turn is stored shortly after its response.
    await expect.poll(() => idsOf('--status', 'completed')).toHaveLength(3)
    expect(await idsOf('--status', 'completed', '--channel', 'api', '--agent', two)).toEqual([newest])
    expect(await idsOf('--status', 'failed')).toEqual([])
    expect(
      await idsOf('--agent-version', '1', '--min-tokens', '1', '--search', 'pademelon "5512"'),
    ).toHaveLength(3)
    expect(await idsOf('--search', 'wombat')).toEqual([])
    const invalid = await parley('list', '--status', 'odd')
    expect([invalid.code, invalid.stderr]).toEqual([1, expect.stringContaining('--status: ')])
    const empty = await parley('list', '--search', '-hotel')
    expect(empty.stderr).toContain('--search: must contain a word to search for')
    const { stdout, stderr } = await parley('list', '--limit', '2')
    expect(stdout.split('\n')[0]).toMatch(/^ID +KEY +AGENT +TURNS +CREATED/)
    expect([stdout.includes(newest), stdout.includes(oldest), stderr]).toEqual([
      true,
      false,
      'There are more conversations; the list ends after 2.\n',
    ])
    // Titles must not be printed, because a title contains part of the text.
    expect(stdout).not.toContain(CANARY)
  })

  test('prints an empty list before the first turn is stored; export and prune also succeed', async () => {
    expect(await parleyJson('list')).toEqual([])
    expect(await exportLines()).toEqual([{ object: 'export.end', turns: 0 }])
    expect(await parleyJson('prune')).toEqual({ conversations: 0, event_logs: 0, idempotency_keys: 0 })
  })

  test.each([
    ['--from', 'yesterday', 'Must be a UTC date'],
    ['--limit', '0', 'Must be a whole number of 1 or more'],
    ['--to', 'never', 'Must be a UTC date'],
  ])('rejects %s %s', async (option, value, message) => {
    const { code, stderr } = await parley('list', option, value)
    expect([code, stderr]).toEqual([1, expect.stringContaining(message)])
  })
})

describe('conversations show', () => {
  test('prints the last turns with their texts and adds an audit row', async () => {
    const agent = await createAgent()
    const first = await respond(agent, `\u001b[31m${CANARY}\nand more`)
    await respond(agent, 'And then?', { previous_response_id: first })
    const [{ id }] = await parleyJson('list')
    const { stdout } = await parley('show', id)
    expect(stdout).toMatch(/^Turn 1, .*, mock, completed$/m)
    expect(stdout).toMatch(/^Turn 2, /m)
    // A visitor's control characters could manipulate the operator's terminal.
    expect(stdout).toContain(`user: ␛[31m${CANARY}\nand more\n`)
    const last = await parleyJson('show', id, '--limit', '1')
    expect(last).toMatchObject({
      id,
      has_more: true,
      lines: [{ object: 'turn', number: 2, items: [{ role: 'user' }, { role: 'assistant' }] }],
    })
    expect(listAudit('conversation.read')).toMatchObject(
      [id, id].map((target_id) => ({
        actor_kind: 'command',
        actor: userInfo().username,
        target_id,
        tenant: publicIdOf(key),
      })),
    )
  })

  test("prints people's messages among the turns in which they were written", async () => {
    const agent = await createAgent()
    const { body: created } = await call('POST', '/v1/conversations', {})
    const path = `/v1/conversations/${created.id}`
    const change = async (what: string, body: object) =>
      expect((await call('POST', `${path}/${what}`, body)).status, what).toBe(200)
    await respond(agent, 'First question', { conversation: created.id })
    await change('messages', { text: 'Hello from \u001b[31mAna', client_id: randomUUID(), name: 'Ana' })
    await change('handback', {})
    await respond(agent, 'Second question', { conversation: created.id })
    await change('messages', { text: 'Bye', client_id: randomUUID(), name: 'Bo' })
    const { stdout } = await parley('show', created.id)
    const shown = stdout.split('\n').filter((line) => /^(Turn|Without|user:|person|service)/.test(line))
    expect(shown.map((line) => line.replace(/ (at|on) .*|,.*/, ''))).toEqual([
      'Turn 1',
      'user: First question',
      'Without a turn',
      'service: [Sent by the service',
      'person (Ana): Hello from ␛[31mAna',
      'service: [Sent by the service',
      'Turn 2',
      'user: Second question',
      'Without a turn',
      'service: [Sent by the service',
      'person (Bo): Bye',
    ])
    const { lines } = await parleyJson('show', created.id, '--limit', '1')
    expect(lines.map(({ object, number }: { object: string; number?: number }) => number ?? object)).toEqual([
      'conversation.items',
      2,
      'conversation.items',
    ])
  })

  test('rejects an unknown conversation', async () => {
    const { code, stderr } = await parley('show', 'conv_unknown')
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(/^parley: There is no conversation conv_unknown;/),
    ])
  })
})

describe('conversations export', () => {
  test('prints one line per turn with all its data, and the number of turns', async () => {
    const agent = await createAgent()
    const first = await respond(agent, CANARY, { metadata: { guest: 'ada' } })
    await respond(agent, 'And then?', { previous_response_id: first })
    const { body: created } = await call('POST', '/v1/conversations', {
      items: [{ type: 'message', role: 'user', content: 'An item without a turn' }],
    })
    const lines = await exportLines()
    expect(lines).toMatchObject([
      {
        object: 'turn',
        number: 1,
        status: 'completed',
        agent_id: agent,
        diagnostics: expect.any(Object),
        request: { metadata: { guest: 'ada' } },
        conversation: { object: 'conversation', parley: { agent_id: agent, turns: 2 } },
        items: [
          { role: 'user', content: [{ text: CANARY }], parley: { author: 'visitor' } },
          { role: 'assistant', parley: { author: 'model' } },
        ],
      },
      { object: 'turn', number: 2, previous_id: lines[0].id },
      { object: 'conversation.items', conversation: { id: created.id }, items: [{ role: 'user' }] },
      { object: 'export.end', turns: 2 },
    ])
    // A visitor who knows a response's id could read the response.
    expect(JSON.stringify(lines)).not.toContain('resp_')
    expect((await exportLines('--limit', '1')).map(({ object }) => object)).toEqual(['turn', 'export.end'])
    expect((await exportLines('--agent', 'agent-00000000000000000000')).at(-1)).toEqual({
      object: 'export.end',
      turns: 0,
    })
    const [audited] = listAudit('conversation.export')
    expect(audited).toMatchObject({ actor_kind: 'command', target_id: 'all', tenant: null })
    expect(JSON.stringify(listAudit('conversation.export'))).not.toContain(CANARY)
  })

  test('uses less memory than the size of its output', async () => {
    await respond(await createAgent(), 'x'.repeat(1_000_000))
    await server.stop()
    // All of the copies together do not fit into the command's heap.
    copyConversation(100)
    const { code, stdout } = await runParley(['conversations', 'export'], {
      folder,
      nodeOptions: ['--max-old-space-size=64'],
    })
    expect(code).toBe(0)
    expect(stdout.length).toBeGreaterThan(100_000_000)
    expect(stdout.trimEnd().split('\n').at(-1)).toBe('{"object":"export.end","turns":101}')
  })
})

test('`conversations export` contains the image in an item, and `conversations delete` deletes its bytes', async () => {
  const url = `data:image/png;base64,${'QUJD'.repeat(10_000)}`
  const content = [{ type: 'input_image', image_url: url, detail: 'auto' }]
  const items = [{ type: 'message', role: 'user', content }]
  const { body: created } = await call('POST', '/v1/conversations', { items })
  const listBlobs = async () =>
    (await readdir(join(folder, 'data', 'files'))).filter((name) => /^[0-9a-f-]{36}$/.test(name))
  expect(await listBlobs()).toHaveLength(1)
  expect((await exportLines())[0].items[0].content[0].image_url).toBe(url)
  await parleyJson('delete', created.id, '--yes')
  expect(await listBlobs()).toEqual([])
})

describe('conversations delete', () => {
  test('deletes a conversation while a server runs, adds an audit row, and requires --yes', async () => {
    const agent = await createAgent()
    await respond(agent, CANARY)
    const [{ id }] = await parleyJson('list')
    const unconfirmed = await parley('delete', id)
    expect([unconfirmed.code, unconfirmed.stderr]).toEqual([
      1,
      expect.stringContaining('Add --yes to confirm'),
    ])
    expect(listAudit('conversation.delete')).toEqual([])
    expect(await parleyJson('delete', id, '--yes')).toEqual({ id, deleted: true })
    expect((await call('GET', `/v1/conversations/${id}`)).status).toBe(404)
    expect(listAudit('conversation.delete')).toMatchObject([
      { actor_kind: 'command', actor: userInfo().username, target_id: id, tenant: publicIdOf(key) },
    ])
    expect((await parley('delete', id, '--yes')).code).toBe(1)
  })

  test('cancels the running turn of the conversation', async () => {
    const agent = await createAgent()
    const { body } = await call('POST', '/v1/responses', {
      model: `agent/${agent}`,
      input: '[[tokens:2000]] [[delay:50]]',
      background: true,
    })
    const [{ id }] = await parleyJson('list')
    const deleted = await runParley(['conversations', 'delete', id, '--yes'], { folder })
    expect([deleted.code, deleted.stdout, deleted.stderr]).toEqual([0, `deleted ${id}\n`, ''])
    expect((await call('GET', `/v1/responses/${body.id}`)).status).toBe(404)
    const readRunning = async () => {
      const metrics = await (await fetch(`${server.url}/metrics`)).text()
      return /^parley_turns_running (\d+)$/m.exec(metrics)?.[1]
    }
    await expect.poll(readRunning, { timeout: 15_000 }).toBe('0')
  })
})

test('conversations prune deletes expired conversations and records their number in the audit log', async () => {
  const agent = await createAgent()
  await respond(agent, 'An old question')
  await respond(agent, 'Another old question')
  const kept = await respond(agent, 'A new question')
  await server.stop()
  const conversations = openSqliteFile(join(folder, 'data'), 'conversations.db')
  const expired = 'update conversations set last_at = 1, expires_at = 2 where title like ?'
  conversations.prepare(expired).run('%old%')
  conversations.close()
  // Uses a separate process, which must not exit before the deletion has ended.
  const pruned = await runParley(['conversations', 'prune', '--json'], { folder })
  expect([pruned.code, pruned.stderr]).toEqual([0, ''])
  expect(JSON.parse(pruned.stdout)).toMatchObject({ conversations: 2 })
  expect(await parleyJson('list')).toHaveLength(1)
  expect(listAudit('conversation.expire')).toMatchObject([
    { actor_kind: 'command', target_id: publicIdOf(key), details: '{"conversations":2}' },
  ])
  server = await startServer({ folder })
  expect((await call('GET', `/v1/responses/${kept}`)).status).toBe(200)
})

test('conversations reindex adds missing messages to the search index', async () => {
  await respond(await createAgent(), CANARY)
  const db = openSqliteFile(join(folder, 'data'), 'conversations.db')
  db.exec('delete from item_texts')
  const find = async () => (await parleyJson('list', '--search', 'pademelon')).length
  expect(await find()).toBe(0)
  expect(await parleyJson('reindex')).toEqual({ items: 2 })
  expect(await find()).toBe(1)
})
