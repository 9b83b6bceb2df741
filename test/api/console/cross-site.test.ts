/** Tests that another site cannot send requests through a signed-in user's browser. */
import { describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../support/app.ts'
import { asUser, behindProxy, consoleHeaders } from '../../support/console.ts'
import { callProcedure } from '../../support/rpc.ts'

const ada = 'ada@example.org'
const yaml = 'name: Guide\ninstructions: Help.\n'
const publicUrl = 'https://chat.example.org/parley'
const own = 'https://chat.example.org'
const scripted = { 'X-Requested-With': 'fetch' }

type Headers = Record<string, string>

const from = (headers: Headers, body?: unknown) => ({
  key: null,
  headers: { 'X-Email': ada, ...headers },
  ...(body === undefined ? {} : { body }),
})

async function countAgents(app: TestApp): Promise<number> {
  return (await app.call('GET', '/v1/manager/me', asUser(ada))).body.agents
}

describe('the cross-site check of a request that changes data', () => {
  const cases: [what: string, isPublic: boolean, headers: Headers, passes: boolean][] = [
    ['the console', false, { ...scripted, 'Sec-Fetch-Site': 'same-origin' }, true],
    ['the console', true, { ...scripted, 'Sec-Fetch-Site': 'same-origin' }, true],
    ['the console in an old browser', true, { ...scripted, Origin: own }, true],
    ['an old browser, without a public URL to compare with', false, { ...scripted, Origin: own }, false],
    ['an origin that matches the Host header', false, { ...scripted, Origin: 'http://127.0.0.1' }, false],
    ['another origin', true, { ...scripted, Origin: 'https://evil.example' }, false],
    ['another port', true, { ...scripted, Origin: 'https://chat.example.org:8443' }, false],
    ['the same host over plain HTTP', true, { ...scripted, Origin: 'http://chat.example.org' }, false],
    [
      'a host with the same prefix',
      true,
      { ...scripted, Origin: 'https://chat.example.org.evil.example' },
      false,
    ],
    ['an opaque origin', true, { ...scripted, Origin: 'null' }, false],
    ['a same-site page', true, { ...scripted, 'Sec-Fetch-Site': 'same-site' }, false],
    ['another site', true, { ...scripted, 'Sec-Fetch-Site': 'cross-site' }, false],
    ['the address bar', true, { ...scripted, 'Sec-Fetch-Site': 'none' }, false],
    ['a client that is not a browser', true, scripted, false],
    ['a form of the console', true, { Origin: own, 'Sec-Fetch-Site': 'same-origin' }, false],
    ['a client without any of the headers', true, {}, false],
  ]
  test.each(cases)(
    'accepts only requests from the console: %s (public URL set: %s)',
    async (_what, isPublic, headers, passes) => {
      const app = await startApp({ ...behindProxy, ...(isPublic ? { PARLEY_PUBLIC_URL: publicUrl } : {}) })
      const rest = await app.call('POST', '/v1/manager/agents', from(headers, { yaml }))
      const typed = await callProcedure(app, 'agents.create', { yaml }, from(headers))
      const choice = from(headers, { parent_key_id: 'none' })
      const key = await app.call('POST', '/v1/manager/active-key', choice)
      expect([rest.status, typed.status, key.status]).toEqual(passes ? [201, 200, 404] : [403, 403, 403])
      expect(await countAgents(app)).toBe(passes ? 2 : 0)
      if (passes) return
      expect(rest.body).toEqual({ error: expect.any(String), code: 'insufficient_permissions' })
      expect(key.body.error).toMatchObject({ type: 'permission_error', code: 'insufficient_permissions' })
      expect(typed.body.error.json.data.code).toBe('insufficient_permissions')
    },
  )

  test('applies to every method that changes data, with or without a body', async () => {
    const app = await startApp(behindProxy)
    const created = await app.call('POST', '/v1/manager/agents', asUser(ada, { body: { yaml } }))
    const path = `/v1/manager/agents/${created.body.agent_id}`
    const forged = from({ 'Sec-Fetch-Site': 'cross-site' })
    expect((await app.call('DELETE', path, forged)).status).toBe(403)
    expect((await app.call('POST', `${path}/rotate-key`, forged)).status).toBe(403)
    expect((await app.call('PUT', path, { ...forged, body: { yaml } })).status).toBe(403)
    expect((await app.call('DELETE', path, asUser(ada))).status).toBe(200)
  })

  test('accepts only JSON bodies, even for definitions', async () => {
    const app = await startApp(behindProxy)
    const forms = [
      'text/plain',
      'application/x-www-form-urlencoded',
      'multipart/form-data; boundary=x',
      'application/yaml',
      'text/markdown',
    ]
    for (const type of forms) {
      const options = asUser(ada, { body: yaml, headers: { 'Content-Type': type } })
      expect((await app.call('POST', '/v1/manager/agents', options)).status).toBe(415)
      expect((await app.call('POST', '/v1/manager/active-key', options)).status).toBe(415)
      expect((await app.call('POST', '/trpc/agents.create', options)).status).toBe(415)
    }
    const bare = asUser(ada, { body: '{}', headers: { 'Content-Type': '' } })
    expect((await app.call('POST', '/v1/manager/active-key', bare)).status).toBe(415)
    const charset = { headers: { 'Content-Type': 'application/json; charset=utf-8' } }
    const json = asUser(ada, { ...charset, body: JSON.stringify({ yaml }) })
    expect((await app.call('POST', '/v1/manager/agents', json)).status).toBe(201)
    expect(await countAgents(app)).toBe(1)
  })

  test('does not apply to a request with a key, from any origin and in any format', async () => {
    const app = await startApp(behindProxy)
    const headers = { Origin: 'https://evil.example', 'Content-Type': 'application/yaml' }
    expect((await app.call('POST', '/v1/manager/agents', { body: yaml, headers })).status).toBe(201)
    const typed = { headers: { Origin: 'https://evil.example', 'Sec-Fetch-Site': 'cross-site' } }
    expect((await callProcedure(app, 'agents.create', { yaml }, typed)).status).toBe(200)
  })

  test('counts rejected requests toward the rate limit', async () => {
    const app = await startApp({ ...behindProxy, PARLEY_RATE_LIMIT_PARENT: '2' })
    const forged = from({ ...scripted, 'Sec-Fetch-Site': 'cross-site' }, { yaml })
    const statuses = []
    for (let call = 0; call < 3; call++) {
      statuses.push((await app.call('POST', '/v1/manager/agents', forged)).status)
    }
    expect(statuses).toEqual([403, 403, 429])
  })
})

describe('a request that only reads data', () => {
  test('requires only a user identity', async () => {
    const app = await startApp(behindProxy)
    const foreign = from({ Origin: 'https://evil.example', 'Sec-Fetch-Site': 'cross-site' })
    for (const path of ['/v1/manager/me', '/v1/manager/agents']) {
      expect((await app.call('GET', path, foreign)).status).toBe(200)
      expect((await app.call('HEAD', path, foreign)).status).toBe(200)
    }
    expect((await callProcedure(app, 'manager.me', {}, foreign)).status).toBe(200)
  })

  test('returns a response that other origins cannot read', async () => {
    const app = await startApp({ ...behindProxy, PARLEY_PUBLIC_URL: publicUrl })
    for (const path of ['/v1/manager/me', '/v1/manager/agents', '/v1/manager/none', '/trpc/manager.me']) {
      const foreign = from({ Origin: 'https://evil.example', ...consoleHeaders })
      const { headers } = await app.call('GET', path, foreign)
      expect([...headers.keys()].filter((name) => name.startsWith('access-control-'))).toEqual([])
      const preflight = await app.call('OPTIONS', path, {
        key: null,
        headers: { Origin: 'https://evil.example', 'Access-Control-Request-Method': 'POST' },
      })
      expect(preflight.status).toBeGreaterThanOrEqual(400)
      expect(preflight.headers.has('access-control-allow-origin')).toBe(false)
    }
  })
})
