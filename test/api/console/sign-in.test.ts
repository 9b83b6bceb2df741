/** Tests how an administrator signs in to the console without a proxy. */
import { describe, expect, test } from 'vitest'
import { serviceActor } from '../../../src/identity/audit.ts'
import { createSignInLink } from '../../../src/identity/sessions.ts'
import { type Answer, startApp, type TestApp } from '../../support/app.ts'
import { asUser, behindProxy, consoleHeaders } from '../../support/console.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import { callProcedure } from '../../support/rpc.ts'

const linkOf = async ({ service }: TestApp) => (await createSignInLink(service.deps, serviceActor)).text

function signIn(
  app: TestApp,
  link: string,
  headers: Record<string, string> = consoleHeaders,
): Promise<Answer> {
  return app.call('POST', '/v1/manager/sign-in', { key: null, headers, body: { link } })
}

/** Returns the session cookie as a browser would send it. */
function cookieOf({ headers }: Answer): string {
  return headers.getSetCookie()[0]?.split(';')[0] ?? ''
}

const withSession = (Cookie: string, body?: unknown) => ({
  key: null,
  headers: { ...consoleHeaders, Cookie },
  ...(body === undefined ? {} : { body }),
})

describe('a one-time sign-in link', () => {
  test('signs in the local administrator, who owns the first parent key', async () => {
    const app = await startApp()
    const { agent_id } = await app.createAgent()
    const answer = await signIn(app, await linkOf(app))
    expect([answer.status, answer.body]).toEqual([200, { signed_in: true }])
    expect(answer.headers.getSetCookie()).toEqual([
      expect.stringMatching(
        /^parley_session=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict; Max-Age=2592000$/,
      ),
    ])
    const me = await app.call('GET', '/v1/manager/me', withSession(cookieOf(answer)))
    expect(me.body).toMatchObject({
      user: { email: 'administrator', name: 'Administrator' },
      is_administrator: true,
      signed_in_by: 'link',
      keys: [{ name: 'first', is_automatic: false, is_active: true }],
      parent_key: app.key.slice(0, 16),
      agents: 1,
    })
    const agents = await app.call('GET', '/v1/manager/agents', withSession(cookieOf(answer)))
    expect(agents.body.data[0].id).toBe(agent_id)
    const users = await app.call('GET', '/v1/manager/admin/users', withSession(cookieOf(answer)))
    expect(users.body.data).toHaveLength(1)
  })

  test('also works over tRPC', async () => {
    const app = await startApp()
    const input = { link: await linkOf(app) }
    const answer = await callProcedure(app, 'manager.signIn', input, { key: null, headers: consoleHeaders })
    expect([answer.status, answer.body.result.data.json]).toEqual([200, { signed_in: true }])
    const me = await callProcedure(app, 'manager.me', undefined, withSession(cookieOf(answer)))
    expect(me.body.result.data.json.signed_in_by).toBe('link')
  })

  test('works only once, even if it is used concurrently', async () => {
    const app = await startApp()
    const link = await linkOf(app)
    const answers = await Promise.all([1, 2, 3, 4].map(() => signIn(app, link)))
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 401, 401, 401])
    expect(answers.find(({ status }) => status === 401)?.body.error).toMatchObject({
      code: 'invalid_api_key',
      message: 'This sign-in link has expired or was already used.',
    })
  })

  test('expires after 15 minutes', async () => {
    const clock = createFakeClock()
    const app = await startApp({}, { clock })
    const [early, late] = [await linkOf(app), await linkOf(app)]
    clock.advance(899)
    expect((await signIn(app, early)).status).toBe(200)
    clock.advance(1)
    expect((await signIn(app, late)).status).toBe(401)
  })

  test('is rejected if the request comes from another site or from a form', async () => {
    const app = await startApp()
    const link = await linkOf(app)
    const elsewhere = { 'Sec-Fetch-Site': 'cross-site', 'X-Requested-With': 'fetch' }
    expect((await signIn(app, link, elsewhere)).status).toBe(403)
    expect((await signIn(app, link, { 'Sec-Fetch-Site': 'same-origin' })).status).toBe(403)
    expect((await signIn(app, link)).status).toBe(200)
  })

  test.each([[{}], [{ link: 7 }], [{ link: 'x'.repeat(201) }], [{ link: 'unknown' }]])(
    'is rejected if the request body is %j',
    async (body) => {
      const app = await startApp()
      const answer = await app.call('POST', '/v1/manager/sign-in', {
        key: null,
        headers: consoleHeaders,
        body,
      })
      expect(answer.status).toBe('link' in body && body.link === 'unknown' ? 401 : 400)
    },
  )

  test.each(['REST', 'tRPC'])(
    'counts as a failed authentication if it is invalid and sent over %s',
    async (api) => {
      const app = await startApp({ PARLEY_RATE_LIMIT_AUTH_FAILURES: '2' })
      const options = { key: null, headers: consoleHeaders }
      const attempt = (link: string) =>
        api === 'REST' ? signIn(app, link) : callProcedure(app, 'manager.signIn', { link }, options)
      expect([(await attempt('wrong')).status, (await attempt('wrong')).status]).toEqual([401, 401])
      const refused = await attempt('wrong')
      expect(refused.status).toBe(429)
      expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
      expect((await app.call('GET', '/v1/models', { key: null })).status).toBe(429)
      // Failed attempts from the same address must not lock out a user with a valid link.
      expect((await attempt(await linkOf(app))).status).toBe(200)
    },
  )

  test.each(['/v1/manager/sign-in', '/trpc/manager.signIn'])(
    'is rejected with 413 at %s if the body exceeds 16 KiB',
    async (path) => {
      const app = await startApp()
      const send = (size: number) =>
        app.call('POST', path, { key: null, headers: consoleHeaders, body: { link: 'x'.repeat(size) } })
      expect((await send(16_384)).status).toBe(413)
      expect((await send(16_000)).status).toBe(400)
    },
  )

  test('has no effect if a proxy provides the identity', async () => {
    const app = await startApp(behindProxy)
    const answer = await signIn(app, await linkOf(app))
    expect((await app.call('GET', '/v1/manager/me', withSession(cookieOf(answer)))).status).toBe(401)
    const me = await app.call('GET', '/v1/manager/me', asUser('ada@example.org'))
    expect(me.body).toMatchObject({ signed_in_by: 'proxy', is_administrator: false })
  })
})

describe('a console session', () => {
  async function startSession(env: Record<string, string> = {}, clock = createFakeClock()) {
    const app = await startApp(env, { clock })
    const cookie = cookieOf(await signIn(app, await linkOf(app)))
    return { app, cookie, clock }
  }
  const statusOf = async (app: TestApp, cookie: string) =>
    (await app.call('GET', '/v1/manager/me', withSession(cookie))).status

  test('lasts 30 days', async () => {
    const { app, cookie, clock } = await startSession()
    clock.advance(30 * 86_400 - 1)
    expect(await statusOf(app, cookie)).toBe(200)
    clock.advance(3)
    expect(await statusOf(app, cookie)).toBe(401)
  })

  test('ends immediately when its user signs out and does not affect other sessions', async () => {
    const { app, cookie } = await startSession()
    const other = cookieOf(await signIn(app, await linkOf(app)))
    const answer = await app.call('POST', '/v1/manager/sign-out', withSession(cookie, {}))
    expect([answer.status, answer.body]).toEqual([200, { signed_out: true }])
    expect(answer.headers.getSetCookie()[0]).toMatch(/^parley_session=; .*Max-Age=0$/)
    expect([await statusOf(app, cookie), await statusOf(app, other)]).toEqual([401, 200])
  })

  test("rejects requests from other sites and accepts requests from the console's origin", async () => {
    const { app, cookie } = await startSession()
    const { host } = new URL(app.url)
    const cases: [headers: Record<string, string>, status: number][] = [
      [{ Origin: `http://${host}`, 'X-Requested-With': 'fetch' }, 201],
      [{ Origin: `http://${host}` }, 403],
      [{ Origin: 'http://127.0.0.1:1', 'X-Requested-With': 'fetch' }, 403],
      [{ Origin: 'https://evil.example', 'X-Requested-With': 'fetch' }, 403],
      [{ Origin: 'null', 'X-Requested-With': 'fetch' }, 403],
      [{ 'X-Requested-With': 'fetch' }, 403],
    ]
    for (const [headers, status] of cases) {
      const options = {
        key: null,
        headers: { ...headers, Cookie: cookie },
        body: { yaml: 'name: A\ninstructions: B\n' },
      }
      expect([headers, (await app.call('POST', '/v1/manager/agents', options)).status]).toEqual([
        headers,
        status,
      ])
    }
  })

  test('is rejected if the request has an unknown cookie, two session cookies or an additional key', async () => {
    const { app, cookie } = await startSession()
    expect(await statusOf(app, 'parley_session=unknown')).toBe(401)
    expect(await statusOf(app, `${cookie}; parley_session=unknown`)).toBe(401)
    expect(await statusOf(app, `theme=dark; ${cookie}`)).toBe(200)
    const bearer = { key: 'svc_wrong', headers: { Cookie: cookie } }
    expect((await app.call('GET', '/v1/manager/me', bearer)).status).toBe(401)
    // Routes that other sites may call accept only keys.
    expect((await app.call('GET', '/v1/agents', withSession(cookie))).status).toBe(401)
  })

  test('uses a __Host- cookie if the public URL is HTTPS', async () => {
    const app = await startApp({ PARLEY_PUBLIC_URL: 'https://chat.example.org' })
    const answer = await signIn(app, await linkOf(app))
    expect(answer.headers.getSetCookie()[0]).toMatch(/^__Host-parley_session=[\w-]{43}; Path=\/; .*; Secure$/)
    expect(await statusOf(app, cookieOf(answer))).toBe(200)
  })

  test('continues with a new key when its key is revoked', async () => {
    const { app, cookie } = await startSession()
    await app.call('POST', `/v1/manager/admin/keys/${app.key.slice(4, 16)}/revoke`, withSession(cookie, {}))
    const { body } = await app.call('GET', '/v1/manager/me', withSession(cookie))
    expect(body.keys).toEqual([expect.objectContaining({ is_automatic: true, is_active: true })])
  })

  test('is recorded in the audit log without its cookie', async () => {
    const { app, cookie } = await startSession()
    const { body } = await app.call('GET', '/v1/manager/admin/audit', withSession(cookie))
    const seen = body.data.map(({ action, actor_kind, actor }: Record<string, string>) => [
      action,
      actor_kind,
      actor,
    ])
    expect(seen).toEqual(
      expect.arrayContaining([
        ['session.offer', 'service', 'service'],
        ['session.begin', 'user', 'administrator'],
        ['key.claim', 'user', 'administrator'],
      ]),
    )
    expect(JSON.stringify(body)).not.toContain(cookie.split('=')[1])
  })
})
