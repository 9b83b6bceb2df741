/** Tests that a claim moves all data from the user's automatic key to the claimed key. */
import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { getBudget, setBudget } from '../../../src/budgets/token-budgets.ts'
import { serviceActor } from '../../../src/identity/audit.ts'
import { createParentKey } from '../../../src/identity/keys.ts'
import { type Histogram, parseHistogram } from '../../../src/usage/histogram.ts'
import { startApp, type TestApp } from '../../support/app.ts'
import { asUser, behindProxy, claimKey, consoleHeaders, readMe, revealKey } from '../../support/console.ts'
import { parseRawResponse, RawConnection, toRequest } from '../../support/raw-connection.ts'
import { listUsage, sendChat } from '../../support/usage.ts'

const ada = 'ada@example.org'
const yaml = 'name: Guide\ninstructions: Help.\n'
const callsIn = (histogram: Histogram) => [...histogram.values()].reduce((sum, calls) => sum + calls, 0)

/** Creates a user with data in every table and returns the text of their automatic key as `key`. */
async function createUserData(app: TestApp) {
  const key = await revealKey(app, ada)
  const { agent_id: id, agent_key: agentKey } = await app.createAgent(yaml, key)
  await app.call('PUT', `/v1/agents/${id}`, { key, body: { yaml: 'name: Second\ninstructions: Help.\n' } })
  await sendChat(app, 'one two', {}, agentKey)
  await sendChat(app, 'three', {}, key)
  const form = new FormData()
  form.set('purpose', 'assistants')
  form.set('file', new Blob(['some bytes']), 'note.txt')
  const headers = { Authorization: `Bearer ${key}` }
  const uploaded = await app.fetch(`${app.url}/v1/files`, { method: 'POST', headers, body: form })
  const { id: fileId } = (await uploaded.json()) as { id: string }
  const tenantId = key.slice(4, 16)
  const artifact = { id: randomUUID(), parent_key_id: tenantId, state: 'unknown', created_at: 1 } as const
  const { db } = app.service.deps
  await db.insertInto('artifacts').values(artifact).execute()
  const ending = { id: randomUUID(), parent_key_id: tenantId, reason: 'deleted', ended_at: 1 } as const
  await db.insertInto('artifact_endings').values(ending).execute()
  await setBudget(
    app.service.deps,
    serviceActor,
    { kind: 'agent', tenantId, agentId: id },
    { day: 1_000_000 },
  )
  await setBudget(app.service.deps, serviceActor, { kind: 'parent', tenantId }, { day: 1_000_000 })
  const body = { scope: { type: 'agent', id }, period: 'total', limit: 10, mode: 'observe' }
  const { body: budget } = await app.call('POST', '/v1/budgets', { key, body })
  const correction = { amount: 10, reason: 'reaches all thresholds' }
  await app.call('POST', `/v1/budgets/${budget.id}/adjustments`, { key, body: correction })
  return { key, tenantId, id, agentKey, fileId }
}

describe('claiming a key', () => {
  test("moves the automatic key's data to the claimed key, and agent keys remain valid", async () => {
    const app = await startApp(behindProxy)
    const { key, id, agentKey, fileId } = await createUserData(app)
    const before = await app.call('GET', `/v1/agents/${id}`, { key })
    const { body } = await claimKey(app, ada, app.key)
    expect(body.moved).toEqual({ agents: 1, files: 1, artifacts: 1, usage_days: 2, usage_calls: 2 })

    const paths = ['agents', `agents/${id}`, 'models', 'files', 'usage', 'keys/validate']
    for (const path of paths) expect((await app.call('GET', `/v1/${path}`, { key })).status).toBe(401)

    const now = await app.call('GET', `/v1/agents/${id}`)
    expect(now.body).toEqual({ ...before.body, parent_key: app.key.slice(0, 16) })
    expect(now.headers.get('etag')).toBe(before.headers.get('etag'))
    expect((await app.call('GET', `/v1/manager/agents/${id}`, asUser(ada))).body).toEqual(now.body)
    expect((await app.call('GET', '/v1/agents')).body.data[0].agent_key).toBe(agentKey)
    const versions = await app.call('POST', `/v1/agents/${id}/versions/1/restore`)
    expect(versions.body).toMatchObject({ name: 'Guide', version: 3 })
    expect((await sendChat(app, 'still there?', {}, agentKey)).body.choices[0].message.content).toContain(
      'still',
    )
    const { body: rotated } = await app.call('POST', `/v1/agents/${id}/rotate-key`)
    expect((await sendChat(app, 'hello', {}, rotated.agent_key)).status).toBe(200)
    expect((await sendChat(app, 'hello', {}, agentKey)).status).toBe(401)

    expect((await app.call('GET', `/v1/files/${fileId}/content`)).text).toBe('some bytes')
    expect((await app.call('GET', '/v1/files')).body.data).toHaveLength(1)
    expect((await app.call('DELETE', `/v1/files/${fileId}`)).status).toBe(200)
  })

  test('leaves no rows of the automatic key except the key itself', async () => {
    const app = await startApp(behindProxy)
    const { tenantId } = await createUserData(app)
    const { db } = app.service.deps
    await app.service.deps.usage.flush()
    const tables = (await db.introspection.getTables())
      .filter(({ columns }) => columns.some(({ name }) => name === 'parent_key_id'))
      .map(
        ({ name }) => name as 'credentials' | 'agents' | 'files' | 'artifacts' | 'usage_calls' | 'usage_days',
      )
    const rowsIn = (table: (typeof tables)[number]) =>
      db.selectFrom(table).selectAll().where('parent_key_id', '=', tenantId).execute()
    expect(tables.length).toBeGreaterThanOrEqual(5)
    // If this fails for a new table, add a row to that table in `createUserData`.
    for (const table of tables) expect([table, (await rowsIn(table)).length]).not.toEqual([table, 0])
    await claimKey(app, ada, app.key)
    for (const table of tables.filter((name) => name !== 'credentials')) {
      expect([table, await rowsIn(table)]).toEqual([table, []])
    }
    expect(
      new Set(
        (
          await db.selectFrom('credentials').select('kind').where('parent_key_id', '=', tenantId).execute()
        ).map(({ kind }) => kind),
      ),
    ).toEqual(new Set(['parent']))
    const revoked = await db.selectFrom('parent_keys').selectAll().where('id', '=', tenantId).execute()
    expect(revoked).toMatchObject([{ revoked_at: expect.any(Number), is_automatic: 1 }])
  })

  test('combines the usage of the automatic key and the claimed key on the same day', async () => {
    const app = await startApp(behindProxy)
    const { key } = await createUserData(app)
    await sendChat(app, 'from the claimed key')
    await app.stream({ model: 'mock', messages: [{ role: 'user', content: 'streamed' }] })
    const [there, here] = [await listUsage(app, '', key), await listUsage(app)]
    expect((await claimKey(app, ada, app.key)).status).toBe(200)
    const { total, data } = await listUsage(app)
    expect(data).toHaveLength(1)
    for (const sum of ['requests', 'errors', 'prompt_tokens', 'completion_tokens', 'total_tokens'] as const) {
      expect([sum, total[sum]]).toEqual([sum, there.total[sum] + here.total[sum]])
    }
    expect(total.requests).toBe(4)
    const rows = await app.service.deps.db.selectFrom('usage_days').selectAll().execute()
    expect(rows).toHaveLength(2)
    for (const row of rows) expect(callsIn(parseHistogram(row.latency_histogram))).toBe(row.requests)
    const streamed = rows.map((row) => callsIn(parseHistogram(row.first_byte_histogram)))
    expect(streamed.sort()).toEqual([0, 1])
    expect((await listUsage(app, '?group_by=agent')).data.map(({ requests }) => requests).sort()).toEqual([
      1, 3,
    ])
  })

  test("charges the moved usage to the claimed key's budget", async () => {
    const app = await startApp(behindProxy)
    const { deps } = app.service
    const { key } = await createUserData(app)
    const owner = { kind: 'parent', tenantId: app.key.slice(4, 16) } as const
    await sendChat(app, 'four')
    await setBudget(deps, serviceActor, owner, { day: 1_000_000, month: 1_000_000 })
    const { total: there } = await listUsage(app, '', key)
    const { total: here } = await listUsage(app)
    await claimKey(app, ada, app.key)
    const used = there.total_tokens + here.total_tokens
    expect(used).toBeGreaterThan(here.total_tokens)
    expect(await getBudget(deps, owner)).toEqual({
      day: { limit: 1_000_000, used },
      month: { limit: 1_000_000, used },
    })
  })

  test('does not move data from the first claimed key to a second one', async () => {
    const app = await startApp(behindProxy)
    const { id } = await createUserData(app)
    await claimKey(app, ada, app.key)
    const second = await createParentKey(app.service.deps, serviceActor, 'second')
    const { body } = await claimKey(app, ada, second.text)
    expect(body.moved).toEqual({ agents: 0, files: 0, artifacts: 0, usage_days: 0, usage_calls: 0 })
    expect((await app.call('GET', `/v1/agents/${id}`)).status).toBe(200)
    expect(await readMe(app, ada)).toMatchObject({ parent_key: second.text.slice(0, 16), agents: 0 })
  })
})

describe('a request in progress while its user claims a key', () => {
  /** Sends a request's headers as the user and returns a function that sends the body. */
  async function begin(app: TestApp, line: string, headers: readonly string[], body: string) {
    const connection = await RawConnection.open(app)
    const own = Object.entries({ 'X-Email': ada, ...consoleHeaders }).map(
      ([name, value]) => `${name}: ${value}`,
    )
    const length = `Content-Length: ${Buffer.byteLength(body)}`
    const all = ['Host: x', 'Connection: close', 'Expect: 100-continue', length, ...headers]
    connection.send(toRequest(line, headers.some((header) => /^Auth/.test(header)) ? all : [...all, ...own]))
    await connection.receives(/100 Continue\r\n\r\n/)
    return async () => {
      connection.send(body)
      const text = await connection.ends()
      return parseRawResponse(text.slice(text.indexOf('\r\n\r\n') + 4))
    }
  }

  test('is rejected if it creates an agent', async () => {
    const app = await startApp(behindProxy)
    await createUserData(app)
    const json = 'Content-Type: application/json'
    const send = await begin(app, 'POST /v1/manager/agents', [json], JSON.stringify({ yaml }))
    await claimKey(app, ada, app.key)
    expect(await send()).toMatchObject({ status: 401, body: { code: 'invalid_api_key' } })
    expect(await readMe(app, ada)).toMatchObject({ agents: 1 })
  })

  test('is rejected if it uploads a file', async () => {
    const app = await startApp(behindProxy)
    const { key } = await createUserData(app)
    const form = [
      '--b\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nassistants\r\n',
      '--b\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\nlate\r\n--b--\r\n',
    ].join('')
    const headers = [`Authorization: Bearer ${key}`, 'Content-Type: multipart/form-data; boundary=b']
    const send = await begin(app, 'POST /v1/files', headers, form)
    await claimKey(app, ada, app.key)
    expect(await send()).toMatchObject({ status: 401, body: { error: { code: 'invalid_api_key' } } })
    expect((await app.call('GET', '/v1/files')).body.data).toHaveLength(1)
  })
})
