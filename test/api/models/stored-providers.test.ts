/** Tests the providers that administrators add while the server runs. */
import { join } from 'node:path'
import { describe, expect, inject, test } from 'vitest'
import { asAdmin, startAdminApp } from '../../support/admin.ts'
import { type Answer, openApp, type TestApp } from '../../support/app.ts'
import { auditRowsOf } from '../../support/audit.ts'
import { chatRequest } from '../../support/chat-harness.ts'
import { asUser, behindProxy } from '../../support/console.ts'
import { startupErrorOf } from '../../support/database.ts'
import { makeFolder } from '../../support/process.ts'
import { shareUpstream, startUpstream, type Upstream } from '../../support/start-upstream.ts'

const API_KEY = 'sk-test-0123456789-abcd'
const admin = 'root@example.org'
/**
 * The startup error after the secret is replaced. It differs on PostgreSQL, where servers compare their
 * secrets first.
 */
const otherSecret =
  inject('database') === 'sqlite'
    ? 'The provider keys in the database are encrypted with a different secret'
    : 'Other servers that use this database have a different secret'

function listModels(upstream: Upstream, ...ids: readonly string[]): Promise<void> {
  const data = ids.map((id) => ({ id, object: 'model', created: 1, owned_by: 'example' }))
  return upstream.script('/v1/models', `{{up:body ${JSON.stringify({ object: 'list', data })}}}`)
}

const add = (app: TestApp, body: object) => asAdmin(app, 'POST', '/providers', { body })
const testOnly = (app: TestApp, body: object) => asAdmin(app, 'POST', '/providers/test', { body })
const readProviders = async (app: TestApp) => (await asAdmin(app, 'GET', '/providers')).body
const failureOf = ({ status, body }: Answer) => [status, body.error.param, body.error.message]

async function idsOf(app: TestApp): Promise<string[]> {
  return (await app.call('GET', '/v1/models')).body.data.map(({ id }: { id: string }) => id)
}

async function chat(app: TestApp, model: string | null): Promise<[number, string | null]> {
  const { status, headers } = await app.call('POST', '/v1/chat/completions', {
    body: chatRequest('hello', { model }),
  })
  return [status, headers.get('x-parley-provider')]
}

/** Returns the `authorization` headers of the requests to an upstream's path. */
async function listAuthorizations(upstream: Upstream, path: string): Promise<unknown[]> {
  const requests = (await upstream.listRequests()).filter((seen) => seen.path === path)
  return requests.map(({ headers }) => headers.authorization)
}

describe('a provider that an administrator adds', () => {
  test('answers immediately with its own key, and replaces the mock as the default', async () => {
    const upstream = await shareUpstream()
    await listModels(upstream, 'large', 'small')
    const app = await startAdminApp()
    expect(await chat(app, null)).toEqual([200, 'mock'])
    const { status, body } = await add(app, { name: 'near', base_url: upstream.url, api_key: API_KEY })
    expect([status, body]).toEqual([
      201,
      expect.objectContaining({
        ...{ name: 'near', source: 'console', kind: 'gateway', base_url: upstream.url },
        ...{ has_key: true, key_hint: 'abcd', status: 'up', problem: null, models: 2 },
      }),
    ])
    expect(await idsOf(app)).toEqual(['large', 'small', 'mock', 'mock-embedding'])
    for (const model of [null, 'large', 'near/small']) expect(await chat(app, model)).toEqual([200, 'near'])
    const asked = await listAuthorizations(upstream, '/v1/chat/completions')
    expect(asked).toEqual(Array(3).fill(`Bearer ${API_KEY}`))
    const { body: health } = await app.call('GET', '/readyz')
    expect(health.checks.backends).toEqual({ near: 'up', mock: 'up' })
  })

  test("can be used in an agent's model policy, and its failures appear in the metrics", async () => {
    const upstream = await shareUpstream()
    await listModels(upstream, 'large')
    const app = await startAdminApp()
    const { agent_id: id, agent_key: key } = await app.createAgent()
    const policy = {
      default_model: { provider: 'near', model: 'large' },
      allowed_models: [],
      fallback_models: [{ provider: 'mock', model: 'mock' }],
    }
    const setPolicy = () => app.call('PUT', `/v1/agents/${id}/model-policy`, { body: policy })
    expect((await setPolicy()).status).toBe(400)
    await add(app, { name: 'near', base_url: upstream.url })
    expect((await setPolicy()).status).toBe(200)
    await upstream.script('/v1/chat/completions', '{{up:status 500}}')
    const { headers } = await app.call('POST', '/v1/chat/completions', {
      key,
      body: chatRequest('hello', { model: null }),
    })
    expect([headers.get('x-parley-provider'), headers.get('x-parley-fallback')]).toEqual(['mock', 'true'])
    const metrics = (await app.call('GET', '/metrics', { key: null })).text
    expect(metrics).toMatch(/parley_backend_errors_total\{provider="near",reason="[^"]+"\} [1-9]/)
  })

  test('is stored with an encrypted API key, and survives a restart and a change to the server secret', async () => {
    const upstream = await shareUpstream()
    await listModels(upstream, 'large')
    const env = {
      ...behindProxy,
      PARLEY_ADMIN_EMAILS: admin,
      PARLEY_DATA_DIR: join(await makeFolder(), 'data'),
      PARLEY_SECRET: 'the first secret of this installation',
    }
    const first = await openApp(env)
    await add(first, { name: 'near', base_url: upstream.url, api_key: API_KEY })
    const rows = await first.service.deps.db.selectFrom('providers').selectAll().execute()
    expect(JSON.stringify(rows)).not.toContain(API_KEY)
    await first.close()
    const again = { ...env, PARLEY_PARENT_KEY: first.key }
    const replaced = { ...again, PARLEY_SECRET: 'the second secret of this installation' }
    expect(await startupErrorOf(openApp(replaced))).toContain(otherSecret)
    for (const settings of [{ ...replaced, PARLEY_SECRET_PREVIOUS: env.PARLEY_SECRET }, replaced]) {
      await upstream.clear()
      await listModels(upstream, 'large')
      const app = await openApp(settings)
      expect(await chat(app, 'near/large')).toEqual([200, 'near'])
      expect(await listAuthorizations(upstream, '/v1/chat/completions')).toEqual([`Bearer ${API_KEY}`])
      await app.close()
    }
  })

  test('keeps its API key if an update omits the key, unless the update changes the server', async () => {
    const [first, second] = [await shareUpstream(), await startUpstream()]
    try {
      await listModels(first, 'large')
      await listModels(second, 'other')
      const app = await startAdminApp()
      await add(app, { name: 'near', base_url: first.url, api_key: API_KEY })
      const update = (body: object) => asAdmin(app, 'PUT', '/providers/near', { body })
      expect((await update({ base_url: `${first.origin}/v1/` })).body).toMatchObject({ key_hint: 'abcd' })
      const moved = { base_url: second.url }
      const needsKey = [400, 'api_key', `api_key: is required to change the server from ${first.origin}`]
      expect(failureOf(await update(moved))).toEqual(needsKey)
      expect(failureOf(await testOnly(app, { name: 'near', ...moved }))).toEqual(needsKey)
      expect(await listAuthorizations(second, '/v1/models')).toEqual([])
      expect((await update({ ...moved, api_key: null })).body).toMatchObject({
        has_key: false,
        key_hint: null,
      })
      expect(await listAuthorizations(second, '/v1/models')).toEqual([undefined])
      expect(await idsOf(app)).toEqual(['other', 'mock', 'mock-embedding'])
    } finally {
      await second.stop()
    }
  })

  test('finishes its running calls after it is deleted, but accepts no new ones', async () => {
    const upstream = await shareUpstream()
    await listModels(upstream, 'large')
    const app = await startAdminApp()
    await add(app, { name: 'near', base_url: upstream.url })
    const answer = app.stream(
      chatRequest('{{up:text done}}{{up:slow-head 300}}', { model: 'large', stream: true }),
    )
    await upstream.waitForPath('/v1/chat/completions')
    expect((await asAdmin(app, 'DELETE', '/providers/near')).body).toEqual({ name: 'near', deleted: true })
    expect((await answer).isDone).toBe(true)
    expect(await chat(app, 'near/large')).toEqual([404, null])
    expect(await idsOf(app)).toEqual(['mock', 'mock-embedding'])
    expect((await asAdmin(app, 'DELETE', '/providers/near')).status).toBe(404)
  })
})

describe('the list of providers', () => {
  test('contains providers from the environment as read-only entries without their keys', async () => {
    const upstream = await shareUpstream()
    await listModels(upstream, 'large')
    const app = await startAdminApp({
      PARLEY_BACKEND: 'gateway',
      PARLEY_GATEWAY_URL: upstream.url,
      PARLEY_GATEWAY_API_KEY: API_KEY,
    })
    const { data, allowed } = await readProviders(app)
    expect([allowed, data]).toEqual([
      'any',
      [
        expect.objectContaining({
          ...{ name: 'gateway', source: 'environment', kind: 'gateway', base_url: upstream.url },
          ...{ has_key: true, key_hint: null, status: 'up', models: 1, created_at: null },
        }),
      ],
    ])
    expect(JSON.stringify(data)).not.toContain(API_KEY)
    const body = { base_url: upstream.url }
    for (const answer of [
      await asAdmin(app, 'PUT', '/providers/gateway', { body }),
      await asAdmin(app, 'DELETE', '/providers/gateway'),
    ])
      expect(failureOf(answer)).toEqual([
        409,
        'name',
        "name: 'gateway' comes from the server's environment; change it there and restart the server",
      ])
    expect((await testOnly(app, { name: 'gateway' })).body).toMatchObject({ ok: true, model_count: 1 })
  })

  test("explains in a provider's entry why the provider does not answer", async () => {
    const upstream = await shareUpstream()
    const app = await startAdminApp()
    await upstream.script('/v1/models', '{{up:status 401}}')
    const { body } = await add(app, { name: 'near', base_url: upstream.url, api_key: 'wrong' })
    const entry = {
      name: 'near',
      status: 'down',
      problem: 'The provider rejected the API key (status 401). Enter a valid key.',
      key_hint: null,
    }
    expect(body).toMatchObject(entry)
    expect((await readProviders(app)).data).toContainEqual(expect.objectContaining(entry))
  })

  test('marks a stored provider as unused if the environment has one with the same name', async () => {
    const upstream = await shareUpstream()
    await listModels(upstream, 'large')
    const env = {
      ...behindProxy,
      PARLEY_ADMIN_EMAILS: admin,
      PARLEY_DATA_DIR: join(await makeFolder(), 'data'),
    }
    const first = await openApp(env)
    await add(first, { name: 'gateway', base_url: 'http://127.0.0.1:9/v1' })
    await first.close()
    const own = { PARLEY_BACKEND: 'gateway', PARLEY_GATEWAY_URL: upstream.url }
    const second = await openApp({ ...env, ...own, PARLEY_PARENT_KEY: first.key })
    const { data } = await readProviders(second)
    expect(data.map(({ source, status }: Record<string, string>) => [source, status])).toEqual([
      ['environment', 'up'],
      ['console', 'unused'],
    ])
    expect(await chat(second, 'large')).toEqual([200, 'gateway'])
    await second.close()
  })
})

describe('testing a provider', () => {
  test('lists the models with unsaved settings, and does not save the settings', async () => {
    const upstream = await shareUpstream()
    await listModels(upstream, 'large', 'text-embedding-3')
    const app = await startAdminApp()
    const { body } = await testOnly(app, { name: 'near', base_url: upstream.url, api_key: API_KEY })
    expect(body).toEqual({
      ...{ ok: true, latency_ms: expect.any(Number), problem: null, model_count: 2 },
      models: [
        { id: 'large', chats: true },
        { id: 'text-embedding-3', chats: false },
      ],
    })
    expect(await listAuthorizations(upstream, '/v1/models')).toEqual([`Bearer ${API_KEY}`])
    expect((await readProviders(app)).data).toHaveLength(1)
  })

  test.each([
    ['{{up:status 404}}', /\/v1\/models does not exist \(status 404\)/],
    ['{{up:body {"hello": 1}}}', /did not return a model list/],
    ['{{up:type text/html}}{{up:body <p>hello</p>}}', /did not return a model list/],
    ['{{up:status 500}}{{up:message internal details}}', /^The provider responded with status 500$/],
    ['{{up:reset}}', /^The connection to 127\.0\.0\.1:\d+ failed/],
  ])('explains the failure if the server answers %s', async (script, problem) => {
    const upstream = await shareUpstream()
    await upstream.script('/v1/models', script)
    const app = await startAdminApp()
    const { status, body } = await testOnly(app, { name: 'near', base_url: upstream.url })
    expect([status, body.ok, body.problem]).toEqual([200, false, expect.stringMatching(problem)])
  })

  test('explains that no server is listening at the address', async () => {
    const app = await startAdminApp()
    for (const kind of ['gateway', 'local']) {
      const { body } = await testOnly(app, { name: 'near', kind, base_url: 'http://127.0.0.1:9/v1' })
      expect(body.problem).toBe(
        'No server is listening at 127.0.0.1:9. Start the server, or correct the base URL.',
      )
    }
  })
})

describe('a provider operation is rejected', () => {
  test.each([
    [{ name: 'Near' }, 400, 'name', 'must be 1 to 32 lowercase letters'],
    [{ name: 'agent' }, 400, 'name', 'is reserved'],
    [{ name: 'mock' }, 409, 'name', "the server's environment already has a provider 'mock'"],
    [{ base_url: 'ftp://example.org' }, 400, 'base_url', 'must be an http or https URL'],
    [{ base_url: 'https://key@example.org/v1' }, 400, 'base_url', 'without credentials'],
    [
      { base_url: 'http://169.254.169.254/v1' },
      400,
      'base_url',
      'must not be a link-local or metadata address',
    ],
    [
      { base_url: 'http://[fd00:ec2::254]/v1' },
      400,
      'base_url',
      'must not be a link-local or metadata address',
    ],
    [{ base_url: `https://example.org/${'x'.repeat(2_000)}` }, 400, 'base_url', 'at most 2000 characters'],
    [{ kind: 'mock' }, 400, 'kind', 'must be gateway or local'],
    [{ api_key: 'a key' }, 400, 'api_key', 'visible ASCII characters without spaces'],
    [{ api_key: '' }, 400, 'api_key', '1 to 1000'],
  ])('with the fields %j', async (fields, status, param, problem) => {
    const app = await startAdminApp()
    const answer = await add(app, { name: 'near', base_url: 'http://127.0.0.1:9/v1', ...fields })
    expect(failureOf(answer)).toEqual([status, param, expect.stringContaining(`${param}: `)])
    expect(answer.body.error.message).toContain(problem)
    expect((await readProviders(app)).data).toHaveLength(1)
  })

  test('if the name is taken', async () => {
    const app = await startAdminApp()
    const body = { name: 'near', base_url: 'http://127.0.0.1:9/v1' }
    await add(app, body)
    expect(failureOf(await add(app, body))).toEqual([
      409,
      'name',
      "name: the console already has a provider 'near'; choose another name",
    ])
  })

  test('for a private address if PARLEY_CONSOLE_PROVIDERS is public', async () => {
    const upstream = await shareUpstream()
    const app = await startAdminApp({ PARLEY_CONSOLE_PROVIDERS: 'public' })
    const port = new URL(upstream.origin).port
    for (const host of [
      '127.0.0.1',
      'localhost',
      '10.0.0.1',
      '192.168.1.1',
      '[::1]',
      '[fd00::1]',
      '100.64.0.1',
    ]) {
      const answer = await add(app, { name: 'near', base_url: `http://${host}:${port}/v1` })
      expect(failureOf(answer).slice(0, 2)).toEqual([400, 'base_url'])
    }
    expect(await upstream.listRequests()).toEqual([])
  })

  test('if PARLEY_CONSOLE_PROVIDERS is off, except for the list of providers', async () => {
    const app = await startAdminApp({ PARLEY_CONSOLE_PROVIDERS: 'off' })
    const body = { name: 'near', base_url: 'https://example.org/v1' }
    expect((await readProviders(app)).allowed).toBe('off')
    for (const answer of [await add(app, body), await testOnly(app, body)])
      expect([answer.status, answer.body.error.code]).toEqual([403, 'insufficient_permissions'])
  })

  test('for callers who are not administrators', async () => {
    const app = await startAdminApp()
    const path = '/v1/manager/admin/providers'
    const body = { name: 'near', base_url: 'https://example.org/v1' }
    for (const options of [{}, asUser('ada@example.org')]) {
      expect((await app.call('GET', path, options)).status).toBe(403)
      expect((await app.call('POST', path, { ...options, body })).status).toBe(403)
      expect((await app.call('POST', `${path}/test`, { ...options, body })).status).toBe(403)
      expect((await app.call('PUT', `${path}/near`, { ...options, body })).status).toBe(403)
      expect((await app.call('DELETE', `${path}/near`, options)).status).toBe(403)
    }
  })
})

test('the audit log records each change and test of a provider, without API keys', async () => {
  const upstream = await shareUpstream()
  await listModels(upstream, 'large')
  const app = await startAdminApp()
  const fields = { base_url: upstream.url, api_key: API_KEY }
  await readProviders(app)
  const rows = await auditRowsOf(app, async () => {
    await testOnly(app, { name: 'near', ...fields })
    await add(app, { name: 'near', ...fields })
    await asAdmin(app, 'PUT', '/providers/near', { body: { base_url: upstream.url } })
    await asAdmin(app, 'DELETE', '/providers/near')
  })
  expect(
    rows.map(({ action, target_kind, target_id, actor }) => [action, target_kind, target_id, actor]),
  ).toEqual(
    ['provider.test', 'provider.create', 'provider.update', 'provider.delete'].map((action) => [
      ...[action, 'provider', 'near', admin],
    ]),
  )
  const details = rows.map(({ details: text }) => JSON.parse(text))
  expect(details).toMatchObject([
    { succeeded: true, is_draft: true, base_url: upstream.url },
    { api_key: 'set' },
    { api_key: 'kept' },
    { base_url: upstream.url },
  ])
  expect(JSON.stringify(rows)).not.toContain(API_KEY)
  const { body } = await asAdmin(app, 'GET', '/audit?target=near')
  expect(body.data).toHaveLength(4)
})
