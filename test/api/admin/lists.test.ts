/** Tests the audit log and the usage totals in the administrator API. */
import { describe, expect, test } from 'vitest'
import { asAdmin, listInPages, root, startAdminApp } from '../../support/admin.ts'
import { createTenant } from '../../support/agents.ts'
import { type Answer, startApp, type TestApp } from '../../support/app.ts'
import {
  auditRowsOf,
  expectNoSecrets,
  failAuditInserts,
  listAuditRows,
  publicIdOf,
} from '../../support/audit.ts'
import { asUser, behindProxy } from '../../support/console.ts'
import { readTables } from '../../support/database.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import { callProcedure } from '../../support/rpc.ts'
import { sendChat } from '../../support/usage.ts'

const NOON = Date.UTC(2027, 1, 1, 12) / 1000
const DAY = 86_400
const ada = 'ada@example.org'

const errorOf = ({ status, body }: Answer) => [status, body.error.code, body.error.param]

describe("a user's audit log", () => {
  test("records the user's first visit and each later change once", async () => {
    const app = await startApp(behindProxy)
    const headers = { 'X-Request-Id': 'visit-1' }
    const rows = await auditRowsOf(app, async () => {
      const options = asUser(ada, { headers })
      await Promise.all([1, 2, 3].map(() => app.call('GET', '/v1/manager/me', options)))
      await app.call('GET', '/v1/manager/me', asUser(ada))
    })
    const { parent_key, keys } = (await app.call('GET', '/v1/manager/me', asUser(ada))).body
    const own = { actor_kind: 'user', actor: ada, client_address: '127.0.0.1', tenant: keys[0].id }
    expect(rows).toMatchObject([
      { ...own, action: 'key.provision', target_kind: 'key', target_id: keys[0].id, request_id: 'visit-1' },
    ])
    expect(rows).toHaveLength(1)
    const yaml = 'name: Guide\ninstructions: Help.\n'
    const changeRows = await auditRowsOf(app, async () => {
      const { agent_id } = (await app.call('POST', '/v1/manager/agents', asUser(ada, { body: { yaml } })))
        .body
      await app.call('POST', `/v1/manager/agents/${agent_id}/rotate-key`, asUser(ada))
      await callProcedure(app, 'agents.delete', { agent_id }, asUser(ada))
    })
    expect(changeRows).toMatchObject([
      { ...own, action: 'agent.create', target_kind: 'agent' },
      { ...own, action: 'agent_key.rotate', target_kind: 'agent' },
      { ...own, action: 'agent.delete', target_kind: 'agent' },
    ])
    expect(changeRows).toHaveLength(3)
    expect(parent_key).toBe(`svc_${keys[0].id}`)
  })

  test('records each claim with the data that it moved, but not repeated or rejected claims', async () => {
    const app = await startApp(behindProxy)
    const yaml = 'name: Guide\ninstructions: Help.\n'
    await app.call('POST', '/v1/manager/agents', asUser(ada, { body: { yaml } }))
    const { keys } = (await app.call('GET', '/v1/manager/me', asUser(ada))).body
    const claim = (parent_key: string, email = ada) =>
      app.call('POST', '/v1/manager/claim-key', asUser(email, { body: { parent_key } }))
    const rows = await auditRowsOf(app, () => claim(app.key))
    const id = publicIdOf(app.key)
    expect(rows).toMatchObject([
      { action: 'key.claim', actor: ada, target_kind: 'key', target_id: id, tenant: id },
    ])
    expect(rows).toHaveLength(1)
    expect(JSON.parse(rows[0]?.details ?? '')).toEqual({
      retired: keys[0].id,
      moved: { agents: 1, files: 0, artifacts: 0, usage_days: 0, usage_calls: 0 },
    })
    await app.call('GET', '/v1/manager/me', asUser('eve@example.org'))
    const none = await auditRowsOf(app, async () => {
      const statuses = [
        await claim(app.key),
        await claim(`${app.key}x`),
        await claim(app.key, 'eve@example.org'),
      ]
      expect(statuses.map(({ status }) => status)).toEqual([200, 400, 409])
    })
    expect(none).toEqual([])
    expectNoSecrets(await listAuditRows(app))
  })
})

test("a failed audit insert rolls back a user's first visit or claim", async () => {
  const app = await startApp(behindProxy)
  await app.call('GET', '/v1/manager/me', asUser(ada))
  await failAuditInserts(app)
  const readAffectedTables = () => readTables(app.service.deps.db, ['users', 'parent_keys', 'credentials'])
  const before = await readAffectedTables()
  const body = { parent_key: app.key }
  const answers = [
    await app.call('GET', '/v1/manager/me', asUser('eve@example.org')),
    await app.call('POST', '/v1/manager/claim-key', asUser(ada, { body })),
  ]
  expect(answers.map(({ status }) => status)).toEqual([500, 500])
  expect(await readAffectedTables()).toEqual(before)
})

describe("the administrator's audit log", () => {
  /** Creates two keys on day 1, rotates one of them on day 2 and revokes it on day 3. */
  async function startWithHistory() {
    const clock = createFakeClock(NOON)
    const app = await startAdminApp({}, { clock })
    const other = await createTenant(app)
    clock.advance(DAY)
    await app.call('POST', '/v1/keys/rotate', { key: other, body: { overlap_seconds: 9 } })
    clock.advance(DAY)
    await asAdmin(app, 'POST', `/keys/${publicIdOf(other)}/revoke`)
    return { app, first: publicIdOf(app.key), second: publicIdOf(other) }
  }
  const audit = (app: TestApp, query = '') => asAdmin(app, 'GET', `/audit${query}`)
  const actionsOf = ({ body }: Answer) => body.data.map(({ action }: { action: string }) => action)

  test('lists changes with their details, newest first', async () => {
    const { app, first, second } = await startWithHistory()
    const answer = await audit(app)
    const about = { target_kind: 'key', tenant: second, target_id: second }
    expect(answer.body).toMatchObject({ object: 'list', has_more: false })
    expect(answer.body.data).toMatchObject([
      { ...about, action: 'key.revoke', actor_kind: 'user', actor: root, details: {} },
      { action: 'key.provision', actor_kind: 'user', actor: root, created_at: NOON + 2 * DAY },
      {
        ...about,
        action: 'key.rotate',
        actor_kind: 'parent_key',
        actor: second,
        created_at: NOON + DAY,
        client_address: '127.0.0.1',
        details: { overlap_seconds: 9 },
      },
      { ...about, action: 'key.create', actor_kind: 'service', details: { name: 'another' } },
      { action: 'key.create', target_id: first, request_id: null, client_address: null, created_at: NOON },
    ])
    expect(answer.text).not.toMatch(/(svc_|agnt_key-)[0-9A-Za-z]{13}/)
    const rpc = await callProcedure(app, 'admin.audit', { limit: 1 }, asUser(root))
    expect(rpc.body.result.data.json).toEqual({ ...answer.body, data: [answer.body.data[0]], has_more: true })
  })

  test('returns each row exactly once for any page size', async () => {
    const { app } = await startWithHistory()
    const all = (await audit(app)).body.data
    expect(all).toHaveLength(5)
    for (const limit of [1, 2, 5]) expect(await listInPages(app, '/audit', limit)).toEqual(all)
  })

  test('returns the same rows for `after` even if newer rows were added', async () => {
    const { app } = await startWithHistory()
    const { data } = (await audit(app)).body
    await createTenant(app)
    const next = await audit(app, `?after=${data[1].id}`)
    expect(next.body.data).toEqual(data.slice(2))
  })

  test('returns 50 rows by default and at most 100', async () => {
    const app = await startAdminApp()
    for (let count = 0; count < 101; count++) await createTenant(app)
    expect((await audit(app)).body.data).toHaveLength(50)
    expect((await audit(app, '?limit=100')).body).toMatchObject({ data: { length: 100 }, has_more: true })
    expect(errorOf(await audit(app, '?limit=101'))).toEqual([400, 'invalid_value', 'limit'])
  })

  test('can be filtered by action, actor, target or time', async () => {
    const { app, first, second } = await startWithHistory()
    const cases: [query: string, actions: string[]][] = [
      ['?action=key.create', ['key.create', 'key.create']],
      ['?action=file.delete', []],
      [`?actor=${second}`, ['key.rotate']],
      [`?actor=${encodeURIComponent(root)}`, ['key.revoke', 'key.provision']],
      ['?actor=nobody', []],
      [`?target=${second}`, ['key.revoke', 'key.rotate', 'key.create']],
      [`?target=${first}`, ['key.create']],
      [`?target=${second}&action=key.create`, ['key.create']],
      ['?from=2027-02-02&to=2027-02-02', ['key.rotate']],
      [`?from=${NOON + DAY}&to=${NOON + DAY}`, ['key.rotate']],
      [`?from=${NOON + 1}&to=${NOON + DAY - 1}`, []],
      ['?to=2027-02-01', ['key.create', 'key.create']],
      ['?from=2027-02-03', ['key.revoke', 'key.provision']],
      ['?from=9999-12-31', []],
      ['?to=253402300799&action=key.rotate', ['key.rotate']],
    ]
    for (const [query, actions] of cases)
      expect([query, actionsOf(await audit(app, query))]).toEqual([query, actions])
  })

  test.each([
    ['?limit=0', 'limit'],
    ['?limit=x', 'limit'],
    ['?after=nonsense', 'after'],
    ['?after=', 'after'],
    ['?action=key.steal', 'action'],
    ['?from=yesterday', 'from'],
    ['?to=2027-02-30', 'to'],
    ['?from=2027-02-02&to=2027-02-01', 'from'],
    ['?sort=created', null],
  ])('rejects the query %s', async (query, param) => {
    const app = await startAdminApp()
    expect(errorOf(await audit(app, query))).toEqual([400, 'invalid_value', param])
    if (param !== 'limit' && !query.startsWith('?after')) return
    for (const path of ['/users', '/keys'])
      expect(errorOf(await asAdmin(app, 'GET', path + query))).toEqual([400, 'invalid_value', param])
  })
})

describe('the usage report for all keys', () => {
  /** Creates two keys and an agent that make calls on two days. */
  async function startWithUsage() {
    const clock = createFakeClock(NOON)
    const app = await startAdminApp({}, { clock })
    const other = await createTenant(app)
    const { agent_id, agent_key } = await app.createAgent()
    await sendChat(app, 'one')
    clock.advance(DAY)
    await sendChat(app, '[[tokens:500]]', {}, other)
    await sendChat(app, 'two', {}, agent_key)
    const usage = async (query = '') => (await asAdmin(app, 'GET', `/usage${query}`)).body
    return { app, agent_id, first: publicIdOf(app.key), second: publicIdOf(other), other, usage }
  }

  test('lists the calls of all keys or of one key', async () => {
    const { app, first, second } = await startWithUsage()
    const listKeys = async (query = '') => {
      const { body } = await asAdmin(app, 'GET', `/usage/calls${query}`)
      return body.data.map(({ key }: { key: string }) => key)
    }
    expect(await listKeys()).toEqual([first, second, first])
    expect(await listKeys(`?key=${second}`)).toEqual([second])
  })

  test('sums requests and tokens by day, agent, model or key', async () => {
    const { app, usage, agent_id, first, second, other } = await startWithUsage()
    const mine = (await app.call('GET', '/v1/usage')).body.total
    const theirs = (await app.call('GET', '/v1/usage', { key: other })).body.total
    const { from, to, data, total } = await usage()
    expect([from, to]).toEqual(['2027-01-04', '2027-02-02'])
    expect(total).toMatchObject({ requests: 3, total_tokens: mine.total_tokens + theirs.total_tokens })
    expect(data).toMatchObject([
      { day: '2027-02-01', requests: 1 },
      { day: '2027-02-02', requests: 2 },
    ])
    expect((await usage('?group_by=key')).data).toEqual([
      { key: second, ...theirs },
      { key: first, ...mine },
    ])
    expect((await usage('?group_by=model')).data).toEqual([{ model: 'mock', provider: 'mock', ...total }])
    expect((await usage('?group_by=agent')).data).toMatchObject([
      { agent: null, requests: 2 },
      { agent: agent_id, requests: 1 },
    ])
  })

  test('returns, for one key, the same usage that the key itself can read', async () => {
    const { app, usage, first, second, other } = await startWithUsage()
    for (const [id, key] of [
      [first, app.key],
      [second, other],
    ] as const) {
      for (const grouping of ['day', 'agent', 'model']) {
        const own = (await app.call('GET', `/v1/usage?group_by=${grouping}`, { key })).body
        expect(await usage(`?group_by=${grouping}&key=${id}`)).toEqual(own)
      }
    }
    expect(await usage('?key=zzzzzzzzzzzz')).toMatchObject({ data: [], total: { requests: 0 } })
    expect(await usage('?from=2027-02-01&to=2027-02-01&group_by=key')).toMatchObject({
      data: [{ key: first }],
    })
  })

  test.each([
    ['?group_by=week', 'group_by'],
    ['?key=svc_', 'key'],
    ['?from=2027-02-02&to=2027-02-01', 'from'],
    ['?limit=5', null],
  ])('rejects the query %s', async (query, param) => {
    const app = await startAdminApp()
    expect(errorOf(await asAdmin(app, 'GET', `/usage${query}`))).toEqual([400, 'invalid_value', param])
    const own = await app.call('GET', '/v1/usage?group_by=week')
    expect(errorOf(own)).toEqual([400, 'invalid_value', 'group_by'])
  })
})
