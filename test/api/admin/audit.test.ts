/** Tests that each change writes one audit row, in the same transaction and without secrets. */
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { setBudget } from '../../../src/budgets/token-budgets.ts'
import { serviceActor } from '../../../src/identity/audit.ts'
import { createParentKey, revokeParentKey } from '../../../src/identity/keys.ts'
import { createTenant } from '../../support/agents.ts'
import { GREETER, startApp, type TestApp } from '../../support/app.ts'
import {
  auditRowsOf,
  expectNoSecrets,
  failAuditInserts,
  listAuditRows,
  publicIdOf,
} from '../../support/audit.ts'
import { readTables } from '../../support/database.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import { upload } from '../../support/files.ts'
import { makeFolder } from '../../support/process.ts'
import { callProcedure } from '../../support/rpc.ts'

const NOW = 1_800_000_000
const generated = `svc_${'a'.repeat(12)}`

const parentOf = (app: TestApp) => ({
  kind: 'parent' as const,
  tenantId: publicIdOf(app.key),
})

/** Returns the audit row that a change made with the parent key must write. */
const expectedRow = (app: TestApp, action: string, kind: string, id: string, details: object) => ({
  id: expect.stringMatching(/^audit-[0-9a-z]{12}[0-9a-f]{12}$/),
  created_at: NOW,
  actor_kind: 'parent_key',
  actor: publicIdOf(app.key),
  action,
  target_kind: kind,
  target_id: id,
  tenant: publicIdOf(app.key),
  request_id: 'my-request',
  client_address: '127.0.0.1',
  details: JSON.stringify(details),
})
const headers = { 'X-Request-Id': 'my-request' }

async function start(): Promise<TestApp> {
  return startApp({}, { clock: createFakeClock(NOW) })
}

describe('the audit log records', () => {
  test('each rotation of the parent key', async () => {
    const app = await start()
    const body = { overlap_seconds: 60 }
    let hint = ''
    const rows = await auditRowsOf(app, async () => {
      hint = (await app.call('POST', '/v1/keys/rotate', { headers, body })).body.key_hint
    })
    const details = { key_hint: hint, overlap_seconds: 60 }
    expect(rows).toEqual([expectedRow(app, 'key.rotate', 'key', publicIdOf(app.key), details)])
  })

  test('each rotation of an agent key', async () => {
    const app = await start()
    const { agent_id } = await app.createAgent()
    const path = `/v1/agents/${agent_id}/rotate-key`
    let hint = ''
    const rows = await auditRowsOf(app, async () => {
      hint = (await app.call('POST', path, { headers })).body.key_hint
    })
    const details = { key_hint: hint, overlap_seconds: 0 }
    expect(rows).toEqual([expectedRow(app, 'agent_key.rotate', 'agent', agent_id, details)])
  })

  test('each creation, replacement and restoration of an agent', async () => {
    const app = await start()
    let id = ''
    const rows = await auditRowsOf(app, async () => {
      id = (await app.call('POST', '/v1/agents', { headers, body: { yaml: GREETER } })).body.agent_id
      const yaml = GREETER.replace('Greeter', 'Host')
      await app.call('PUT', `/v1/agents/${id}`, { headers, body: { yaml } })
      await app.call('PUT', `/v1/agents/${id}`, {
        headers: { ...headers, 'If-Match': '"1"' },
        body: { yaml },
      })
      await app.call('POST', `/v1/agents/${id}/versions/1/restore`, { headers })
    })
    expect(rows).toEqual([
      expectedRow(app, 'agent.create', 'agent', id, { name: 'Greeter', version: 1 }),
      expectedRow(app, 'agent.update', 'agent', id, { name: 'Host', version: 2 }),
      expectedRow(app, 'agent.update', 'agent', id, { name: 'Greeter', version: 3, restored_version: 1 }),
    ])
    const { data } = (await app.call('GET', `/v1/agents/${id}/versions`)).body
    expect(data.map(({ author }: { author: string }) => author)).toEqual(Array(3).fill(publicIdOf(app.key)))
  })

  test('each deletion of an agent', async () => {
    const app = await start()
    const { agent_id } = await app.createAgent()
    const rows = await auditRowsOf(app, () => app.call('DELETE', `/v1/agents/${agent_id}`, { headers }))
    const details = { name: 'Greeter', version: 1 }
    expect(rows).toEqual([expectedRow(app, 'agent.delete', 'agent', agent_id, details)])
  })

  test('each deletion of a file', async () => {
    const app = await start()
    const { id } = (await upload(app)).body
    const rows = await auditRowsOf(app, () => app.call('DELETE', `/v1/files/${id}`, { headers }))
    expect(rows).toEqual([expectedRow(app, 'file.delete', 'file', id, { purpose: 'assistants', bytes: 5 })])
  })

  test('each replacement of a model policy and, in a separate row, each change to its budget', async () => {
    const app = await start()
    const { agent_id } = await app.createAgent()
    const path = `/v1/agents/${agent_id}/model-policy`
    const before = {
      ...{
        default_model: null,
        allowed_models: [],
        fallback_models: [],
        max_output_tokens: null,
        degrade: [],
      },
    }
    const after = { ...before, max_output_tokens: 5 }
    const put = (body: object) => auditRowsOf(app, () => app.call('PUT', path, { headers, body }))
    const none = { day: null, month: null }
    expect(await put({ max_output_tokens: 5, budget: { day: 9 } })).toEqual([
      expectedRow(app, 'policy.set', 'agent', agent_id, { before, after }),
      expectedRow(app, 'budget.set', 'agent', agent_id, { before: none, after: { ...none, day: 9 } }),
    ])
    expect(await put({ max_output_tokens: 5, budget: { day: 9 } })).toEqual([
      expectedRow(app, 'policy.set', 'agent', agent_id, { before: after, after }),
    ])
    expect(await put({ max_output_tokens: -1 })).toEqual([])
  })

  test('changes made over tRPC', async () => {
    const app = await start()
    const { agent_id } = await app.createAgent()
    const { id } = (await upload(app)).body
    const rows = await auditRowsOf(app, async () => {
      await callProcedure(app, 'agents.rotateKey', { agent_id }, { headers })
      await callProcedure(app, 'agents.delete', { agent_id }, { headers })
      await callProcedure(app, 'files.delete', { file_id: id }, { headers })
      await callProcedure(app, 'keys.rotate', {}, { headers })
    })
    expect(rows.map(({ action }) => action)).toEqual([
      'agent_key.rotate',
      'agent.delete',
      'file.delete',
      'key.rotate',
    ])
    for (const row of rows)
      expect(row).toMatchObject({ actor: publicIdOf(app.key), request_id: 'my-request' })
  })

  test('each change made outside a request, with the service as the actor', async () => {
    const app = await start()
    const { deps } = app.service
    const first = publicIdOf(app.key)
    const by = { actor_kind: 'service', actor: 'service', request_id: null, client_address: null }
    expect(await listAuditRows(app)).toMatchObject([
      { ...by, action: 'key.create', target_kind: 'key', target_id: first, tenant: first },
    ])
    const rows = await auditRowsOf(app, async () => {
      await setBudget(deps, serviceActor, parentOf(app), { day: 5 })
      await setBudget(deps, serviceActor, parentOf(app), { month: 7 })
      await revokeParentKey(deps, serviceActor, first)
    })
    const about = { ...by, target_kind: 'key', target_id: first, tenant: first }
    const none = { day: null, month: null }
    expect(rows.map((row) => ({ ...row, details: JSON.parse(row.details) }))).toMatchObject([
      { ...about, action: 'budget.set', details: { before: none, after: { ...none, day: 5 } } },
      {
        ...about,
        action: 'budget.set',
        details: { before: { day: 5, month: null }, after: { ...none, month: 7 } },
      },
      { ...about, action: 'key.revoke', details: {} },
    ])
  })
})

test('the audit log records a parent key from the environment only at the first start', async () => {
  const { text } = await createParentKey((await startApp()).service.deps, serviceActor, 'elsewhere')
  const env = { PARLEY_DATA_DIR: join(await makeFolder(), 'data'), PARLEY_PARENT_KEY: text }
  const rows = [{ action: 'key.register', actor: 'service', target_id: publicIdOf(text) }]
  const first = await startApp(env)
  expect(await listAuditRows(first)).toMatchObject(rows)
  await first.close()
  const second = await startApp(env)
  expect(await listAuditRows(second)).toMatchObject(rows)
  expect(await listAuditRows(second)).toHaveLength(1)
})

test('a rejected change writes no audit row', async () => {
  const app = await start()
  const { agent_id, agent_key } = await app.createAgent()
  const file = (await upload(app)).body.id
  const other = await createTenant(app)
  const rows = await auditRowsOf(app, async () => {
    const answers = await Promise.all([
      app.call('DELETE', `/v1/agents/${agent_id}`, { key: other }),
      app.call('POST', `/v1/agents/${agent_id}/rotate-key`, { key: other }),
      app.call('DELETE', `/v1/files/${file}`, { key: other }),
      app.call('DELETE', `/v1/files/${file}`, { key: agent_key }),
      app.call('POST', '/v1/keys/rotate', { key: agent_key }),
      app.call('POST', '/v1/keys/rotate', { body: { overlap_seconds: -1 } }),
    ])
    expect(answers.map(({ status }) => status)).toEqual([404, 404, 404, 403, 403, 400])
    const { deps } = app.service
    await expect(revokeParentKey(deps, serviceActor, 'zzzzzzzzzzzz')).rejects.toThrow(
      'does not exist or was revoked',
    )
  })
  expect(rows).toEqual([])
})

test('only one of several concurrent deletions succeeds and writes an audit row', async () => {
  const app = await start()
  const { agent_id } = await app.createAgent()
  const file = (await upload(app)).body.id
  for (const path of [`/v1/agents/${agent_id}`, `/v1/files/${file}`]) {
    const rows = await auditRowsOf(app, async () => {
      const answers = await Promise.all(Array.from({ length: 8 }, () => app.call('DELETE', path)))
      expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
    })
    expect(rows).toHaveLength(1)
  }
})

test('an audit row never contains a secret, even if a name or request id does', async () => {
  const app = await start()
  const { deps } = app.service
  const keyAsRequestId = { 'X-Request-Id': app.key }
  const { agent_id, agent_key } = await app.createAgent(`name: ${app.key}\ninstructions: Hi.\n`)
  const named = await createParentKey(deps, serviceActor, `for ${agent_key}, not ${generated}`)
  await app.call('POST', `/v1/agents/${agent_id}/rotate-key`, { headers: keyAsRequestId })
  await app.call('DELETE', `/v1/agents/${agent_id}`, {
    headers: { 'X-Request-Id': 'svc_scoped_0123456789abcdef' },
  })
  await app.call('POST', '/v1/keys/rotate', { headers: keyAsRequestId })
  await revokeParentKey(deps, serviceActor, named.publicId)
  const rows = await listAuditRows(app)
  expect(rows).toHaveLength(7)
  expectNoSecrets(rows)
  const publicPart = app.key.slice(0, 16)
  expect(JSON.parse(rows[1]?.details ?? '').name).toBe(`${publicPart}…`)
  expect(JSON.parse(rows[2]?.details ?? '').name).toBe(`for ${agent_key.slice(0, 21)}…, not ${generated}`)
  expect(rows[3]?.request_id).toBe(`${publicPart}…`)
  expect(JSON.parse(rows[4]?.details ?? '').name).toBe(`${publicPart}…`)
})

describe('when the audit row cannot be written', () => {
  /**
   * Starts a service that cannot insert audit rows, and returns a function that reads the affected tables.
   */
  async function startWithFailingAudit() {
    const app = await startApp()
    const agent = await app.createAgent()
    const file = (await upload(app)).body.id as string
    await setBudget(app.service.deps, serviceActor, parentOf(app), { day: 1_000_000 })
    await failAuditInserts(app)
    const tables = ['parent_keys', 'credentials', 'agents', 'files', 'budgets', 'audit_events'] as const
    const readAffectedTables = () => readTables(app.service.deps.db, tables)
    return { app, agent, file, readAffectedTables }
  }

  test('the database rolls back the change', async () => {
    const { app, agent, file, readAffectedTables } = await startWithFailingAudit()
    const { deps } = app.service
    const before = await readAffectedTables()
    const answers = [
      await app.call('POST', '/v1/keys/rotate'),
      await app.call('POST', `/v1/agents/${agent.agent_id}/rotate-key`),
      await app.call('DELETE', `/v1/agents/${agent.agent_id}`),
      await app.call('DELETE', `/v1/files/${file}`),
    ]
    expect(answers.map(({ status }) => status)).toEqual([500, 500, 500, 500])
    const changes = [
      () => revokeParentKey(deps, serviceActor, publicIdOf(app.key)),
      () => createParentKey(deps, serviceActor, 'one more'),
      () => setBudget(deps, serviceActor, parentOf(app), { month: 1 }),
    ]
    for (const change of changes) await expect(change()).rejects.toThrow('refused')
    expect(await readAffectedTables()).toEqual(before)
  })

  test('the keys and the file remain usable', async () => {
    const { app, agent, file } = await startWithFailingAudit()
    await revokeParentKey(app.service.deps, serviceActor, publicIdOf(app.key)).catch(() => {})
    await app.call('DELETE', `/v1/files/${file}`)
    expect((await app.call('GET', '/v1/keys/validate')).status).toBe(200)
    expect((await app.call('GET', '/v1/agents/me', { key: agent.agent_key })).status).toBe(200)
    expect((await app.call('GET', `/v1/files/${file}/content`)).text).toBe('hello')
  })
})
