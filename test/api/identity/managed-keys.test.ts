/** Tests how keys are managed over `/v1/keys`, and which keys a key may manage. */
import { describe, expect, test } from 'vitest'
import { serviceActor } from '../../../src/identity/audit.ts'
import { claimFirstKey } from '../../../src/identity/key-claims.ts'
import { revokeParentKey } from '../../../src/identity/keys.ts'
import { updateManagedKey } from '../../../src/identity/managed-keys.ts'
import { createTenant, rpcErrorOf } from '../../support/agents.ts'
import { startApp } from '../../support/app.ts'
import { asUser, behindProxy, claimKey, readMe } from '../../support/console.ts'
import {
  actOnKey,
  changeKey,
  changeManager,
  createKey,
  idOf,
  NOW,
  readAudit,
  startWithManager,
  statusOf,
} from '../../support/managed-keys.ts'
import { callProcedure, createTypedClient } from '../../support/rpc.ts'

describe('creating a parent key with a parent key', () => {
  test("returns a key of a new tenant with the key's metadata, and only this response contains the secret", async () => {
    const { app } = await startWithManager()
    const answer = await app.call('POST', '/v1/keys', { body: { name: ' Shop ' } })
    const { key, ...rest } = answer.body
    const described = {
      id: idOf(key),
      key_hint: `svc_…${key.slice(-4)}`,
      name: 'Shop',
      state: 'active',
      expires_at: null,
      requests_per_minute: null,
      max_streams: null,
      can_manage_keys: false,
      managed_by: idOf(app.key),
      created_at: NOW,
      rotated_at: null,
      disabled_at: null,
      revoked_at: null,
      last_used_at: null,
    }
    expect([answer.status, rest]).toEqual([201, described])
    expect(answer.headers.get('cache-control')).toBe('no-store')
    const { agent_id: id } = await app.createAgent(undefined, key)
    expect((await app.call('GET', `/v1/agents/${id}`)).status).toBe(404)
    const read = await app.call('GET', `/v1/keys/${described.id}`)
    expect(read.body).toEqual(described)
    expect(read.text).not.toContain(key.slice(16))
  })

  test('requires a permission that new keys do not have by default', async () => {
    const app = await startApp()
    const answer = await app.call('POST', '/v1/keys', { body: { name: 'x' } })
    expect(answer).toMatchObject({ status: 403, body: { error: { code: 'insufficient_permissions' } } })
    expect(answer.body.error.message).toContain(`parley keys update ${idOf(app.key)} --manage-keys`)
    await changeManager(app, { can_manage_keys: true })
    const { key } = await createKey(app)
    expect((await app.call('POST', '/v1/keys', { key, body: { name: 'x' } })).status).toBe(403)
    const { agent_key: agentKey } = await app.createAgent()
    expect((await app.call('POST', '/v1/keys', { key: agentKey, body: { name: 'x' } })).status).toBe(403)
    expect((await app.call('POST', '/v1/keys', { key: null, body: { name: 'x' } })).status).toBe(401)
  })

  test.each<[string, unknown]>([
    ['name', {}],
    ['name', { name: '' }],
    ['name', { name: ' ' }],
    ['name', { name: 'a\nb' }],
    ['name', { name: 'a'.repeat(201) }],
    ['expires_at', { name: 'x', expires_at: NOW }],
    ['expires_at', { name: 'x', expires_at: 1.5 }],
    ['expires_at', { name: 'x', expires_at: '2030-01-01' }],
    ['requests_per_minute', { name: 'x', requests_per_minute: 0 }],
    ['requests_per_minute', { name: 'x', requests_per_minute: 601 }],
    ['max_streams', { name: 'x', max_streams: -1 }],
    ['max_streams', { name: 'x', max_streams: 51 }],
    ['can_manage_keys', { name: 'x', can_manage_keys: true }],
    ['user_id', { name: 'x', user_id: 'user-1' }],
  ])('rejects an invalid %s: %j', async (field, body) => {
    const { app } = await startWithManager()
    const answer = await app.call('POST', '/v1/keys', { body })
    expect(answer).toMatchObject({ status: 400, body: { error: { code: 'invalid_value' } } })
    expect(answer.body.error.message).toContain(field)
    expect((await app.call('GET', '/v1/keys')).body.data).toHaveLength(1)
  })

  test("copies the calling key's limits and expiry and rejects higher values", async () => {
    const { app } = await startWithManager()
    await changeManager(app, { expires_at: NOW + 100, requests_per_minute: 50, max_streams: 5 })
    const own = { expires_at: NOW + 100, requests_per_minute: 50, max_streams: 5 }
    const key = await createKey(app)
    expect(key).toMatchObject(own)
    expect(await createKey(app, { requests_per_minute: 9 })).toMatchObject({ ...own, requests_per_minute: 9 })
    for (const body of [{ expires_at: NOW + 101 }, { requests_per_minute: 51 }, { max_streams: 6 }]) {
      expect((await changeKey(app, key.id, body)).status).toBe(400)
    }
    const none = { expires_at: null, requests_per_minute: null, max_streams: null }
    expect((await changeKey(app, key.id, none)).body).toMatchObject(own)
  })
})

describe('listing parent keys', () => {
  test('returns the calling key and the keys that it created, newest first and paginated', async () => {
    const { app, clock } = await startWithManager()
    await createTenant(app)
    const ids: string[] = []
    for (const name of ['a', 'b', 'c']) {
      clock.advance(1)
      ids.unshift((await createKey(app, { name })).id)
    }
    const first = await app.call('GET', '/v1/keys?limit=2')
    expect(first.body).toMatchObject({ object: 'list', has_more: true })
    expect(first.body.data.map(({ id }: { id: string }) => id)).toEqual(ids.slice(0, 2))
    const second = await app.call('GET', `/v1/keys?limit=2&after=${ids[1]}`)
    expect(second.body.data.map(({ id }: { id: string }) => id)).toEqual([ids[2], idOf(app.key)])
    expect(second.body.has_more).toBe(false)
  })

  test('returns only the calling key if it lacks the permission to manage keys', async () => {
    const { app } = await startWithManager()
    const { id, key } = await createKey(app)
    const listed = await app.call('GET', '/v1/keys', { key })
    expect(listed.body.data.map((item: { id: string }) => item.id)).toEqual([id])
    await changeManager(app, { can_manage_keys: false })
    expect((await app.call('GET', '/v1/keys')).body.data).toHaveLength(1)
    expect((await app.call('GET', `/v1/keys/${id}`)).status).toBe(404)
    expect((await actOnKey(app, id, 'disable')).status).toBe(404)
  })

  test.each(['limit=0', 'limit=101', 'limit=x', 'after=none', 'state=active'])(
    'rejects the query %s',
    async (query) => {
      const { app } = await startWithManager()
      expect((await app.call('GET', `/v1/keys?${query}`)).status).toBe(400)
    },
  )

  test("rejects the id of another tenant's key in `after`", async () => {
    const { app } = await startWithManager()
    const other = idOf(await createTenant(app))
    expect((await app.call('GET', `/v1/keys?after=${other}`)).status).toBe(400)
  })
})

describe('/v1/keys/{id}', () => {
  const actions = ['disable', 'enable', 'revoke', 'rotate']

  test('returns 404 for a key that the calling key did not create', async () => {
    const { app } = await startWithManager()
    const other = await createTenant(app)
    const ids = [idOf(other), 'unknown', '0'.repeat(8000), '%00', 'agent-1']
    for (const id of ids) {
      const answers = await Promise.all([
        app.call('GET', `/v1/keys/${id}`),
        changeKey(app, id, { name: 'mine' }),
        ...actions.map((action) => actOnKey(app, id, action)),
      ])
      const expected = id === '%00' ? [404, 400] : [404]
      for (const { status } of answers) expect(expected).toContain(status)
    }
    expect(await statusOf(app, other)).toBe(200)
    expect((await app.call('GET', '/v1/keys', { key: other })).body.data[0].name).toBe('another')
  })

  test('lets a managed key read and rotate itself but not change itself', async () => {
    const { app } = await startWithManager()
    const { id, key } = await createKey(app, { requests_per_minute: 100 })
    expect((await app.call('GET', `/v1/keys/${id}`, { key })).status).toBe(200)
    const change403 = await changeKey(app, id, { requests_per_minute: null }, { key })
    expect(change403).toMatchObject({ status: 403, body: { error: { code: 'insufficient_permissions' } } })
    for (const action of ['disable', 'enable', 'revoke'])
      expect((await actOnKey(app, id, action, { key })).status).toBe(403)
    expect((await app.call('GET', `/v1/keys/${idOf(app.key)}`, { key })).status).toBe(404)
    const { body } = await actOnKey(app, id, 'rotate', { key })
    expect([await statusOf(app, key), await statusOf(app, body.key)]).toEqual([401, 200])
  })
})

describe('a managed key', () => {
  test('can be renamed and limited, and the audit log records the values before and after', async () => {
    const { app } = await startWithManager()
    const { id } = await createKey(app)
    const set = { name: 'new', requests_per_minute: 5, expires_at: NOW + 9 }
    expect((await changeKey(app, id, set)).body).toMatchObject(set)
    expect((await changeKey(app, id, set)).body).toMatchObject(set)
    expect((await changeKey(app, id, {})).body).toMatchObject(set)
    const removed = await changeKey(app, id, { requests_per_minute: null })
    expect(removed.body).toMatchObject({ ...set, requests_per_minute: null })
    const by = { actor_kind: 'parent_key', actor: idOf(app.key), tenant: id }
    expect(await readAudit(app, id)).toMatchObject([
      { ...by, action: 'key.create', details: { name: 'shop' } },
      {
        ...by,
        action: 'key.update',
        details: { before: { name: 'shop', requests_per_minute: null, expires_at: null }, after: set },
      },
      {
        ...by,
        action: 'key.update',
        details: { before: { requests_per_minute: 5 }, after: { requests_per_minute: null } },
      },
    ])
  })

  test.each([
    { name: '' },
    { expires_at: NOW - 1 },
    { requests_per_minute: '5' },
    { key_id: 'x' },
    { managed_by: null },
    { disabled_at: null },
  ])('cannot be changed with %j', async (body) => {
    const { app } = await startWithManager()
    const { id } = await createKey(app)
    expect((await changeKey(app, id, body)).status).toBe(400)
    expect(await readAudit(app, id)).toHaveLength(1)
  })

  test('can be revoked permanently and stays in the list', async () => {
    const { app } = await startWithManager()
    const { id, key } = await createKey(app)
    expect((await actOnKey(app, id, 'revoke')).body).toEqual({ id, revoked: true })
    expect(await statusOf(app, key)).toBe(401)
    for (const action of ['revoke', 'rotate', 'disable', 'enable'])
      expect((await actOnKey(app, id, action)).status).toBe(404)
    expect((await changeKey(app, id, { name: 'x' })).status).toBe(404)
    expect((await app.call('GET', `/v1/keys/${id}`)).body).toMatchObject({
      state: 'revoked',
      revoked_at: NOW,
    })
  })

  test('can be rotated with an overlap', async () => {
    const { app, clock } = await startWithManager()
    const { id, key } = await createKey(app)
    const { body } = await actOnKey(app, id, 'rotate', { body: { overlap_seconds: 60 } })
    expect(idOf(body.key)).toBe(id)
    expect([await statusOf(app, key), await statusOf(app, body.key)]).toEqual([200, 200])
    clock.advance(60)
    expect([await statusOf(app, key), await statusOf(app, body.key)]).toEqual([401, 200])
  })

  test('remains valid after its manager is revoked but cannot be managed by another key', async () => {
    const { app } = await startWithManager()
    const { id, key } = await createKey(app)
    const { deps } = app.service
    const other = await createTenant(app)
    await updateManagedKey(deps, serviceActor, { kind: 'command' }, idOf(other), { can_manage_keys: true })
    await revokeParentKey(deps, serviceActor, idOf(app.key))
    expect(await statusOf(app, key)).toBe(200)
    expect((await actOnKey(app, id, 'revoke', { key: other })).status).toBe(404)
  })
})

test('revoking a key together with its created keys also revokes the keys that those keys created', async () => {
  const { app } = await startWithManager()
  const [child, other] = [await createKey(app), await createKey(app)]
  await updateManagedKey(app.service.deps, serviceActor, { kind: 'command' }, child.id, {
    can_manage_keys: true,
  })
  const { body: grandchild } = await app.call('POST', '/v1/keys', { key: child.key, body: { name: 'third' } })
  const unrelated = await createTenant(app)
  const revoked = await revokeParentKey(app.service.deps, serviceActor, idOf(app.key), { withCreated: true })
  expect(new Set(revoked)).toEqual(new Set([idOf(app.key), child.id, other.id, grandchild.id]))
  for (const key of [app.key, child.key, other.key, grandchild.key])
    expect(await statusOf(app, key)).toBe(401)
  expect(await statusOf(app, unrelated)).toBe(200)
  for (const id of revoked) expect((await readAudit(app, id)).at(-1)).toMatchObject({ action: 'key.revoke' })
})

test('a key that another key created is not assigned to the local administrator as the first key', async () => {
  const { app } = await startWithManager()
  await createKey(app)
  const { deps } = app.service
  await revokeParentKey(deps, serviceActor, idOf(app.key))
  expect(await claimFirstKey(deps, serviceActor, 'user-1')).toBeUndefined()
})

describe('the tRPC API', () => {
  test('can create, list, change, disable, enable, rotate and revoke keys', async () => {
    const { app } = await startWithManager()
    const { keys } = createTypedClient(app)
    const { id, key } = await keys.create.mutate({ name: 'typed', requests_per_minute: 7 })
    expect((await keys.list.query({})).data.map((item) => item.id)).toContain(id)
    expect(await keys.update.mutate({ key_id: id, name: 'renamed' })).toMatchObject({ name: 'renamed' })
    expect(await keys.disable.mutate({ key_id: id })).toMatchObject({ state: 'disabled' })
    expect(await statusOf(app, key)).toBe(401)
    expect(await keys.enable.mutate({ key_id: id })).toMatchObject({ state: 'active' })
    const rotated = await keys.rotateManaged.mutate({ key_id: id })
    expect(await statusOf(app, rotated.key)).toBe(200)
    expect(await keys.revoke.mutate({ key_id: id })).toEqual({ id, revoked: true })
    const other = idOf(await createTenant(app))
    expect(await rpcErrorOf(keys.get.query({ key_id: other }))).toMatchObject({ status: 404 })
    expect(await rpcErrorOf(keys.update.mutate({ key_id: idOf(app.key), name: 'x' }))).toMatchObject({
      status: 403,
    })
  })
})

describe('a console user', () => {
  const [MINE, OTHER] = ['ada@example.com', 'bob@example.com']

  test('can manage only their own keys over tRPC', async () => {
    const { app } = await startWithManager(behindProxy)
    const call = (name: string, input: object, email = MINE) =>
      callProcedure(app, `keys.${name}`, input, asUser(email))
    const created = (await call('create', { name: 'mine' })).body.result.data.json
    expect(created).toMatchObject({ managed_by: null, can_manage_keys: false })
    const { id, key } = created
    expect((await call('list', {})).body.result.data.json.data).toHaveLength(2)
    expect((await call('disable', { key_id: id })).status).toBe(200)
    expect(await statusOf(app, key)).toBe(401)
    const { keys } = await readMe(app, MINE)
    expect(keys.find((one: { id: string }) => one.id === id)).toMatchObject({ disabled_at: NOW })
    for (const name of ['get', 'update', 'enable', 'revoke', 'rotateManaged'])
      expect((await call(name, { key_id: id }, OTHER)).status).toBe(404)
    expect((await call('enable', { key_id: id })).status).toBe(200)
    expect(await statusOf(app, key)).toBe(200)
    expect((await app.call('GET', '/v1/keys', asUser(MINE))).status).toBe(401)
  })

  test('can rotate and revoke but not change a claimed key that another key manages', async () => {
    const { app } = await startWithManager(behindProxy)
    const { id, key } = await createKey(app, { requests_per_minute: 100 })
    expect((await claimKey(app, MINE, key)).status).toBe(200)
    const call = (name: string, input: object = {}) =>
      callProcedure(app, `keys.${name}`, { key_id: id, ...input }, asUser(MINE))
    expect((await call('update', { requests_per_minute: null })).status).toBe(403)
    expect((await actOnKey(app, id, 'disable')).status).toBe(200)
    expect((await call('enable')).status).toBe(403)
    expect((await actOnKey(app, id, 'enable')).status).toBe(200)
    expect((await call('get')).headers.get('x-ratelimit-limit')).toBe('100')
    expect((await call('rotateManaged')).status).toBe(200)
    expect((await call('revoke')).status).toBe(200)
  })
})
