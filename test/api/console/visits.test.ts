/**
 * Tests that a console user's first visit creates one user with one key, and that later visits use a cache.
 */
import { describe, expect, test } from 'vitest'
import { serviceActor } from '../../../src/identity/audit.ts'
import { createParentKey, revokeParentKey } from '../../../src/identity/keys.ts'
import { startApp, type TestApp } from '../../support/app.ts'
import { asUser, behindProxy, consoleHeaders } from '../../support/console.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import { makeFolder } from '../../support/process.ts'
import { callProcedure, createTypedClient } from '../../support/rpc.ts'

const ada = 'ada@example.org'
const grace = 'grace@example.org'
const me = async (app: TestApp, email = ada) => (await app.call('GET', '/v1/manager/me', asUser(email))).body
const usersOf = ({ service }: TestApp) => service.deps.db.selectFrom('users').selectAll().execute()
const keysOf = ({ service }: TestApp) =>
  service.deps.db.selectFrom('parent_keys').selectAll().where('is_automatic', '=', 1).execute()

describe("a console user's first visit", () => {
  test('creates the user and an automatic key', async () => {
    const clock = createFakeClock()
    const app = await startApp(
      { ...behindProxy, PARLEY_ADMIN_EMAILS: `root@example.org,${ada.toUpperCase()}` },
      { clock },
    )
    const body = await me(app)
    const [key] = await keysOf(app)
    const now = clock.now() / 1000
    expect(body).toEqual({
      user: {
        id: expect.stringMatching(/^user-[0-9A-Za-z]{20}$/),
        email: ada,
        name: ada,
        username: null,
        groups: [],
        created_at: now,
        last_seen_at: now,
      },
      is_administrator: true,
      conversations: { is_allowed: true, max_days: 365 },
      webhooks: { is_allowed: true },
      keys: [
        {
          id: key?.id,
          key_hint: expect.stringMatching(/^svc_….{4}$/),
          name: ada,
          is_automatic: true,
          is_active: true,
          created_at: now,
          disabled_at: null,
          expires_at: null,
          last_used_at: null,
        },
      ],
      signed_in_by: 'proxy',
      parent_key: `svc_${key?.id}`,
      agents: 0,
    })
    expect((await me(app, grace)).is_administrator).toBe(false)
    expect((await me(app, grace)).parent_key).not.toBe(body.parent_key)
  })

  test('creates one user and one key even if it consists of 30 concurrent requests', async () => {
    const app = await startApp({ ...behindProxy, PARLEY_DATA_DIR: await makeFolder() })
    const visits = await Promise.all(
      Array.from({ length: 30 }, (_, index) =>
        index % 2 === 0 ? me(app) : callProcedure(app, 'manager.me', {}, asUser(ada)),
      ),
    )
    const seen = visits.map((visit) => visit.parent_key ?? visit.body.result.data.json.parent_key)
    expect(new Set(seen).size).toBe(1)
    expect(await usersOf(app)).toHaveLength(1)
    expect(await keysOf(app)).toHaveLength(1)
  })

  test('does not create a user on /v1/agents, or if the request has an API key', async () => {
    const app = await startApp(behindProxy)
    await app.call('GET', '/v1/agents', asUser(ada))
    await app.call('GET', '/v1/manager/me', { key: app.key, headers: { 'X-Email': ada } })
    await app.call('GET', '/v1/manager/me', { key: 'svc_bad', headers: { 'X-Email': ada } })
    expect(await usersOf(app)).toEqual([])
  })

  test('does not prevent the server from creating the first parent key', async () => {
    const folder = await makeFolder()
    const app = await startApp({ ...behindProxy, PARLEY_DATA_DIR: folder })
    await me(app)
    await app.service.deps.db
      .deleteFrom('credentials')
      .where('parent_key_id', '=', app.key.slice(4, 16))
      .execute()
    await app.service.deps.db.deleteFrom('parent_keys').where('is_automatic', '=', 0).execute()
    await app.close()
    const again = await startApp({ ...behindProxy, PARLEY_DATA_DIR: folder })
    expect(again.service.firstParentKey).toMatch(/^svc_/)
  })
})

describe('a known console user', () => {
  test('is cached for two seconds', async () => {
    const clock = createFakeClock()
    const app = await startApp(behindProxy, { clock })
    const { db } = app.service.deps
    const { publicId: id } = await createParentKey(app.service.deps, serviceActor, 'another')
    const before = await me(app)
    await db.updateTable('parent_keys').set({ user_id: before.user.id }).where('id', '=', id).execute()
    await db.updateTable('users').set({ active_key_id: id }).execute()
    clock.advance(1.9)
    expect((await me(app)).parent_key).toBe(before.parent_key)
    clock.advance(0.1)
    expect((await me(app)).parent_key).toBe(`svc_${id}`)
  })

  test('is authenticated without a database query while cached', async () => {
    const clock = createFakeClock()
    const app = await startApp(behindProxy, { clock })
    const validate = () => callProcedure(app, 'keys.validate', {}, asUser(ada))
    expect((await validate()).status).toBe(200)
    await app.service.deps.db.destroy()
    expect((await validate()).status).toBe(200)
    clock.advance(2)
    expect((await validate()).status).toBe(500)
  })

  test('is updated from the proxy headers at most once a minute', async () => {
    const clock = createFakeClock()
    const app = await startApp(behindProxy, { clock })
    const first = (await me(app)).user
    const visit = () =>
      app.call('GET', '/v1/manager/me', asUser(ada, { headers: { 'X-User': 'ada', 'X-Groups': 'a, b' } }))
    clock.advance(59)
    await visit()
    expect((await me(app)).user).toEqual(first)
    clock.advance(2)
    await visit()
    expect((await me(app)).user).toEqual({
      ...first,
      name: 'ada',
      username: 'ada',
      groups: ['a', 'b'],
      last_seen_at: first.last_seen_at + 61,
    })
  })

  test('sees when their key was last used', async () => {
    const app = await startApp(behindProxy)
    await me(app)
    await app.service.deps.keys.recordUse()
    const { keys } = await me(app)
    expect(keys[0].last_used_at).toBeGreaterThan(0)
  })

  test("shares their key's rate limit", async () => {
    const app = await startApp({
      ...behindProxy,
      PARLEY_RATE_LIMIT_PARENT: '2',
      PARLEY_RATE_LIMIT_AUTH_FAILURES: '1',
    })
    const statusOf = async (email: string) =>
      (await app.call('GET', '/v1/manager/agents', asUser(email))).status
    expect([await statusOf(ada), await statusOf(ada), await statusOf(ada)]).toEqual([200, 200, 429])
    const typed = await callProcedure(app, 'agents.list', {}, asUser(ada))
    expect(typed.status).toBe(429)
    expect(typed.headers.get('x-ratelimit-limit')).toBe('2')
    expect(await statusOf(grace)).toBe(200)
    expect((await app.call('GET', '/v1/manager/nothing', asUser(grace))).status).toBe(404)
    expect(await statusOf(grace)).toBe(429)
  })

  test('switches to another key, or to a new one, when the active key is revoked', async () => {
    const app = await startApp(behindProxy)
    const { deps } = app.service
    const first = await me(app)
    await revokeParentKey(deps, serviceActor, first.keys[0].id)
    const second = await me(app)
    expect(second.keys).toHaveLength(1)
    expect(second.parent_key).not.toBe(first.parent_key)
    const claimed = await createParentKey(deps, serviceActor, 'mine')
    await app.call('POST', '/v1/manager/claim-key', asUser(ada, { body: { parent_key: claimed.text } }))
    const other = await createParentKey(deps, serviceActor, 'mine too')
    await app.call('POST', '/v1/manager/claim-key', asUser(ada, { body: { parent_key: other.text } }))
    await revokeParentKey(deps, serviceActor, other.publicId)
    expect((await me(app)).keys).toMatchObject([{ id: claimed.publicId, is_active: true }])
  })
})

test("the console's tRPC client works without a key", async () => {
  const app = await startApp(behindProxy)
  const client = createTypedClient(app, { 'X-Email': ada, ...consoleHeaders })
  const created = await client.agents.create.mutate({ yaml: 'name: Guide\ninstructions: Help.\n' })
  expect(await client.manager.me.query({})).toMatchObject({ user: { email: ada }, agents: 1 })
  const text: string[] = []
  const hello = {
    model: `agent/${created.agent_id}`,
    messages: [{ role: 'user' as const, content: 'hello' }],
  }
  for await (const chunks of await client.chat.stream.mutate(hello)) {
    for (const chunk of chunks) text.push(chunk.choices[0]?.delta.content ?? '')
  }
  expect(text.join('')).toContain('You said: hello')
})
