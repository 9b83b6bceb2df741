/**
 * Tests that `parley store copy` copies an installation unchanged, and that a failed copy can be repeated.
 */
import { randomBytes } from 'node:crypto'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { copyToPostgres } from '../../src/db/copy.ts'
import type { Database } from '../../src/db/database.ts'
import { openDatabase } from '../../src/db/open.ts'
import { GREETER } from '../support/app.ts'
import { STORING } from '../support/conversations.ts'
import { insertInstallation } from '../support/copy.ts'
import { openTestDatabase, parentKey, startupErrorOf } from '../support/database.ts'
import { createTestDatabase, query } from '../support/postgres.ts'
import { callServer, makeFolder, runParley, startParley, startServer } from '../support/process.ts'
import { S3Server } from '../support/s3-server.ts'
import { createUpload, patchUpload, readArtifact, readOffset, uploadWhole } from '../support/uploads.ts'

vi.setConfig({ testTimeout: 120_000 })

const ROWS = 2_000

let folder: string
let dataDir: string

beforeEach(async () => {
  folder = await makeFolder()
  dataDir = join(folder, 'data')
})

const listTables = (url: string) => query(url, `select tablename from pg_tables where schemaname = 'public'`)

describe("an installation's rows", () => {
  let source: Database

  beforeEach(async () => {
    source = (await openTestDatabase('server', dataDir)).db
    await insertInstallation(source, ROWS)
  })

  test('are copied unchanged, with the same foreign keys', async () => {
    const url = await createTestDatabase('empty')
    const said: string[] = []
    const counts = await copyToPostgres(source, url, (step, table, rows) =>
      said.push(`${table} ${rows} ${step}`),
    )
    expect(counts).toMatchObject({
      agents: ROWS,
      credentials: ROWS,
      usage_calls: ROWS,
      artifacts: ROWS,
      agent_versions: ROWS,
      audit_events: ROWS,
      parent_keys: ROWS / 100,
      users: 1,
      jobs: 50,
      replicas: 0,
    })
    expect(said).toEqual(expect.arrayContaining([`agents ${ROWS} copied`, `agents ${ROWS} compared`]))
    const { db } = await openPostgres(url)
    for (const table of ['agents', 'artifacts', 'usage_calls', 'users', 'parent_keys'] as const) {
      const read = (from: Database) => from.selectFrom(table).selectAll().orderBy('id').execute()
      expect(await read(db)).toEqual(await read(source))
    }
    const deferrable = `select count(*)::int as count from pg_constraint where contype = 'f' and condeferrable`
    expect(await query(url, deferrable)).toEqual([{ count: 0 }])
    const orphan = { ...parentKey('orphan'), user_id: 'nobody' }
    await expect(db.insertInto('parent_keys').values(orphan).execute()).rejects.toThrow('foreign key')
    // The copy sets the next value of this sequence; another sequence would need its own test.
    expect(await query(url, 'select sequencename from pg_sequences')).toEqual([
      { sequencename: 'items_n_seq' },
    ])
  })

  test.each([
    [
      'is changed during the copy',
      `new.name = 'changed'; return new;`,
      /^Table agents: the row with id ".*7" has a different name/,
    ],
    ['is lost during the copy', 'return null;', /^Table agents: the row with id ".*7" /],
  ])('are not copied at all when a row %s', async (_what, body, words) => {
    const url = await createTestDatabase()
    await query(url, `create function meddle() returns trigger language plpgsql as $$ begin ${body} end $$`)
    await query(
      url,
      `create trigger meddle before insert on agents for each row when (new.id like '%1207') execute function meddle()`,
    )
    // Deletes the rows that refer to agents, so that a missing agent does not violate a foreign key.
    await source.deleteFrom('credentials').execute()
    await source.deleteFrom('agent_versions').execute()
    expect(await startupErrorOf(copyToPostgres(source, url))).toMatch(words)
    for (const table of ['parent_keys', 'agents', 'artifacts'])
      expect(await query(url, `select 1 from ${table} limit 1`)).toEqual([])
    await query(url, 'drop function meddle() cascade')
    expect(await copyToPostgres(source, url)).toMatchObject({ agents: ROWS })
  })

  test('are not copied at all when one of them contains U+0000', async () => {
    const url = await createTestDatabase('empty')
    await source.updateTable('agents').set({ name: 'a\0b' }).where('position', '=', 7).execute()
    expect(await startupErrorOf(copyToPostgres(source, url))).toContain(
      'A row of agents contains the character U+0000',
    )
    expect(await listTables(url)).toEqual([])
  })

  test('are copied only to an empty database without unknown migrations', async () => {
    const url = await createTestDatabase()
    await query(url, `insert into parent_keys values ('mine', '', '', 1)`)
    expect(await startupErrorOf(copyToPostgres(source, url))).toContain(
      'already contains rows (in parent_keys)',
    )
    expect(await query(url, 'select id from parent_keys')).toEqual([{ id: 'mine' }])
    const newer = await createTestDatabase()
    await query(newer, `insert into kysely_migration values ('9999_from_the_future', '')`)
    expect(await startupErrorOf(copyToPostgres(source, newer))).toContain(
      '9999_from_the_future is unknown to this version',
    )
  })
})

async function openPostgres(databaseUrl: string) {
  const database = await openDatabase({ dataDir: ':memory:', databaseUrl, role: 'server' })
  onTestFinished(() => database.close())
  return database
}

describe('parley store copy', () => {
  test('copies rows to PostgreSQL and files to a bucket; keys, artifacts and open uploads still work afterwards', async () => {
    const s3 = await S3Server.start()
    const DATABASE_URL = await createTestDatabase('empty')
    const env = { DATABASE_URL, ...s3.environment }
    const sqlite = await startServer({ folder })
    const key = sqlite.key as string
    const from = { url: sqlite.url, key, fetch }
    const agent = (await callServer(sqlite.url, 'POST', '/v1/agents', key, { yaml: GREETER })).body
    const captions = Buffer.from('WEBVTT\n\n00:01.000 --> 00:02.000\nHello\n')
    const ready = await uploadWhole(from, captions, { metadata: { kind: 'captions', filename: 'a.vtt' } })
    const half = randomBytes(50_000)
    const growing = await createUpload(from, { size: 2 * half.length })
    await patchUpload(from, growing, 0, half)

    const words = ['store', 'copy', '--json']
    const whileRunning = await runParley(words, { folder, env })
    expect([whileRunning.code, whileRunning.stderr]).toEqual([
      1,
      expect.stringContaining(`(process ${sqlite.pid}) is using`),
    ])
    expect([await listTables(DATABASE_URL), s3.listBlobs()]).toEqual([[], []])
    await sqlite.stop()
    const copied = await runParley(words, { folder, env })
    expect(copied).toMatchObject({
      code: 0,
      stderr: expect.stringContaining('Copied all rows to PostgreSQL'),
    })
    const { tables, bucket } = JSON.parse(copied.stdout)
    expect(tables).toMatchObject({ agents: 1, artifacts: 2 })
    expect(bucket).toEqual({ copied: 2, copiedBytes: captions.length + half.length, lost: [] })

    const postgres = await startServer({ folder, env })
    expect(postgres.key).toBeUndefined()
    const to = { url: postgres.url, key, fetch }
    expect((await callServer(to.url, 'GET', '/v1/agents/me', agent.agent_key)).status).toBe(200)
    expect(await readArtifact(to, ready.id)).toEqual(captions)
    expect(await readOffset(to, growing)).toBe(half.length)
    expect((await patchUpload(to, growing, half.length, half)).status).toBe(204)
    await postgres.stop()

    // The command has renamed the SQLite database, so a server cannot use it by mistake.
    const back = await runParley(['serve'], { folder })
    expect([back.code, back.stderr]).toEqual([1, expect.stringContaining('no Parley database')])
  })

  test('moves stored conversations, which the new server reads, resumes and continues', async () => {
    const DATABASE_URL = await createTestDatabase('empty')
    const env = { DATABASE_URL }
    const sqlite = await startServer({ folder })
    const key = sqlite.key as string
    const { body: agent } = await callServer(sqlite.url, 'POST', '/v1/agents', key, { yaml: STORING })
    const model = `agent/${agent.agent_id}`
    // Creates rows of about 100 KiB, so that the copy needs more than one batch.
    const texts = Array.from({ length: 60 }, (_, index) => `Number ${index} ${'é'.repeat(50_000)}`)
    const ids: string[] = []
    for (const input of texts) {
      const { body } = await callServer(sqlite.url, 'POST', '/v1/responses', key, { model, input })
      ids.push(body.id)
    }
    const path = `/v1/responses/${ids[7]}`
    const readStream = async (url: string) => (await callServer(url, 'GET', `${path}?stream=true`, key)).body
    const before = [(await callServer(sqlite.url, 'GET', path, key)).body, await readStream(sqlite.url)]
    await sqlite.stop()

    const copied = await runParley(['store', 'copy', '--json'], { folder, env })
    expect(copied.code).toBe(0)
    const { tables, set_aside: setAside } = JSON.parse(copied.stdout)
    expect(tables).toMatchObject({ conversations: 60, turns: 60, items: 120 })
    expect(tables.turn_events).toBeGreaterThanOrEqual(60)
    expect(setAside).toContainEqual(expect.stringMatching(/^conversations\.db\.copied-\d+$/))
    expect((await readdir(dataDir)).filter((name) => name.startsWith('conversations.db'))).toHaveLength(1)

    const postgres = await startServer({ folder, env })
    const after = [(await callServer(postgres.url, 'GET', path, key)).body, await readStream(postgres.url)]
    expect(after).toEqual(before)
    // The numbers of new items follow those of the copied ones.
    const next = { model, input: 'And next?', previous_response_id: ids[7] }
    expect((await callServer(postgres.url, 'POST', '/v1/responses', key, next)).body.status).toBe('completed')
    expect(await query(DATABASE_URL, 'select count(*)::int as count, max(n)::int as max from items')).toEqual(
      [{ count: 122, max: 122 }],
    )
  })

  test('leaves PostgreSQL empty when it is killed, and servers then reject the empty database', async () => {
    const DATABASE_URL = await createTestDatabase('empty')
    const source = await openDatabase({ dataDir, role: 'server' })
    await insertInstallation(source.db, ROWS)
    await source.close()
    const running = startParley(['store', 'copy'], { folder, env: { DATABASE_URL } })
    const isWriting = `select count(*)::int as count from pg_stat_activity where datname = current_database()
      and application_name = 'parley' and backend_xid is not null`
    await expect.poll(() => query(DATABASE_URL, isWriting), { interval: 5 }).toEqual([{ count: 1 }])
    running.kill('SIGKILL')
    expect(await running.ended).toMatchObject({ signal: 'SIGKILL' })
    await expect.poll(() => query(DATABASE_URL, isWriting)).toEqual([{ count: 0 }])
    expect(await listTables(DATABASE_URL)).toEqual([])
    expect(await readdir(dataDir)).toContain('parley.db')
    const serve = await runParley(['serve'], { folder, env: { DATABASE_URL } })
    expect([serve.code, serve.stderr]).toEqual([
      1,
      expect.stringContaining('is empty, but the data directory'),
    ])
    await openPostgres(DATABASE_URL)
    const migrated = await runParley(['serve'], { folder, env: { DATABASE_URL } })
    expect([migrated.code, migrated.stderr]).toEqual([1, expect.stringContaining('run `parley store copy`')])
    expect((await runParley(['store', 'copy'], { folder, env: { DATABASE_URL } })).code).toBe(0)
    const left = (await readdir(dataDir)).filter((name) => name !== '.lock')
    expect(left).toEqual([expect.stringMatching(/^parley\.db\.copied-\d+$/)])
    const again = await runParley(['store', 'copy'], { folder, env: { DATABASE_URL } })
    expect([again.code, again.stderr]).toEqual([1, expect.stringContaining('There is no Parley database')])
  })
})
