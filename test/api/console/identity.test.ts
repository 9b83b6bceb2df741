/** Tests which identity headers the service trusts and how it reads them. */
import { networkInterfaces } from 'node:os'
import { describe, expect, test } from 'vitest'
import { type Answer, startApp, type TestApp } from '../../support/app.ts'
import { asUser, behindProxy, consoleHeaders } from '../../support/console.ts'
import { exchange, parseRawResponse, toRequest } from '../../support/raw-connection.ts'
import { callProcedure } from '../../support/rpc.ts'

const ada = 'ada@example.org'
const secret = 'Kw3pQ9+vXb/2nRtYc7LhGz5sJdM8eUfA'
const me = (app: TestApp, headers: Record<string, string>): Promise<Answer> =>
  app.call('GET', '/v1/manager/me', { key: null, headers })

const hasIPv6 = Object.values(networkInterfaces()).some((all) => all?.some(({ family }) => family === 'IPv6'))

/** Sends a raw request from the local address `from`. */
async function ask(app: TestApp, line: string, headers: readonly string[], from?: string) {
  const all = ['Host: x', 'Connection: close', ...headers]
  return parseRawResponse(await exchange(app, toRequest(line, all), from))
}

describe('an identity header', () => {
  const cases: [env: Record<string, string>, from: string, secret: string | undefined, status: number][] = [
    [{ PARLEY_TRUSTED_PROXIES: '127.0.0.1' }, '127.0.0.1', undefined, 200],
    [{ PARLEY_TRUSTED_PROXIES: '127.0.0.1' }, '127.0.0.2', undefined, 401],
    [{ PARLEY_TRUSTED_PROXIES: '127.0.0.2' }, '127.0.0.1', undefined, 401],
    [{ PARLEY_TRUSTED_PROXIES: '127.0.0.2' }, '127.0.0.2', undefined, 200],
    [{ PARLEY_TRUSTED_PROXIES: '127.0.0.2/31,10.0.0.0/8' }, '127.0.0.3', undefined, 200],
    [{ PARLEY_TRUSTED_PROXIES: '10.0.0.0/8,::1' }, '127.0.0.1', undefined, 401],
    [{ PARLEY_PROXY_SECRET: secret }, '127.0.0.2', secret, 200],
    [{ PARLEY_PROXY_SECRET: secret }, '127.0.0.2', undefined, 401],
    [{ PARLEY_PROXY_SECRET: secret }, '127.0.0.2', `${secret}x`, 401],
    [{ PARLEY_PROXY_SECRET: secret }, '127.0.0.2', secret.toLowerCase(), 401],
    [{ PARLEY_PROXY_SECRET: secret, PARLEY_TRUSTED_PROXIES: '127.0.0.1' }, '127.0.0.1', secret, 200],
    [{ PARLEY_PROXY_SECRET: secret, PARLEY_TRUSTED_PROXIES: '127.0.0.1' }, '127.0.0.2', secret, 401],
    [{ PARLEY_PROXY_SECRET: secret, PARLEY_TRUSTED_PROXIES: '127.0.0.1' }, '127.0.0.1', undefined, 401],
  ]
  test.each(cases)(
    'with the settings %j, the sender %s and the secret %s results in status %i',
    async (env, from, sent, status) => {
      const app = await startApp({ PARLEY_TRUST_FORWARDED_AUTH: 'true', ...env })
      const headers = [`X-Email: ${ada}`, ...(sent === undefined ? [] : [`X-Proxy-Secret: ${sent}`])]
      for (const path of ['/v1/manager/me', '/v1/manager/agents', '/trpc/manager.me?input={"json":{}}']) {
        expect((await ask(app, `GET ${path}`, headers, from)).status).toBe(status)
      }
    },
  )

  test('is trusted or ignored according to the socket address, not a forwarded address', async () => {
    const app = await startApp({ ...behindProxy, PARLEY_TRUSTED_PROXIES: '127.0.0.2' })
    const forged = ['X-Forwarded-For: 127.0.0.2', 'X-Real-IP: 127.0.0.2', 'Forwarded: for=127.0.0.2']
    expect((await ask(app, 'GET /v1/manager/me', [`X-Email: ${ada}`, ...forged])).status).toBe(401)
    const honest = [`X-Email: ${ada}`, 'X-Forwarded-For: 203.0.113.9']
    expect((await ask(app, 'GET /v1/manager/me', honest, '127.0.0.2')).status).toBe(200)
  })

  test.runIf(hasIPv6)('is also trusted on a dual-stack socket', async () => {
    const app = await startApp({ ...behindProxy, HOST: '::' })
    const local = { url: app.url.replace('[::]', '127.0.0.1') }
    const request = toRequest('GET /v1/manager/me', ['Host: x', 'Connection: close', `X-Email: ${ada}`])
    expect(parseRawResponse(await exchange(local, request)).status).toBe(200)
    expect(parseRawResponse(await exchange(local, request, '127.0.0.2')).status).toBe(401)
  })

  test('is ignored by default', async () => {
    const app = await startApp({ PARLEY_TRUSTED_PROXIES: '127.0.0.1' })
    expect((await me(app, { 'X-Email': ada })).status).toBe(401)
  })

  test('is trusted only on console routes', async () => {
    const app = await startApp(behindProxy)
    const { agent_id: id } = await app.createAgent()
    const elsewhere = ['agents', `agents/${id}`, 'models', 'files', 'usage', 'keys/validate', 'managerx/me']
    for (const path of elsewhere) {
      const { status, body } = await app.call('GET', `/v1/${path}`, asUser(ada))
      expect([path, status]).toEqual([path, path === 'managerx/me' ? 404 : 401])
      if (status === 401) expect(body.code ?? body.error.code).toBe('missing_api_key')
    }
    const chat = asUser(ada, { body: { model: 'mock', messages: [{ role: 'user', content: 'hi' }] } })
    expect((await app.call('POST', '/v1/chat/completions', chat)).status).toBe(401)
    expect((await app.call('POST', '/v1/keys/rotate', asUser(ada))).status).toBe(401)
  })

  test('is ignored if the request has a key, even an invalid one', async () => {
    const app = await startApp(behindProxy)
    const { agent_key } = await app.createAgent()
    const asKey = (key: string) => app.call('GET', '/v1/manager/me', { key, headers: { 'X-Email': ada } })
    expect((await asKey(app.key)).body).toMatchObject({ user: null, parent_key: app.key.slice(0, 16) })
    expect(await asKey('svc_nonsense')).toMatchObject({
      status: 401,
      body: { error: { code: 'invalid_api_key' } },
    })
    expect((await asKey(agent_key)).status).toBe(403)
    const empty = ['Authorization: Bearer ', `X-Email: ${ada}`]
    expect((await ask(app, 'GET /v1/manager/me', empty)).status).toBe(401)
    const basic = ['Authorization: Basic YTpi', `X-Email: ${ada}`]
    expect((await ask(app, 'GET /v1/manager/me', basic)).status).toBe(200)
  })

  test('is required: a request without it, or with an empty one, returns 401', async () => {
    const app = await startApp(behindProxy)
    for (const headers of [['X-User: ada'], ['X-Email:'], ['X-Email:  ', 'X-User: ada']]) {
      const { status, body } = await ask(app, 'GET /v1/manager/me', headers)
      expect({ status, code: body.error.code }).toEqual({ status: 401, code: 'missing_api_key' })
    }
    expect((await app.call('GET', '/v1/manager/agents', { key: null })).body.code).toBe('missing_api_key')
  })

  test('may have a name that the operator configures', async () => {
    const app = await startApp({ ...behindProxy, PARLEY_HEADER_EMAIL: 'X-Auth-Request-Email' })
    expect((await me(app, { 'X-Email': ada })).status).toBe(401)
    expect((await me(app, { 'X-Auth-Request-Email': ada })).body.user.email).toBe(ada)
  })
})

describe('identity headers', () => {
  const long = `${'a'.repeat(309)}@example.org`
  const cases: [what: string, headers: readonly string[], name: string][] = [
    ['two email headers', [`X-Email: ${ada}`, 'X-Email: eve@example.org'], 'x-email'],
    ['the same email header twice', [`X-Email: ${ada}`, `x-email: ${ada}`], 'x-email'],
    ['an empty and a non-empty email header', ['X-Email:', `X-Email: ${ada}`], 'x-email'],
    ['two user headers', [`X-Email: ${ada}`, 'X-User: ada', 'X-User: eve'], 'x-user'],
    ['two groups headers', [`X-Email: ${ada}`, 'X-Groups: a', 'X-Groups: b'], 'x-groups'],
    ['a list of addresses in one header', [`X-Email: ${ada}, eve@example.org`], 'x-email'],
    ['a comma in a name', [`X-Email: ${ada}`, 'X-User-Last-Name: Lovelace, Countess'], 'x-user-last-name'],
    ['an underscore in the header name', ['X_Email: eve@example.org'], 'x-email'],
    [
      'one header name with a hyphen and one with an underscore',
      [`X-Email: ${ada}`, 'x_email: eve@example.org'],
      'x-email',
    ],
    [
      'an underscore and a hyphen in one header name',
      [`X-Email: ${ada}`, 'X-User_First-Name: Eve'],
      'x-user-first-name',
    ],
    ['a value without an at sign', ['X-Email: ada'], 'x-email'],
    ['an address without a local part', ['X-Email: @example.org'], 'x-email'],
    ['an address with two at signs', ['X-Email: ada@eve@example.org'], 'x-email'],
    ['an address with a space', ['X-Email: ada lovelace@example.org'], 'x-email'],
    ['a display name', ['X-Email: Ada <ada@example.org>'], 'x-email'],
    ['an address with an empty domain label', ['X-Email: ada@example..org'], 'x-email'],
    ['an address of 321 characters', [`X-Email: ${long}`], 'x-email'],
    ['a user name of 321 characters', [`X-Email: ${ada}`, `X-User: ${'a'.repeat(321)}`], 'x-user'],
    ['a user name with a tab', [`X-Email: ${ada}`, 'X-User: a\tb'], 'x-user'],
    ['a user name with a control character', [`X-Email: ${ada}`, 'X-User: a\u0085b'], 'x-user'],
    ['groups with a line separator', [`X-Email: ${ada}`, 'X-Groups: a\u2028b'], 'x-groups'],
    ['an address with an invisible space', ['X-Email: ada\u200b@example.org'], 'x-email'],
    ['an address with a letter that looks like a k', ['X-Email: \u212aim@example.org'], 'x-email'],
  ]
  test.each(cases)(
    'are rejected for %s, with an error that names the header',
    async (_what, headers, name) => {
      const app = await startApp(behindProxy)
      const chat = await ask(app, 'GET /v1/manager/me', headers)
      const message = expect.stringContaining(name)
      expect(chat).toMatchObject({
        status: 400,
        body: { error: { message, param: name, code: 'invalid_identity' } },
      })
      const agents = await ask(app, 'GET /v1/manager/agents', headers)
      expect(agents).toEqual({ status: 400, body: { error: message, code: 'invalid_identity' } })
      const rpc = await ask(app, 'GET /trpc/manager.me?input={"json":{}}', headers)
      expect(rpc).toMatchObject({ status: 400, body: { error: { json: { data: { param: name } } } } })
      // From an untrusted address, the service ignores these headers instead of rejecting them.
      expect((await ask(app, 'GET /v1/manager/me', headers, '127.0.0.2')).status).toBe(401)
      expect(await app.service.deps.db.selectFrom('users').selectAll().execute()).toEqual([])
    },
  )

  test('may contain the longest allowed email address and many groups', async () => {
    const app = await startApp(behindProxy)
    const email = `${'a'.repeat(308)}@example.org`
    const groups = Array.from({ length: 200 }, (_, index) => `group-${index}`)
    const { status, body } = await me(app, { 'X-Email': email, 'X-Groups': groups.join(', ') })
    expect({ status, email: body.user.email, groups: body.user.groups }).toEqual({
      status: 200,
      email,
      groups,
    })
  })
})

describe('the user identified by the identity headers', () => {
  test('is the same for an email in any letter case and Unicode normalization', async () => {
    const app = await startApp(behindProxy)
    const utf8 = (text: string) => Buffer.from(text).toString('latin1')
    const ids = new Set<string>()
    for (const email of ['zoë@example.org', 'ZOË@Example.org', 'zoe\u0308@example.org']) {
      ids.add((await me(app, { 'X-Email': utf8(email) })).body.user.id)
    }
    expect(ids.size).toBe(1)
    expect((await me(app, { 'X-Email': 'zoe@example.org' })).body.user.id).not.toBe([...ids][0])
  })

  const names: [headers: Record<string, string>, name: string, username: string | null][] = [
    [{}, ada, null],
    [{ 'X-User': 'ada' }, 'ada', 'ada'],
    [{ 'X-User': 'u-815', 'X-Preferred-Username': 'ada' }, 'ada', 'ada'],
    [{ 'X-User-First-Name': 'Ada' }, 'Ada', null],
    [{ 'X-User-First-Name': 'Ada', 'X-User-Last-Name': 'Lovelace', 'X-User': 'ada' }, 'Ada Lovelace', 'ada'],
    [{ 'X-User-First-Name': Buffer.from('Zoë').toString('latin1') }, 'Zoë', null],
  ]
  test.each(names)('has the name from the headers: %j gives %s', async (headers, name, username) => {
    const app = await startApp(behindProxy)
    expect((await me(app, { 'X-Email': ada, ...headers })).body.user).toMatchObject({ name, username })
  })

  test('is the same over tRPC', async () => {
    const app = await startApp(behindProxy)
    const typed = await callProcedure(app, 'manager.me', {}, asUser(ada))
    expect(typed.body.result.data.json).toEqual((await me(app, { 'X-Email': ada, ...consoleHeaders })).body)
  })
})
