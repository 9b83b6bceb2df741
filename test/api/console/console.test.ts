/** Tests the operations that only the console uses, such as checking definitions and managing keys. */
import { describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../support/app.ts'
import { asUser, behindProxy, claimKey, readMe } from '../../support/console.ts'
import { createTypedClient } from '../../support/rpc.ts'

const ada = 'ada@example.org'
const grace = 'grace@example.org'
const consoleOf = (app: TestApp, email = ada) => createTypedClient(app, asUser(email).headers ?? {})

describe('an agent definition in the console', () => {
  test.each([
    ['name: A\ninstructions: B\n', null],
    ['name: A\ninstructions: 7\n', { path: 'instructions', line: 2, column: 15 }],
    ['name: A\ninstructions: B\ntools:\n  - name: a b\n', { path: 'tools[0].name', line: 4, column: 11 }],
    ['name: [\n', { path: null, line: 2, column: 1 }],
    ['', { path: null, line: 1, column: 1 }],
  ])('can be checked without being saved: %j', async (yaml, problem) => {
    const app = await startApp()
    const answer = await createTypedClient(app).agents.check.mutate({ yaml })
    if (problem === null) return expect(answer).toEqual({ problem: null })
    expect(answer.problem).toMatchObject(problem)
    const saved = await app.call('POST', '/v1/agents', { body: { yaml } })
    expect(answer.problem?.message).toBe(saved.body.error)
  })

  test('is described by a JSON Schema', async () => {
    const app = await startApp()
    const schema = await createTypedClient(app).agents.definitionSchema.query()
    expect(schema).toMatchObject({
      required: ['name', 'instructions'],
      properties: { temperature: { default: 0.7 } },
    })
  })
})

test("the agent list includes each agent's last day of use on request", async () => {
  const app = await startApp()
  const [used, unused] = [await app.createAgent(), await app.createAgent()]
  await app.call('POST', '/v1/chat/completions', {
    key: used.agent_key,
    body: { messages: [{ role: 'user', content: 'hi' }] },
  })
  const day = new Date(app.service.deps.clock.now()).toISOString().slice(0, 10)
  const { agents } = createTypedClient(app)
  const { data } = await agents.list.query({ include: 'last_used_on' })
  expect(data.map(({ id, last_used_on }) => [id, last_used_on])).toEqual([
    [unused.agent_id, null],
    [used.agent_id, day],
  ])
  expect((await app.call('GET', '/v1/agents?include=last_used_on')).body.data).toEqual(data)
  expect((await agents.list.query({})).data[0]).not.toHaveProperty('last_used_on')
  expect((await app.call('GET', '/v1/agents?include=markdown')).body).toMatchObject({
    error: 'include: must be last_used_on',
  })
})

describe("a user's own keys", () => {
  test('can be created, rotated with an overlap, and revoked', async () => {
    const app = await startApp(behindProxy)
    const client = consoleOf(app)
    const created = await client.manager.createKey.mutate({ name: '  ci  ' })
    expect(created).toMatchObject({ name: 'ci', key: expect.stringMatching(/^svc_/) })
    const { keys } = await readMe(app, ada)
    expect(keys.map(({ name, is_active }: Record<string, unknown>) => [name, is_active])).toEqual(
      expect.arrayContaining([
        ['ci', false],
        [ada, true],
      ]),
    )
    const statusOf = async (key: string) => (await app.call('GET', '/v1/keys/validate', { key })).status
    const id = created.id
    const rotated = await client.manager.rotateKey.mutate({ parent_key_id: id, overlap_seconds: 60 })
    expect([await statusOf(created.key), await statusOf(rotated.key)]).toEqual([200, 200])
    await client.manager.rotateKey.mutate({ parent_key_id: id })
    expect([await statusOf(created.key), await statusOf(rotated.key)]).toEqual([401, 401])
    expect(await client.manager.revokeKey.mutate({ parent_key_id: id })).toEqual({ id, revoked: true })
    expect((await readMe(app, ada)).keys).toHaveLength(1)
  })

  test('cannot be changed by another user, created by a client with a parent key, or given an invalid name', async () => {
    const app = await startApp(behindProxy)
    const { id } = await consoleOf(app).manager.createKey.mutate({ name: 'ci' })
    const theirs = consoleOf(app, grace).manager
    await expect(theirs.rotateKey.mutate({ parent_key_id: id })).rejects.toThrow(
      'must be the id of one of your keys',
    )
    await expect(theirs.revokeKey.mutate({ parent_key_id: id })).rejects.toThrow(
      'must be the id of one of your keys',
    )
    await expect(createTypedClient(app).manager.createKey.mutate({ name: 'x' })).rejects.toThrow(
      'signed-in user',
    )
    await expect(theirs.createKey.mutate({ name: ' ' })).rejects.toThrow('name: must not be empty')
    await expect(theirs.createKey.mutate({ name: 'a\nb' })).rejects.toThrow(
      'name: must not contain line breaks or control characters',
    )
  })
})

describe('previewing a claim', () => {
  test('reports the data that the claim would move but does not move it', async () => {
    const app = await startApp(behindProxy)
    const client = consoleOf(app)
    await client.agents.create.mutate({ yaml: 'name: A\ninstructions: B\n' })
    const before = await readMe(app, ada)
    const preview = await client.manager.previewClaim.mutate({ parent_key: app.key })
    expect(preview).toEqual({
      parent_key: app.key.slice(0, 16),
      moved: { agents: 1, files: 0, artifacts: 0, usage_days: 0, usage_calls: 0 },
    })
    expect(await readMe(app, ada)).toEqual(before)
    const { body } = await claimKey(app, ada, app.key)
    expect(body.moved).toEqual(preview.moved)
    const theirs = consoleOf(app, grace).manager
    await expect(theirs.previewClaim.mutate({ parent_key: app.key })).rejects.toThrow('another user')
  })
})

test('console users can list, read and delete files but not upload them', async () => {
  const app = await startApp(behindProxy)
  const { key } = await consoleOf(app).manager.createKey.mutate({ name: 'ci' })
  const form = new FormData()
  form.set('purpose', 'assistants')
  form.set('file', new Blob(['hello']), 'hello.txt')
  const uploaded = await app.fetch(`${app.url}/v1/files`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${key}` },
    body: form,
  })
  const { id } = (await uploaded.json()) as { id: string }
  await consoleOf(app).manager.activeKey.mutate({ parent_key_id: key.slice(4, 16) })
  const path = `/v1/manager/files/${id}`
  expect((await app.call('GET', '/v1/manager/files', asUser(ada))).body.data).toHaveLength(1)
  expect((await app.call('GET', `${path}/content`, asUser(ada))).text).toBe('hello')
  expect((await app.call('GET', `${path}/content`, asUser(grace))).status).toBe(404)
  expect((await app.call('POST', '/v1/manager/files', asUser(ada, { body: {} }))).status).toBe(405)
  expect((await app.call('DELETE', path, asUser(ada))).status).toBe(200)
})
