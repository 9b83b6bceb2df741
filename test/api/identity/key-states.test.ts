/** Tests expired, disabled and limited parent keys, and the agent keys that depend on them. */
import { describe, expect, test } from 'vitest'
import type { TestApp } from '../../support/app.ts'
import {
  actOnKey,
  changeKey,
  changeManager,
  createKey,
  NOW,
  readAudit,
  startWithManager,
  statusOf,
} from '../../support/managed-keys.ts'
import { callProcedure } from '../../support/rpc.ts'
import { postUpload } from '../../support/uploads.ts'

describe('an inactive parent key', () => {
  const messages = [{ role: 'user', content: 'hello' }]

  async function createTenantOf(app: TestApp, body: object = {}) {
    const { id, key } = await createKey(app, body)
    const { agent_id: agentId, agent_key: agentKey } = await app.createAgent(undefined, key)
    const reserved = await app.call('POST', '/v1/artifacts', { key, body: {} })
    expect(reserved.status).toBe(201)
    return { id, key, agentId, agentKey, artifact: reserved.body as Record<string, string> }
  }

  /** Returns the status of each kind of request with the keys of a tenant. */
  async function statusesOf(app: TestApp, { key, agentKey }: { key: string; agentKey: string }) {
    const answers = await Promise.all([
      app.call('GET', '/v1/agents', { key }),
      app.call('POST', '/v1/chat/completions', { key, body: { model: 'mock', messages } }),
      app.call('POST', '/v1/responses', { key, body: { model: 'mock', input: 'hello' } }),
      postUpload({ ...app, key }),
      callProcedure(app, 'agents.list', {}, { key }),
      app.call('POST', '/v1/chat/completions', { key: agentKey, body: { messages } }),
      app.call('POST', '/v1/responses', { key: agentKey, body: { input: 'hello' } }),
      callProcedure(app, 'agents.me', {}, { key: agentKey }),
    ])
    return answers.map(({ status }) => status)
  }

  const accepted = [200, 200, 200, 201, 200, 200, 200, 200]
  const rejected = accepted.map(() => 401)

  test('is rejected over REST, tRPC, tus and Responses while it is disabled, as are its agent keys', async () => {
    const { app } = await startWithManager()
    const tenant = await createTenantOf(app)
    expect(await statusesOf(app, tenant)).toEqual(accepted)
    expect((await actOnKey(app, tenant.id, 'disable')).body).toMatchObject({
      state: 'disabled',
      disabled_at: NOW,
    })
    expect(await statusesOf(app, tenant)).toEqual(rejected)
    expect((await actOnKey(app, tenant.id, 'disable')).status).toBe(200)
    expect((await actOnKey(app, tenant.id, 'enable')).body).toMatchObject({
      state: 'active',
      disabled_at: null,
    })
    expect(await statusesOf(app, tenant)).toEqual(accepted)
    const actions = (await readAudit(app, tenant.id)).map(({ action }) => action)
    expect(actions).toEqual(['key.create', 'key.disable', 'key.enable'])
  })

  test('is rejected from the second it expires until its expiry is extended, as are its agent keys', async () => {
    const { app, clock } = await startWithManager()
    const tenant = await createTenantOf(app, { expires_at: NOW + 60 })
    clock.advance(59.9)
    expect(await statusesOf(app, tenant)).toEqual(accepted)
    clock.advance(0.1)
    expect(await statusesOf(app, tenant)).toEqual(rejected)
    expect((await app.call('GET', `/v1/keys/${tenant.id}`)).body.state).toBe('expired')
    expect((await changeKey(app, tenant.id, { expires_at: null })).body.state).toBe('active')
    expect(await statusesOf(app, tenant)).toEqual(accepted)
  })

  test.each<[string, (app: TestApp, id: string, advance: (seconds: number) => void) => Promise<unknown>]>([
    ['is disabled', (app, id) => actOnKey(app, id, 'disable')],
    ['expires', async (_app, _id, advance) => advance(60)],
  ])('invalidates its tokens when it %s', async (_what, end) => {
    const { app, clock } = await startWithManager()
    const { id, artifact } = await createTenantOf(app, { expires_at: NOW + 60 })
    const token = Object.values(artifact).find((value) => String(value).startsWith('atk_')) as string
    const upload = () => postUpload({ ...app, key: token })
    expect((await upload()).status).toBe(201)
    await end(app, id, clock.advance)
    expect((await upload()).status).toBe(401)
  })

  test('cannot manage keys', async () => {
    const { app, clock } = await startWithManager()
    const { id } = await createKey(app)
    await changeManager(app, { expires_at: NOW + 10 })
    clock.advance(10)
    expect((await actOnKey(app, id, 'disable')).status).toBe(401)
    expect((await app.call('POST', '/v1/keys', { body: { name: 'x' } })).status).toBe(401)
  })
})

describe("a parent key's own limits", () => {
  const limitOf = async (app: TestApp, key?: string) =>
    (await app.call('GET', '/v1/models', { ...(key !== undefined && { key }) })).headers.get(
      'x-ratelimit-limit',
    )

  test('replace the configured limits for this key only', async () => {
    const { app } = await startWithManager()
    const { id, key } = await createKey(app, { requests_per_minute: 2 })
    expect([await limitOf(app, key), await limitOf(app)]).toEqual(['2', '600'])
    expect(await statusOf(app, key)).toBe(200)
    const limited = await app.call('GET', '/v1/models', { key })
    expect([limited.status, limited.headers.has('retry-after')]).toEqual([429, true])
    expect((await callProcedure(app, 'keys.validate', {}, { key })).status).toBe(429)
    expect((await changeKey(app, id, { requests_per_minute: null })).status).toBe(200)
    expect(await limitOf(app, key)).toBe('600')
    expect(await statusOf(app, key)).toBe(200)
  })

  test('apply even if no limit is configured', async () => {
    const { app } = await startWithManager({ PARLEY_RATE_LIMIT_PARENT: '0' })
    const { key } = await createKey(app, { requests_per_minute: 900 })
    expect([await limitOf(app, key), await limitOf(app)]).toEqual(['900', null])
  })
})
