/** Tests the rate limit on failed authentications, which the server counts for each client address. */
import { describe, expect, test } from 'vitest'
import { type Answer, startApp, type TestApp } from '../../support/app.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import { callProcedure } from '../../support/rpc.ts'

const unknown = `svc_${'0'.repeat(61)}`
const trusted = '127.0.0.1/32,10.0.0.0/8,fd00::/8'

async function start(limit: number, env: Readonly<Record<string, string>> = {}) {
  const clock = createFakeClock()
  const app = await startApp({ PARLEY_RATE_LIMIT_AUTH_FAILURES: String(limit), ...env }, { clock })
  return { app, clock }
}

async function fail(app: TestApp, forwarded?: string, key: string | null = unknown) {
  const headers: Record<string, string> = forwarded === undefined ? {} : { 'X-Forwarded-For': forwarded }
  return (await app.call('GET', '/v1/models', { key, headers })).status
}

describe('failed authentications', () => {
  test('with missing or unknown keys are limited per address', async () => {
    const { app, clock } = await start(3)
    expect(await fail(app)).toBe(401)
    expect(await fail(app, undefined, null)).toBe(401)
    expect((await app.call('POST', '/v1/agents', { key: 'nonsense' })).status).toBe(401)
    expect(await fail(app, undefined, null)).toBe(429)
    clock.advance(12.5)
    const refused = await app.call('GET', '/v1/agents', { key: unknown })
    expect(refused).toMatchObject({ status: 429, body: { code: 'rate_limit_exceeded' } })
    expect(refused.headers.get('retry-after')).toBe('48')
    expect(refused.headers.get('x-ratelimit-limit')).toBe('3')
    clock.advance(47)
    expect(await fail(app)).toBe(429)
    clock.advance(1)
    expect(await fail(app)).toBe(401)
  })

  test('do not limit a valid key from the same address', async () => {
    const { app } = await start(1)
    const { agent_key: agentKey } = await app.createAgent()
    await fail(app)
    expect(await fail(app)).toBe(429)
    for (const key of [app.key, agentKey]) {
      expect((await app.call('GET', '/v1/models', { key })).status).toBe(200)
      expect((await callProcedure(app, 'models.list', {}, { key })).status).toBe(200)
    }
  })

  test('do not include requests with a valid key of the wrong kind', async () => {
    const { app } = await start(1)
    const { agent_key: key } = await app.createAgent()
    for (let count = 0; count < 3; count++) {
      expect((await app.call('GET', '/v1/agents', { key })).status).toBe(401)
      expect((await app.call('POST', '/v1/keys/rotate', { key })).status).toBe(403)
    }
  })

  test.each(['/v1/nothing', '/v1/agents/a/b/c', '/artifacts/a/b/c'])(
    'are also limited at the unknown path %s, where an attacker could otherwise test keys',
    async (path) => {
      const { app } = await start(2)
      const call = (key: string | null) => app.call('GET', path, { key })
      expect((await call(null)).status).toBe(404)
      expect([(await call(unknown)).status, (await call('nonsense')).status]).toEqual([401, 401])
      expect((await call(unknown)).status).toBe(429)
      expect((await call(app.key)).status).toBe(404)
      expect((await app.call('PATCH', '/v1/models', { key: unknown })).status).toBe(429)
    },
  )

  test('are also limited in the tRPC API', async () => {
    const { app } = await start(2)
    await callProcedure(app, 'models.list', {}, { key: unknown })
    await callProcedure(app, 'agents.create', { yaml: 'x' }, { key: null })
    const refused = await callProcedure(app, 'models.list', {}, { key: unknown })
    expect(refused).toMatchObject({
      status: 429,
      body: { error: { json: { data: { reason: 'rate_limit_exceeded' } } } },
    })
    expect(await fail(app)).toBe(429)
  })

  test('are unlimited and return no rate-limit headers if the limit is 0', async () => {
    const { app } = await start(0)
    for (let count = 0; count < 40; count++) expect(await fail(app)).toBe(401)
    const answer = await app.call('GET', '/v1/models', { key: null })
    expect(answer.headers.has('x-ratelimit-limit')).toBe(false)
  })
})

test('an unknown tRPC procedure returns the same response for valid and invalid keys', async () => {
  const { app } = await start(2)
  const body = { json: { text: 'a'.repeat(600 * 1024) } }
  const [good, bad] = await Promise.all(
    [app.key, unknown].map((key) => app.call('POST', '/trpc/no.such', { key, body })),
  )
  const seen = (answer: Answer | undefined) => [
    answer?.status,
    answer?.text,
    answer?.headers.get('x-ratelimit-limit'),
  ]
  expect(seen(good)).toEqual(seen(bad))
  expect(good?.status).toBe(404)
})

describe("the client's address", () => {
  test('is the peer address if no proxy is trusted', async () => {
    const { app } = await start(2)
    expect(await fail(app, '192.0.2.1')).toBe(401)
    expect(await fail(app, '192.0.2.2')).toBe(401)
    expect(await fail(app, '192.0.2.3')).toBe(429)
  })

  test('is the peer address if only other proxies are trusted', async () => {
    const { app } = await start(1, { PARLEY_TRUSTED_PROXIES: '10.0.0.0/8' })
    expect(await fail(app, '192.0.2.1')).toBe(401)
    expect(await fail(app, '192.0.2.2')).toBe(429)
  })

  /** Pairs of X-Forwarded-For values from the same client. */
  const same: [one: string, other: string][] = [
    ['192.0.2.1', '192.0.2.1'],
    ['192.0.2.1', '203.0.113.9, 192.0.2.1'],
    ['192.0.2.1', '192.0.2.1, 10.1.2.3, 10.4.5.6'],
    ['192.0.2.1', '203.0.113.9,192.0.2.1 , 10.1.2.3'],
    ['192.0.2.1', '::ffff:192.0.2.1'],
    ['192.0.2.1', '::FFFF:C000:0201'],
    ['2001:db8::1', '2001:DB8:0:0:0:0:0:1, fd00::7'],
    ['10.0.0.5', '10.0.0.5, 10.0.0.1'],
    ['unknown', '_hidden'],
    ['not an address, 10.0.0.1', '10.0.0.1'],
  ]
  test.each(same)('is the same for X-Forwarded-For %j and %j from a trusted proxy', async (one, other) => {
    const { app } = await start(1, { PARLEY_TRUSTED_PROXIES: trusted })
    expect(await fail(app, one)).toBe(401)
    expect(await fail(app, other)).toBe(429)
  })

  const different: [one: string, other: string][] = [
    ['192.0.2.1', '192.0.2.2'],
    ['192.0.2.1', '192.0.2.1, 203.0.113.9'],
    ['2001:db8::1', '2001:db8:0:1::1'],
    ['10.0.0.5', '10.0.0.6'],
  ]
  test.each(different)(
    'differs between X-Forwarded-For %j and %j from a trusted proxy',
    async (one, other) => {
      const { app } = await start(1, { PARLEY_TRUSTED_PROXIES: trusted })
      expect(await fail(app, one)).toBe(401)
      expect(await fail(app, other)).toBe(401)
    },
  )
})
