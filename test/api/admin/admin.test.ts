/** Tests the administrator API, which only administrators can call. */
import { describe, expect, test } from 'vitest'
import { serviceActor } from '../../../src/identity/audit.ts'
import { createParentKey, revokeParentKey } from '../../../src/identity/keys.ts'
import { asAdmin, listInPages, root, startAdminApp } from '../../support/admin.ts'
import { createTenant } from '../../support/agents.ts'
import type { CallOptions, TestApp } from '../../support/app.ts'
import { auditRowsOf, publicIdOf } from '../../support/audit.ts'
import { asUser } from '../../support/console.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import { changeManager } from '../../support/managed-keys.ts'
import { callProcedure } from '../../support/rpc.ts'
import { sendChat } from '../../support/usage.ts'

const NOW = 1_800_000_000
const ada = 'ada@example.org'

const fetchMe = async (app: TestApp, email: string) =>
  (await app.call('GET', '/v1/manager/me', asUser(email))).body

describe('the administrator API', () => {
  const routes: [method: string, path: string, procedure: string][] = [
    ['GET', '/users', 'admin.users'],
    ['GET', '/keys', 'admin.keys'],
    ['GET', '/usage', 'admin.usage'],
    ['GET', '/usage/calls', 'admin.usageCalls'],
    ['GET', '/audit', 'admin.audit'],
    ['POST', '/keys/{}/revoke', 'admin.revokeKey'],
    ['PUT', '/keys/{}/budget', 'admin.setBudget'],
    ['GET', '/keys/{}/budgets', 'admin.budgets'],
    ['PUT', '/keys/{}/budgets', 'admin.setBudgets'],
  ]

  /** Returns one caller of each kind, with the expected status and error code. */
  async function listCallers(app: TestApp): Promise<[CallOptions, number, string | undefined][]> {
    const { agent_key } = await app.createAgent()
    return [
      [{ key: null }, 401, 'missing_api_key'],
      [{ key: `${app.key}x` }, 401, 'invalid_api_key'],
      [{ key: agent_key }, 403, 'insufficient_permissions'],
      [{ key: app.key }, 403, 'insufficient_permissions'],
      [{ ...asUser(root), key: app.key }, 403, 'insufficient_permissions'],
      [asUser(ada), 403, 'insufficient_permissions'],
      [asUser(`x${root}`), 403, 'insufficient_permissions'],
      [asUser(root.toUpperCase()), 200, undefined],
    ]
  }

  test.each(routes)(
    'allows only administrators to call %s %s, over REST and tRPC',
    async (method, path, procedure) => {
      const app = await startAdminApp()
      const callers = await listCallers(app)
      for (const [options, status, code] of callers) {
        const [first, second] = [await createTenant(app), await createTenant(app)]
        const rest = await app.call(
          method,
          `/v1/manager/admin${path.replace('{}', publicIdOf(first))}`,
          options,
        )
        expect([rest.status, rest.body.error?.code]).toEqual([status, code])
        const input = path.includes('{}') ? { key_id: publicIdOf(second) } : {}
        const rpc = await callProcedure(app, procedure, input, options)
        expect([rpc.status, rpc.body.error?.json.data.code]).toEqual([status, code])
        const isRevoked = status === 200 && path.endsWith('/revoke')
        for (const key of [first, second])
          expect((await app.call('GET', '/v1/keys/validate', { key })).status).toBe(isRevoked ? 401 : 200)
      }
    },
  )

  test.each(routes.filter(([method]) => method !== 'GET'))(
    'rejects a cross-site request to %s %s, even from an administrator',
    async (method, path) => {
      const app = await startAdminApp()
      await fetchMe(app, root)
      const full = `/v1/manager/admin${path.replace('{}', publicIdOf(app.key))}`
      const headers = { 'X-Email': root, 'Sec-Fetch-Site': 'cross-site', 'X-Requested-With': 'x' }
      const rows = await auditRowsOf(app, async () => {
        expect((await app.call(method, full, { key: null, headers })).status).toBe(403)
      })
      expect(rows).toEqual([])
    },
  )

  test('rejects a caller whose email is not in PARLEY_ADMIN_EMAILS', async () => {
    const app = await startAdminApp({ PARLEY_ADMIN_EMAILS: 'someone@example.org' })
    for (const [method, path] of routes) expect((await asAdmin(app, method, path)).status).toBe(403)
  })
})

describe('listing users', () => {
  test('returns each user with their keys, newest first', async () => {
    const clock = createFakeClock(NOW)
    const app = await startAdminApp({}, { clock })
    const { parent_key: automatic } = await fetchMe(app, ada)
    const claimed = await createTenant(app)
    const body = { parent_key: claimed }
    await app.call('POST', '/v1/manager/claim-key', asUser(ada, { body }))
    clock.advance(90)
    await fetchMe(app, ada)
    const answer = await asAdmin(app, 'GET', '/users')
    expect(answer.body).toEqual({
      object: 'list',
      data: [
        expect.objectContaining({ email: root, is_administrator: true, created_at: NOW + 90 }),
        {
          id: expect.stringMatching(/^user-/),
          email: ada,
          name: ada,
          is_administrator: false,
          keys: [{ id: publicIdOf(claimed), name: 'another', is_automatic: false, is_active: true }],
          created_at: NOW,
          last_seen_at: NOW + 90,
        },
      ],
      has_more: false,
    })
    expect(answer.text).not.toContain(automatic)
  })

  test('returns users in the same order for any page size, even if they were created in the same second', async () => {
    const clock = createFakeClock(NOW)
    const app = await startAdminApp({}, { clock })
    const emails = [1, 2, 3, 4, 5].map((count) => `user-${count}@example.org`)
    for (const email of emails.slice(0, 3)) await fetchMe(app, email)
    clock.advance(1)
    for (const email of emails.slice(3)) await fetchMe(app, email)
    clock.advance(1)
    const all = (await asAdmin(app, 'GET', '/users')).body.data
    const emailsOf = (users: { email: string }[]) => users.map(({ email }) => email)
    expect(emailsOf(all.slice(0, 1))).toEqual([root])
    expect(emailsOf(all.slice(1, 3)).sort()).toEqual(emails.slice(3))
    expect(emailsOf(all.slice(3)).sort()).toEqual(emails.slice(0, 3))
    for (const limit of [1, 2, 6]) expect(await listInPages(app, '/users', limit)).toEqual(all)
  })
})

describe('listing keys', () => {
  test('returns each key with its owner, agents and budget, but without its secret', async () => {
    const clock = createFakeClock(NOW)
    const app = await startAdminApp({}, { clock })
    await app.createAgent()
    await app.createAgent()
    clock.advance(1)
    const { text, publicId, hint } = await createParentKey(app.service.deps, serviceActor, 'ci')
    clock.advance(1)
    const { parent_key: automatic } = await fetchMe(app, ada)
    clock.advance(1)
    await app.call('POST', '/v1/keys/rotate', { key: text })
    await revokeParentKey(app.service.deps, serviceActor, publicId)
    await asAdmin(app, 'PUT', `/keys/${publicIdOf(app.key)}/budget`, { body: { month: 70 } })
    const answer = await asAdmin(app, 'GET', '/keys')
    const none = { owner: null, is_automatic: false, agents: 0, budget: { day: null, month: null } }
    expect(answer.body.data).toMatchObject([
      { ...none, owner: root, is_automatic: true, created_at: NOW + 3 },
      { ...none, parent_key: automatic, owner: ada, is_automatic: true, created_at: NOW + 2 },
      { ...none, id: publicId, name: 'ci', created_at: NOW + 1, rotated_at: NOW + 3, revoked_at: NOW + 3 },
      {
        ...none,
        id: publicIdOf(app.key),
        parent_key: app.key.slice(0, 16),
        key_hint: `svc_…${app.key.slice(-4)}`,
        name: 'first',
        agents: 2,
        budget: { day: null, month: { limit: 70, used: 0 } },
        created_at: NOW,
        rotated_at: null,
        revoked_at: null,
      },
    ])
    expect(answer.body.data[2].key_hint).not.toBe(hint)
    expect(answer.text).not.toMatch(/svc_[0-9A-Za-z]{13}/)
  })

  test("returns the time of each key's last use, and keys in the same order for any page size", async () => {
    const app = await startAdminApp({}, { clock: createFakeClock(NOW) })
    for (const _ of [1, 2, 3]) await createTenant(app)
    await app.call('GET', '/v1/keys/validate')
    await app.service.deps.keys.recordUse()
    const { data } = (await asAdmin(app, 'GET', '/keys')).body
    const first = data.find(({ id }: { id: string }) => id === publicIdOf(app.key))
    expect(first.last_used_at).toBe(NOW)
    expect(data).toHaveLength(5)
    for (const limit of [1, 2, 5]) expect(await listInPages(app, '/keys', limit)).toEqual(data)
  })
})

describe('revoking a key as an administrator', () => {
  test('immediately invalidates the key and its agent keys, and writes one audit row', async () => {
    const app = await startAdminApp()
    const { agent_key } = await app.createAgent()
    const statuses = () =>
      Promise.all(
        [app.key, agent_key].map(async (key) => (await app.call('GET', '/v1/keys/validate', { key })).status),
      )
    expect(await statuses()).toEqual([200, 200])
    await fetchMe(app, root)
    const id = publicIdOf(app.key)
    const rows = await auditRowsOf(app, async () => {
      expect((await asAdmin(app, 'POST', `/keys/${id}/revoke`)).body).toEqual({ id, revoked: true })
      expect(await statuses()).toEqual([401, 401])
      for (const other of [id, 'zzzzzzzzzzzz', app.key]) {
        const again = await asAdmin(app, 'POST', `/keys/${other}/revoke`)
        expect([again.status, again.body.error.code]).toEqual([404, 'not_found'])
        expect(again.text).not.toContain(app.key.slice(16))
      }
    })
    const by = { actor_kind: 'user', actor: root, client_address: '127.0.0.1' }
    expect(rows).toMatchObject([
      { ...by, action: 'key.revoke', target_kind: 'key', target_id: id, tenant: id },
    ])
    expect(rows).toHaveLength(1)
  })

  test.each([
    [
      'with `with_created_keys`, also revokes the keys that the key created',
      { with_created_keys: true },
      401,
    ],
    ['without `with_created_keys`, does not revoke the keys that the key created', {}, 200],
  ])('%s', async (_what, body, status) => {
    const app = await startAdminApp()
    await changeManager(app, { can_manage_keys: true })
    const created = await app.call('POST', '/v1/keys', { body: { name: 'shop' } })
    expect((await asAdmin(app, 'POST', `/keys/${publicIdOf(app.key)}/revoke`, { body })).status).toBe(200)
    const { key } = created.body
    expect((await app.call('GET', '/v1/keys/validate', { key })).status).toBe(status)
  })
})

describe('a budget set by an administrator', () => {
  test('blocks chats once it is used up, and is returned with the number of tokens used', async () => {
    const app = await startAdminApp()
    const id = publicIdOf(app.key)
    const path = `/keys/${id}/budget`
    const used = (await sendChat(app, 'before')).body.usage.total_tokens
    await fetchMe(app, root)
    const rows = await auditRowsOf(app, async () => {
      const { body } = await asAdmin(app, 'PUT', path, { body: { day: used, month: null } })
      expect(body).toEqual({ id, budget: { day: { limit: used, used }, month: null } })
    })
    const details = { before: { day: null, month: null }, after: { day: used, month: null } }
    expect(rows).toMatchObject([{ action: 'budget.set', actor: root, target_kind: 'key', target_id: id }])
    expect(JSON.parse(rows[0]?.details ?? '')).toEqual(details)
    const rejected = await sendChat(app, 'after')
    expect([rejected.status, rejected.body.error.code]).toEqual([429, 'insufficient_quota'])
    expect((await asAdmin(app, 'PUT', path, { body: {} })).body.budget).toEqual({ day: null, month: null })
    expect((await sendChat(app, 'free again')).status).toBe(200)
  })

  test.each<[unknown, string | null]>([
    [{ day: -1 }, 'day'],
    [{ month: 1.5 }, 'month'],
    [{ day: '100' }, 'day'],
    [{ month: 1e300 }, 'month'],
    [{ day: 1, week: 2 }, null],
    [{ key_id: 'abc' }, 'key_id'],
    ['[]', null],
  ])('is rejected if the request body is %j', async (body, param) => {
    const app = await startAdminApp()
    await fetchMe(app, root)
    const rows = await auditRowsOf(app, async () => {
      const headers = { 'Content-Type': 'application/json' }
      const answer = await asAdmin(app, 'PUT', `/keys/${publicIdOf(app.key)}/budget`, { body, headers })
      expect([answer.status, answer.body.error.code, answer.body.error.param]).toEqual([
        400,
        'invalid_value',
        param,
      ])
    })
    expect(rows).toEqual([])
  })

  test('is rejected for a revoked or unknown key', async () => {
    const app = await startAdminApp()
    const id = publicIdOf(await createTenant(app))
    await asAdmin(app, 'POST', `/keys/${id}/revoke`)
    const rows = await auditRowsOf(app, async () => {
      for (const key of [id, 'zzzzzzzzzzzz']) {
        const answer = await asAdmin(app, 'PUT', `/keys/${key}/budget`, { body: { day: 1 } })
        expect([answer.status, answer.body.error.code]).toEqual([404, 'not_found'])
      }
    })
    expect(rows).toEqual([])
  })
})
