/** What a visit leaves behind: one user with one key, however many come at once, and a look at the database now and then. */
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { serviceActor } from '../../../src/identity/audit.ts'
import { createParentKey, revokeParentKey } from '../../../src/identity/keys.ts'
import { startApp, type TestApp } from '../../support/app.ts'
import { as, ownPage, proxied } from '../../support/console.ts'
import { raw } from '../../support/database.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import { OtherProcess, source } from '../../support/other-process.ts'
import { eventually, makeFolder, startServer } from '../../support/process.ts'
import { callProcedure, createTypedClient } from '../../support/rpc.ts'

const ada = 'ada@example.org'
const grace = 'grace@example.org'
const me = async (app: TestApp, email = ada) => (await app.call('GET', '/v1/manager/me', as(email))).body
const usersOf = ({ service }: TestApp) => service.deps.db.selectFrom('users').selectAll().execute()
const keysOf = ({ service }: TestApp) =>
  service.deps.db.selectFrom('parent_keys').selectAll().where('is_automatic', '=', 1).execute()

describe('a first visit', () => {
  test('makes a user and a key that nobody has seen', async () => {
    const clock = createFakeClock()
    const app = await startApp(
      { ...proxied, PARLEY_ADMIN_EMAILS: `root@example.org,${ada.toUpperCase()}` },
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
      keys: [
        {
          id: key?.id,
          key_hint: expect.stringMatching(/^svc_….{4}$/),
          name: ada,
          is_automatic: true,
          is_active: true,
          created_at: now,
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

  test('of thirty at once is one', async () => {
    const app = await startApp({ ...proxied, PARLEY_DATA_DIR: await makeFolder() })
    const visits = await Promise.all(
      Array.from({ length: 30 }, (_, index) =>
        index % 2 === 0 ? me(app) : callProcedure(app, 'manager.me', {}, as(ada)),
      ),
    )
    const seen = visits.map((visit) => visit.parent_key ?? visit.body.result.data.json.parent_key)
    expect(new Set(seen).size).toBe(1)
    expect(await usersOf(app)).toHaveLength(1)
    expect(await keysOf(app)).toHaveLength(1)
  })

  test('of two processes at once is one', async () => {
    const folder = await makeFolder()
    const server = await startServer({ folder, env: { ...proxied } })
    const other = new OtherProcess(`
      import { openDatabase } from ${source('db/open.ts')}
      import { createPositions } from ${source('lib/clock.ts')}
      import { systemClock } from ${source('lib/clock.ts')}
      import { findOrCreateUser } from ${source('identity/users.ts')}
      import { randomBytes } from 'node:crypto'
      const { db } = await openDatabase({ dataDir: ${JSON.stringify(`${folder}/data`)}, role: 'command' })
      console.log('ready')
      process.stdin.once('data', async () => {
        const emails = Array.from({ length: 20 }, (_, index) => 'user' + index + '@example.org')
        const nextPosition = createPositions(systemClock)
        const deps = { db, clock: systemClock, random: randomBytes, nextPosition }
        const trace = { requestId: 'there', clientAddress: '127.0.0.1' }
        const users = await Promise.all(
          emails.map((email) => findOrCreateUser(deps, { email, name: email, username: undefined, groups: [] }, trace)),
        )
        console.log(JSON.stringify(users.map((user) => 'svc_' + user.active_key_id)))
      })
    `)
    expect(await other.hears()).toBe('ready')
    other.say('go')
    const [there, here] = await Promise.all([
      other.hears(),
      Promise.all(
        Array.from({ length: 20 }, async (_, index) => {
          const headers = { 'X-Email': `user${index}@example.org` }
          return (await (await fetch(`${server.url}/v1/manager/me`, { headers })).json()).parent_key
        }),
      ),
    ])
    expect(JSON.parse(there)).toEqual(here)
    expect(new Set(here).size).toBe(20)
    const rows = raw(join(folder, 'data'))
      .prepare(`select target_id from audit_events where action = 'key.provision'`)
      .all() as { target_id: string }[]
    expect(rows.map((row) => `svc_${row.target_id}`).sort()).toEqual(here.sort())
  })

  test('that leads nowhere, or is refused, is none', async () => {
    const app = await startApp(proxied)
    await app.call('GET', '/v1/agents', as(ada))
    await app.call('GET', '/v1/manager/me', { key: app.key, headers: { 'X-Email': ada } })
    await app.call('GET', '/v1/manager/me', { key: 'svc_bad', headers: { 'X-Email': ada } })
    expect(await usersOf(app)).toEqual([])
  })

  test('does not stand in the way of the first parent key', async () => {
    const folder = await makeFolder()
    const app = await startApp({ ...proxied, PARLEY_DATA_DIR: folder })
    await me(app)
    await app.service.deps.db
      .deleteFrom('credentials')
      .where('parent_key_id', '=', app.key.slice(4, 16))
      .execute()
    await app.service.deps.db.deleteFrom('parent_keys').where('is_automatic', '=', 0).execute()
    await app.close()
    const again = await startApp({ ...proxied, PARLEY_DATA_DIR: folder })
    expect(again.service.firstParentKey).toMatch(/^svc_/)
  })
})

describe('a user who is known', () => {
  test('is remembered for two seconds', async () => {
    const clock = createFakeClock()
    const app = await startApp(proxied, { clock })
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

  test('costs no query while remembered', async () => {
    const clock = createFakeClock()
    const app = await startApp(proxied, { clock })
    const validate = () => callProcedure(app, 'keys.validate', {}, as(ada))
    expect((await validate()).status).toBe(200)
    await app.service.deps.db.destroy()
    expect((await validate()).status).toBe(200)
    clock.advance(2)
    expect((await validate()).status).toBe(500)
  })

  test('is seen once a minute, and then as the proxy tells them', async () => {
    const clock = createFakeClock()
    const app = await startApp(proxied, { clock })
    const first = (await me(app)).user
    const visit = () =>
      app.call('GET', '/v1/manager/me', as(ada, { headers: { 'X-User': 'ada', 'X-Groups': 'a, b' } }))
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

  test('shows when their key was used last', async () => {
    const app = await startApp(proxied)
    await me(app)
    await app.service.deps.keys.recordUse()
    const { keys } = await me(app)
    expect(keys[0].last_used_at).toBeGreaterThan(0)
  })

  test('counts in the rate window of their key', async () => {
    const app = await startApp({
      ...proxied,
      PARLEY_RATE_LIMIT_PARENT: '2',
      PARLEY_RATE_LIMIT_AUTH_FAILURES: '1',
    })
    const statusOf = async (email: string) => (await app.call('GET', '/v1/manager/agents', as(email))).status
    expect([await statusOf(ada), await statusOf(ada), await statusOf(ada)]).toEqual([200, 200, 429])
    const typed = await callProcedure(app, 'agents.list', {}, as(ada))
    expect(typed.status).toBe(429)
    expect(typed.headers.get('x-ratelimit-limit')).toBe('2')
    expect(await statusOf(grace)).toBe(200)
    expect((await app.call('GET', '/v1/manager/nothing', as(grace))).status).toBe(404)
    expect(await statusOf(grace)).toBe(429)
  })

  test('whose key was revoked goes on with another of theirs, else with a new one', async () => {
    const app = await startApp(proxied)
    const { deps } = app.service
    const first = await me(app)
    await revokeParentKey(deps, serviceActor, first.keys[0].id)
    const second = await me(app)
    expect(second.keys).toHaveLength(1)
    expect(second.parent_key).not.toBe(first.parent_key)
    const claimed = await createParentKey(deps, serviceActor, 'mine')
    await app.call('POST', '/v1/manager/claim-key', as(ada, { body: { parent_key: claimed.text } }))
    const other = await createParentKey(deps, serviceActor, 'mine too')
    await app.call('POST', '/v1/manager/claim-key', as(ada, { body: { parent_key: other.text } }))
    await revokeParentKey(deps, serviceActor, other.publicId)
    expect((await me(app)).keys).toMatchObject([{ id: claimed.publicId, is_active: true }])
  })

  test('goes on after a revocation from another process within two seconds', async () => {
    const folder = await makeFolder()
    const server = await startServer({ folder, env: { ...proxied } })
    const read = async () =>
      (await (await fetch(`${server.url}/v1/manager/me`, { headers: { 'X-Email': ada } })).json()).parent_key
    const before = await read()
    const other = new OtherProcess(`
      import { openDatabase } from ${source('db/open.ts')}
      const { db, close } = await openDatabase({ dataDir: ${JSON.stringify(`${folder}/data`)}, role: 'command' })
      await db.updateTable('parent_keys').set({ revoked_at: 1 }).where('is_automatic', '=', 1).execute()
      await close()
      console.log('revoked')
    `)
    expect(await other.hears()).toBe('revoked')
    expect(await eventually(async () => (await read()) !== before, true)).toBe(true)
  })
})

test('the typed client of a console works with the identity alone', async () => {
  const app = await startApp(proxied)
  const client = createTypedClient(app, { 'X-Email': ada, ...ownPage })
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
