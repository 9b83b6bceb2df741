/**
 * Tests that `parley store copy` includes agents in the bin, stored providers, budgets, visitor secrets and items'
 * images, and that `store orphans` deletes none of their data.
 */
import { randomBytes, randomUUID } from 'node:crypto'
import { readdir, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import { systemClock } from '../../src/lib/clock.ts'
import { GREETER } from '../support/app.ts'
import { runCommandInProcess } from '../support/command.ts'
import { STORING } from '../support/conversations.ts'
import { identifyingAgent, signIdentity } from '../support/identities.ts'
import { createTestDatabase } from '../support/postgres.ts'
import { callServer, makeFolder, runParley, startServer } from '../support/process.ts'
import { S3Server } from '../support/s3-server.ts'
import { shareUpstream, type Upstream } from '../support/start-upstream.ts'
import { asVisitor } from '../support/visitors.ts'

vi.setConfig({ testTimeout: 120_000 })

const API_KEY = 'sk-test-0123456789-abcd'
const IMAGE = `data:image/png;base64,${randomBytes(40_000).toString('base64')}`

interface Contents {
  readonly key: string
  readonly upstream: Upstream
  readonly binned: { readonly agent_id: string; readonly agent_key: string }
  readonly conversation: string
  readonly budget: string
}

/** Stores a provider, an agent in the bin and a conversation with an image, and stops the server. */
async function createContents(folder: string): Promise<Contents> {
  const upstream = await shareUpstream()
  await upstream.script('/v1/models', '{{up:body {"object":"list","data":[{"id":"large"}]}}}')
  const server = await startServer({ folder })
  const key = server.key as string
  const call = async (method: string, path: string, body?: object) => {
    const answer = await callServer(server.url, method, path, key, body)
    expect(answer.status, JSON.stringify(answer.body)).toBeLessThan(300)
    return answer.body
  }
  await writeFile(join(folder, 'key'), API_KEY)
  const words = ['providers', 'add', 'near', '--url', upstream.url, '--key-file', join(folder, 'key')]
  expect((await runCommandInProcess(words, { folder })).code).toBe(0)
  const binned = await call('POST', '/v1/agents', { yaml: GREETER })
  await call('POST', `/v1/agents/${binned.agent_id}/bin`)
  const { agent_id: id } = await call('POST', '/v1/agents', { yaml: STORING })
  const content = [{ type: 'input_image', image_url: IMAGE, detail: 'auto' }]
  const { id: conversation } = await call('POST', '/v1/conversations', {})
  await call('POST', '/v1/responses', {
    ...{ model: `agent/${id}`, conversation },
    input: [{ role: 'user', content }],
  })
  const scope = { type: 'key', id: key.slice(4, 16) }
  const { id: budget } = await call('POST', '/v1/budgets', {
    scope,
    unit: 'usd',
    period: 'total',
    limit: '10',
  })
  await call('POST', `/v1/budgets/${budget}/grants`, { amount: '2.5', reason: 'more' })
  await call('POST', `/v1/budgets/${budget}/adjustments`, { amount: '6.5', reason: 'test' })
  await server.stop()
  return { key, upstream, binned, conversation, budget }
}

/** Starts a server that reads the contents, restores the agent and calls the provider, and stops it. */
async function expectContents(
  options: Parameters<typeof startServer>[0],
  { key, upstream, binned, conversation, budget }: Contents,
): Promise<void> {
  const server = await startServer(options)
  const call = (method: string, path: string, as = key) => callServer(server.url, method, path, as)
  const { body: items } = await call('GET', `/v1/conversations/${conversation}/items?order=asc`)
  expect(items.data[0].content[0].image_url).toBe(IMAGE)
  const amounts = { unit: 'usd', limit: '10', granted: '2.5', booked: '6.5', remaining: '6' }
  expect((await call('GET', `/v1/budgets/${budget}`)).body).toMatchObject(amounts)
  expect((await call('GET', '/v1/agents/me', binned.agent_key)).status).toBe(401)
  const { agent_id: id } = binned
  expect((await call('POST', `/v1/bin/agents/${id}/restore`)).body).toEqual({ id, restored: true })
  expect((await call('GET', '/v1/agents/me', binned.agent_key)).status).toBe(200)
  const listModels = async () => JSON.stringify((await call('GET', '/v1/models')).body)
  await vi.waitFor(async () => expect(await listModels()).toContain('large'), { timeout: 30_000 })
  expect((await upstream.listRequests()).at(-1)?.headers.authorization).toBe(`Bearer ${API_KEY}`)
  await server.stop()
}

/** Runs `store orphans --delete` two hours later, because it ignores files that are less than an hour old. */
async function deleteOrphans(options: Parameters<typeof runCommandInProcess>[1]) {
  vi.useFakeTimers({ now: Date.now() + 7_200_000, toFake: ['Date'] })
  try {
    const { code, stdout, stderr } = await runCommandInProcess(
      ['store', 'orphans', '--delete', '--json'],
      options,
    )
    expect(code, stderr).toBe(0)
    return JSON.parse(stdout).files
  } finally {
    vi.useRealTimers()
  }
}

describe("agents in the bin, stored providers and items' data", () => {
  test('are copied to PostgreSQL and a bucket, and no command treats them as orphans there', async () => {
    const folder = await makeFolder()
    const contents = await createContents(folder)
    const s3 = await S3Server.start()
    const env = { DATABASE_URL: await createTestDatabase('empty'), ...s3.environment }
    const copied = await runParley(['store', 'copy', '--json'], { folder, env })
    expect(copied.code, copied.stderr).toBe(0)
    const { tables, bucket } = JSON.parse(copied.stdout)
    expect(tables).toMatchObject({ agents: 2, providers: 1, item_data: 1 })
    expect(tables).toMatchObject({ budgets: 1, budget_counters: 1, budget_entries: 2, budget_events: 1 })
    expect(bucket).toEqual({ copied: 1, copiedBytes: IMAGE.length, lost: [] })
    expect(await deleteOrphans({ folder, env })).toEqual({ objects: 1, orphans: 0, deleted: 0 })
    await expectContents({ folder, env }, contents)
  })

  test('are copied to PostgreSQL, and the originals can be used again under their old names', async () => {
    const folder = await makeFolder()
    const dataDir = join(folder, 'data')
    const contents = await createContents(folder)
    const env = { DATABASE_URL: await createTestDatabase('empty') }
    const addOrphan = () => writeFile(join(dataDir, 'files', randomUUID()), 'orphan')
    await addOrphan()
    const onlyOrphan = { objects: 2, orphans: 1, deleted: 1 }
    expect(await deleteOrphans({ folder })).toEqual(onlyOrphan)
    expect((await runParley(['store', 'copy'], { folder, env })).code).toBe(0)
    await addOrphan()
    expect(await deleteOrphans({ folder, env })).toEqual(onlyOrphan)
    await expectContents({ folder, env }, contents)
    for (const name of await readdir(dataDir)) {
      const [original = '', suffix] = name.split('.copied-')
      if (suffix !== undefined) await rename(join(dataDir, name), join(dataDir, original))
    }
    await expectContents({ folder }, contents)
  })
})

test('an identity that is signed with a copied visitor secret belongs to the same visitor', async () => {
  const folder = await makeFolder()
  const before = await startServer({ folder })
  const call = (path: string, body: object) =>
    callServer(before.url, 'POST', path, before.key as string, body)
  const { body: agent } = await call('/v1/agents', { yaml: identifyingAgent() })
  const { agent_id: id, agent_key: key } = agent
  const previous = (await call(`/v1/agents/${id}/visitor-secret`, {})).body.secret
  const rotated = await call(`/v1/agents/${id}/visitor-secret`, { overlap_seconds: 3600 })
  const visit = async (url: string, secret: string) => {
    const jwt = await signIdentity({ clock: systemClock, secret })
    const { visitor } = await asVisitor({ url }, key).session.mutate({ identity_token: jwt })
    return visitor
  }
  const visitor = await visit(before.url, rotated.body.secret)
  expect(visitor.kind).toBe('verified')
  await before.stop()
  const env = { DATABASE_URL: await createTestDatabase('empty') }
  const copied = await runParley(['store', 'copy', '--json'], { folder, env })
  expect(copied.code, copied.stderr).toBe(0)
  expect(JSON.parse(copied.stdout).tables).toMatchObject({ visitor_secrets: 1 })
  const after = await startServer({ folder, env })
  expect(await visit(after.url, rotated.body.secret)).toEqual(visitor)
  expect(await visit(after.url, previous)).toEqual(visitor)
  await after.stop()
})
