/** Tests that a restored backup contains every row, every stored byte and every key. */
import { execFileSync } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeEach, describe, expect, test, vi } from 'vitest'
import { openDatabase } from '../../../src/db/open.ts'
import { systemClock, unixSeconds } from '../../../src/lib/clock.ts'
import { asAdmin, root } from '../../support/admin.ts'
import { type CallOptions, openApp, startApp, type TestApp } from '../../support/app.ts'
import { backUp, readEntries, readUnpacked, restoreArchive } from '../../support/backup.ts'
import { behindProxy } from '../../support/console.ts'
import { openSqliteFile, openTestDatabase, startupErrorOf } from '../../support/database.ts'
import { download, filePart, purpose, upload } from '../../support/files.ts'
import { createSecret, identify, identifyingAgent, signIdentity } from '../../support/identities.ts'
import { makeFolder } from '../../support/process.ts'
import { S3Server } from '../../support/s3-server.ts'
import { shareUpstream } from '../../support/start-upstream.ts'
import { createUpload, patchUpload, readArtifact, readOffset, uploadWhole } from '../../support/uploads.ts'
import { ownerOf } from '../../support/usage.ts'
import { asVisitor, sayAndWait } from '../../support/visitors.ts'

vi.setConfig({ testTimeout: 60_000 })

let folder: string
let dataDir: string
let target: string

beforeEach(async () => {
  folder = await makeFolder()
  dataDir = join(folder, 'data')
  target = join(folder, 'restored')
})

const archivePath = (name = 'backup.tar') => join(folder, name)
const FILE = Buffer.from('one file')
// Small, so that these incompressible bytes do not hide how well the database compresses.
const HALF = randomBytes(20_000)

/** Creates an agent, a file, a finished artifact and a half-finished upload. */
async function createContents(app: TestApp) {
  const agent = await app.createAgent()
  const { body: file } = await upload(app, [filePart(FILE), purpose])
  const ready = await uploadWhole(app, Buffer.from('1\n00:00:01,000 --> 00:00:02,000\nHello\n'), {
    metadata: { kind: 'captions', filename: 'a.srt' },
  })
  const growing = await createUpload(app, { size: 2 * HALF.length })
  expect((await patchUpload(app, growing, 0, HALF)).status).toBe(204)
  return { agent, file, ready, growing, captions: await readArtifact(app, ready.id) }
}

type Contents = Awaited<ReturnType<typeof createContents>>

/** Checks that the same keys can access all contents and that the upload can be resumed. */
async function expectContents(app: TestApp, contents: Contents, isGrowing = true): Promise<void> {
  const call = (path: string, options: CallOptions = {}) => app.call('GET', path, options)
  const agents = (await call('/v1/agents')).body.data
  expect(agents).toMatchObject([{ id: contents.agent.agent_id, agent_key: contents.agent.agent_key }])
  expect((await call('/v1/agents/me', { key: contents.agent.agent_key })).status).toBe(200)
  expect(Buffer.from(await (await download(app, contents.file.id)).arrayBuffer())).toEqual(FILE)
  expect(await readArtifact(app, contents.ready.id)).toEqual(contents.captions)
  if (!isGrowing) return
  expect(await readOffset(app, contents.growing)).toBe(HALF.length)
  expect((await patchUpload(app, contents.growing, HALF.length, HALF)).status).toBe(204)
}

const start = (dir: string, app?: TestApp, env = {}) =>
  startApp({ PARLEY_DATA_DIR: dir, ...(app && { PARLEY_PARENT_KEY: app.key }), ...env })

describe('a backup of a running server', () => {
  test('contains all data and leaves only a lock file in the data directory', async () => {
    const app = await start(dataDir)
    const contents = await createContents(app)
    const before = await readdir(dataDir, { recursive: true })
    const report = await backUp(dataDir, archivePath())
    expect(report).toMatchObject({ secret: 'included', blobs: 3, lost: [], unfinished: [] })
    expect(report.rows).toMatchObject({ agents: 1, files: 1, artifacts: 2, parent_keys: 1 })
    expect((await stat(archivePath())).mode & 0o777).toBe(0o600)
    expect((await readdir(folder)).sort()).toEqual(['backup.tar', 'data'])
    const added = (await readdir(dataDir, { recursive: true })).filter((name) => !before.includes(name))
    expect(added.sort()).toEqual(['.backup', '.backup/.lock'])

    const restored = await restoreArchive(archivePath(), target)
    expect(restored.rows).toEqual(report.rows)
    await expectContents(await start(target, app), contents)
    await expectContents(app, contents)
  })

  test('can be compressed, and removes files left by a killed backup', async () => {
    await createContents(await start(dataDir))
    for (const left of ['data/.backup/parley.db', 'data/files/held/left', 'backup.tar.gz.part']) {
      await mkdir(join(folder, left, '..'), { recursive: true })
      await writeFile(join(folder, left), 'left')
    }
    const names = ['backup.tar.gz', 'backup.tar.zst', 'backup.tar']
    const sizes: number[] = []
    for (const name of names) {
      await backUp(dataDir, archivePath(name))
      const entries = await readEntries(archivePath(name))
      expect(entries.get('parley.db')?.subarray(0, 15).toString()).toBe('SQLite format 3')
      expect([...entries.keys()].filter((one) => one.endsWith('left'))).toEqual([])
      sizes.push((await stat(archivePath(name))).size)
    }
    expect(Math.max(...sizes.slice(0, 2))).toBeLessThan((sizes[2] as number) / 2)
    expect((await readdir(folder)).sort()).toEqual([...names, 'data'].sort())
    expect(await readdir(join(dataDir, 'files'))).not.toContain('held')
    await restoreArchive(archivePath('backup.tar.zst'), target)
  })
})

test("a backup contains the agents in the bin, and the console's providers and prices", async () => {
  const upstream = await shareUpstream()
  await upstream.script('/v1/models', '{{up:body {"object":"list","data":[{"id":"large"}]}}}')
  const env = { ...behindProxy, PARLEY_ADMIN_EMAILS: root }
  const app = await start(dataDir, undefined, env)
  const provider = { name: 'near', base_url: upstream.url, api_key: 'sk-test-0123456789-abcd' }
  expect((await asAdmin(app, 'POST', '/providers', { body: provider })).status).toBe(201)
  const price = { per_million: { input: '2.5' } }
  expect((await asAdmin(app, 'PUT', '/prices/near/large', { body: price })).status).toBe(200)
  const { agent_id: id, agent_key: key } = await app.createAgent()
  await app.call('POST', `/v1/agents/${id}/bin`)
  await backUp(dataDir, archivePath())
  await restoreArchive(archivePath(), target)
  await app.service.close()
  const { length: requestsBefore } = await upstream.listRequests()

  const restored = await start(target, app, env)
  const [binned] = (await restored.call('GET', '/v1/bin/agents')).body.data
  expect(binned).toMatchObject({ id, name: 'Greeter' })
  expect((await restored.call('GET', '/v1/agents/me', { key })).status).toBe(401)
  expect((await restored.call('POST', `/v1/bin/agents/${id}/restore`)).status).toBe(200)
  expect((await restored.call('GET', '/v1/agents/me', { key })).status).toBe(200)
  const listModels = async () => JSON.stringify((await restored.call('GET', '/v1/models')).body)
  await expect.poll(listModels).toContain('large')
  const requests = (await upstream.listRequests()).slice(requestsBefore)
  expect(requests[0]?.headers.authorization).toBe(`Bearer ${provider.api_key}`)
  const { body: restoredPrice } = await restored.call('GET', '/v1/prices?model=near/large')
  expect(restoredPrice).toMatchObject({ source: 'override', entry: price })
})

test('a backup contains budgets with their counters, reservations, grants and waiting events', async () => {
  const app = await start(dataDir)
  const { tenantId } = ownerOf(app)
  const scope = { type: 'key', id: tenantId }
  const { body: budget } = await app.call('POST', '/v1/budgets', {
    body: { scope, period: 'total', limit: 1_000, warn_at: [50] },
  })
  await app.call('POST', `/v1/budgets/${budget.id}/grants`, { body: { amount: 100, reason: 'more' } })
  await app.call('POST', `/v1/budgets/${budget.id}/adjustments`, { body: { amount: 600, reason: 'less' } })
  const spender = { tenantId, agentId: undefined }
  await app.service.deps.budgets.reserve(
    spender,
    { messages: [], max_tokens: 20 },
    { price: undefined, metering: 'reported' },
  )
  const meter = { provider: 'far', model: 'small', metering: 'bytes', reason: 'input' } as const
  app.service.deps.meters.set({ ...meter, until: unixSeconds(systemClock) + 60 })
  await app.service.deps.meters.settled()
  const tables = [
    'budgets',
    'budget_counters',
    'budget_reservations',
    'budget_entries',
    'budget_events',
    'model_meters',
  ] as const
  const readRows = async ({ service }: TestApp) =>
    Promise.all(tables.map((table) => service.deps.db.selectFrom(table).selectAll().execute()))
  await backUp(dataDir, archivePath())
  const rows = await readRows(app)
  expect(rows.map(({ length }) => length)).toEqual([1, 1, 1, 2, 1, 1])
  await restoreArchive(archivePath(), target)
  const connection = openSqliteFile(target)
  for (const [index, table] of tables.entries()) {
    const restored = connection.prepare(`select * from ${table}`).all()
    expect(new Set(restored.map((row) => JSON.stringify(row)))).toEqual(
      new Set(rows[index]?.map((row) => JSON.stringify(row))),
    )
  }
})

test("a backup contains the agents' visitor secrets, so that returning visitors keep their identity", async () => {
  const app = await openApp({ PARLEY_DATA_DIR: dataDir })
  const { agent_key: key, agent_id: agentId } = await app.createAgent(identifyingAgent())
  const previous = await createSecret(app, agentId)
  const newest = await createSecret(app, agentId, { overlap_seconds: 3600 })
  const sign = (secret: string) => signIdentity({ clock: systemClock, secret })
  const one = await identify({ app, key }, await sign(newest))
  await sayAndWait(one, 'Before the backup.')
  await backUp(dataDir, archivePath())
  await app.close()
  await restoreArchive(archivePath(), target)
  const restored = await start(target, app)
  const visits = [{ id: one.id, visitor: asVisitor(restored, key, one.token) }]
  for (const secret of [newest, previous])
    visits.push(await identify({ app: restored, key }, await sign(secret)))
  for (const { id, visitor } of visits) {
    expect(id).toBe(one.id)
    expect(await visitor.conversations.query({})).toMatchObject({ data: [{ title: 'Before the backup.' }] })
  }
})

test('tar and sha256sum can read a backup archive', async () => {
  await createContents(await start(dataDir))
  await backUp(dataDir, archivePath('backup.tar.gz'))
  await mkdir(target)
  execFileSync('tar', ['-xzf', archivePath('backup.tar.gz')], { cwd: target })
  execFileSync('sha256sum', ['--check', '--status', 'manifest.sha256'], { cwd: target })
  const { entries } = JSON.parse(await readFile(join(target, 'manifest.json'), 'utf8'))
  expect(entries.map(({ name }: { name: string }) => name)).toContain('parley.db')
  for (const { name, size, sha256 } of entries) {
    const bytes = await readFile(join(target, name))
    expect([bytes.length, createHash('sha256').update(bytes).digest('hex')]).toEqual([size, sha256])
  }
})

test('the database has no blob column that backups do not know', async () => {
  const { db } = await openTestDatabase('server', ':memory:')
  const tables = await db.introspection.getTables()
  const named = tables.flatMap(({ name, columns }) => columns.map((column) => `${name}.${column.name}`))
  // Jobs refer to blobs of artifacts. A column that is added here must also be added to src/backup/store.ts.
  const known = [
    'artifacts.blob',
    'artifacts.poster_blob',
    'artifacts.served_blob',
    'files.blob',
    'jobs.blob',
  ]
  expect(named.filter((name) => name.endsWith('blob')).sort()).toEqual(known)
})

test('a backup does not contain a secret that comes from the environment', async () => {
  const env = { PARLEY_SECRET: 'a secret of the environment, 32 bytes' }
  const app = await openApp({ PARLEY_DATA_DIR: dataDir, ...env })
  const contents = await createContents(app)
  expect((await backUp(dataDir, archivePath(), env)).secret).toBe('environment')
  await app.close()
  expect([...(await readEntries(archivePath())).keys()]).not.toContain('secret')
  expect((await readUnpacked(archivePath())).includes(env.PARLEY_SECRET)).toBe(false)
  await restoreArchive(archivePath(), target)
  await expectContents(await start(target, app, env), contents)
})

test('a backup succeeds even if the bytes of files are missing, and lists those files', async () => {
  const app = await openApp({ PARLEY_DATA_DIR: dataDir })
  const contents = await createContents(app)
  await app.close()
  const [{ blob }] = openSqliteFile(dataDir).prepare('select blob from files').all() as [{ blob: string }]
  await rm(join(dataDir, 'files', blob))
  expect(await backUp(dataDir, archivePath())).toMatchObject({ blobs: 2, lost: [blob] })
  await restoreArchive(archivePath(), target)
  const restored = await start(target, app)
  expect(await readArtifact(restored, contents.ready.id)).toEqual(contents.captions)
})

test('a backup of an older database is restored unchanged, and the next start migrates it', async () => {
  await (await openDatabase({ dataDir, role: 'server' })).close()
  const connection = openSqliteFile(dataDir)
  const costColumns = {
    usage_calls: [
      ...['cost', 'price_id', 'rounds', 'cached_tokens', 'cache_write_tokens'],
      ...['reasoning_tokens', 'audio_tokens', 'image_tokens'],
    ],
    usage_days: ['cost', 'unpriced', 'cached_tokens', 'cache_write_tokens', 'reasoning_tokens'],
  }
  connection.exec('drop table model_meters; drop table price_overrides; drop index usage_days_unpriced')
  for (const [table, columns] of Object.entries(costColumns))
    for (const column of columns) connection.exec(`alter table ${table} drop column ${column}`)
  connection.exec(`
    drop table budget_events; drop table budget_entries; drop table budget_reservations;
    drop table budget_counters; drop table budgets;
    create table budgets (owner_kind text not null, owner_id text not null, period text not null,
      token_limit bigint not null, primary key (owner_kind, owner_id, period));
    create table budget_counters (owner_kind text not null, owner_id text not null, period text not null,
      starts_on text not null, used bigint not null, reserved bigint not null,
      primary key (owner_kind, owner_id, period, starts_on));
    create table budget_reservations (id text not null, owner_kind text not null, owner_id text not null,
      period text not null, starts_on text not null, tokens bigint not null, expires_at bigint not null,
      primary key (id, owner_kind, owner_id, period));
    create index budget_reservations_by_expiry on budget_reservations (expires_at);
    drop index usage_calls_by_request;
    alter table agent_versions drop column note; alter table agents drop column note;
    drop table price_snapshots;
    drop index artifacts_by_visitor;
    alter table artifacts drop column agent_id; alter table artifacts drop column visitor_id;
    drop table visitor_secrets;
    drop index artifacts_by_binned_at; drop index artifacts_in_bin;
    alter table artifacts drop column binned_at;
    drop table webhooks;
    drop index usage_days_by_agent;
    alter table usage_calls drop column failed_attempts; alter table usage_calls drop column attempts;
    drop index agents_in_bin;
    alter table credentials drop column suspended_at; alter table agents drop column binned_at;
    drop index agents_by_owner_name; drop index agents_by_owner_update;
    drop index artifacts_by_owner_name; drop index artifacts_by_owner_length;
    drop index files_by_owner_name; drop index files_by_owner_length;
    drop index users_by_creation; drop index users_by_last_visit;
    drop index parent_keys_by_creation; drop index parent_keys_by_name; drop index parent_keys_by_last_use;
    drop table providers;
    drop table artifact_endings; drop index usage_calls_by_owner;
    alter table artifacts drop column sha256; alter table artifacts drop column arrived_bytes;
    drop table replicas; drop table stream_slots; drop table rate_windows;
    alter table installation drop column secret_key_id;
    drop index parent_keys_by_manager;
    alter table parent_keys drop column managed_by;
    alter table parent_keys drop column can_manage_keys;
    alter table parent_keys drop column max_streams;
    alter table parent_keys drop column requests_per_minute;
    alter table parent_keys drop column expires_at;
    alter table parent_keys drop column disabled_at;
    delete from kysely_migration where name >= '0013'`)
  connection.close()
  expect((await backUp(dataDir, archivePath())).schema).toBe('0012_index_artifacts_by_creation')
  await restoreArchive(archivePath(), target)
  expect(await startupErrorOf(openDatabase({ dataDir: target, role: 'command' }))).toContain(
    'missing migrations: 0013',
  )
  await start(target)
})

describe('an installation with a bucket', () => {
  test('can be backed up and restored into a different bucket, without unfinished uploads', async () => {
    const [from, to] = [await S3Server.start(), await S3Server.start()]
    const app = await openApp({ PARLEY_DATA_DIR: dataDir, ...from.environment })
    const contents = await createContents(app)
    const report = await backUp(dataDir, archivePath(), from.environment)
    // The backup omits the unfinished upload because S3 cannot return parts before completion.
    expect(report).toMatchObject({ blobs: 2, lost: [] })
    expect(report.unfinished).toHaveLength(1)
    await app.close()
    const restored = await restoreArchive(archivePath(), target, to.environment)
    expect(restored.bucket).toMatchObject({ copied: 2 })
    const again = await start(target, app, to.environment)
    await expectContents(again, contents, false)
    // The server has none of the upload's bytes, so the client must start again.
    expect((await patchUpload(again, contents.growing, HALF.length, HALF)).status).toBe(409)
    expect(await readOffset(again, contents.growing)).toBe(0)
  })

  test("can be restored from a data directory's backup, including unfinished uploads", async () => {
    const to = await S3Server.start()
    const app = await openApp({ PARLEY_DATA_DIR: dataDir })
    const contents = await createContents(app)
    await backUp(dataDir, archivePath())
    await app.close()
    const restored = await restoreArchive(archivePath(), target, to.environment)
    expect(restored.bucket).toMatchObject({ copied: 3, lost: [] })
    expect(await readdir(target)).not.toContain('files')
    await expectContents(await start(target, app, to.environment), contents)
  })
})

describe('creating a backup', () => {
  test('fails if the archive file already exists', async () => {
    await (await openDatabase({ dataDir, role: 'server' })).close()
    await writeFile(archivePath(), 'mine')
    expect(await startupErrorOf(backUp(dataDir, archivePath()))).toContain('already exists')
    expect(await readFile(archivePath(), 'utf8')).toBe('mine')
  })

  test('fails if there is no installation or if the database is PostgreSQL', async () => {
    expect(await startupErrorOf(backUp(dataDir, archivePath()))).toContain('There is no Parley database')
    const env = { DATABASE_URL: 'postgres://parley@127.0.0.1:1/parley' }
    expect(await startupErrorOf(backUp(dataDir, archivePath(), env))).toMatch(/pg_dump.*docs\/backup\.md/)
    expect(await readdir(folder)).toEqual([])
  })

  test('fails if the database is damaged', async () => {
    const app = await openApp({ PARLEY_DATA_DIR: dataDir })
    for (let count = 0; count < 20; count++) await app.createAgent()
    await app.close()
    const path = join(dataDir, 'parley.db')
    const bytes = await readFile(path)
    bytes.fill(0xff, bytes.length - 3 * 4096)
    await writeFile(path, bytes)
    expect(await startupErrorOf(backUp(dataDir, archivePath()))).toContain('is damaged')
    expect(await readdir(folder)).toEqual(['data'])
  })
})
