/** Tests the headers that every response has, and how Authorization and Host headers are read. */
import { describe, expect, test } from 'vitest'
import { startApp } from '../../support/app.ts'
import { createLineLog } from '../../support/log-lines.ts'
import { exchange, toRequest } from '../../support/raw-connection.ts'

/** Method, path and whether the request has a key; one entry for each kind of response. */
const everywhere: readonly (readonly [method: string, path: string, hasKey: boolean])[] = [
  ['GET', '/v1/models', true],
  ['GET', '/v1/models', false],
  ['GET', '/v1/agents', true],
  ['POST', '/v1/agents', true],
  ['DELETE', '/v1/models', true],
  ['GET', '/v1/nothing', true],
  ['GET', '/v1/%zz', false],
  ['OPTIONS', '/v1/models', false],
  ['GET', '/trpc/models.list', true],
  ['GET', '/trpc/models.list', false],
  ['GET', '/trpc/nothing', false],
  ['GET', '/healthz', false],
  ['GET', '/readyz', false],
  ['GET', '/openapi.json', false],
  ['POST', '/healthz', false],
  ['GET', '/nothing', false],
  ['GET', '/%zz', false],
]

describe.each(everywhere)('the response to %s %s (with key: %s)', (method, path, hasKey) => {
  const options = (key: string) => ({ key: hasKey ? key : null })

  test('includes the security headers', async () => {
    const app = await startApp()
    const { headers } = await app.call(method, path, options(app.key))
    expect(headers.get('content-security-policy')).toBe("default-src 'none'; frame-ancestors 'none'")
    expect(headers.get('x-content-type-options')).toBe('nosniff')
    expect(headers.get('referrer-policy')).toBe('no-referrer')
    expect(headers.get('vary')).toMatch(/^Authorization, Origin/)
    expect(headers.get('cache-control')).toBe(method === 'OPTIONS' ? null : 'no-store')
    expect(headers.has('x-powered-by')).toBe(false)
    expect(headers.has('etag')).toBe(false)
  })

  test("includes the request's id if it is valid, and otherwise a new one", async () => {
    const app = await startApp()
    const ask = async (id?: string) => {
      const headers: Record<string, string> = id === undefined ? {} : { 'X-Request-Id': id }
      return (await app.call(method, path, { ...options(app.key), headers })).headers.get('x-request-id')
    }
    expect(await ask('req_7f.3a:b-C')).toBe('req_7f.3a:b-C')
    const made = [await ask(), await ask('a b'), await ask('<b>'), await ask('x'.repeat(129)), await ask('é')]
    expect(new Set(made).size).toBe(5)
    for (const id of made) expect(id).toMatch(/^[0-9a-f-]{36}$/)
  })

  test('includes the processing time only under /v1', async () => {
    const app = await startApp()
    const { headers } = await app.call(method, path, options(app.key))
    const time = headers.get('openai-processing-ms')
    if (path.startsWith('/v1')) expect(time).toMatch(/^\d+$/)
    else expect(time).toBeNull()
  })
})

describe('an API key', () => {
  test.each(['Bearer', 'bearer', 'BEARER', 'bEaReR'])('is accepted after the scheme %s', async (scheme) => {
    const app = await startApp()
    const headers = { Authorization: `${scheme} ${app.key}` }
    expect((await app.call('GET', '/v1/models', { key: null, headers })).status).toBe(200)
  })

  test('is accepted after several spaces', async () => {
    const app = await startApp()
    const headers = ['Host: x', `Authorization: Bearer   ${app.key}  `, 'Connection: close']
    expect(await exchange(app, toRequest('GET /v1/models', headers))).toMatch(/^HTTP\/1.1 200 /)
  })

  test.each(['GET /v1/models', 'GET /v1/agents', 'GET /trpc/models.list', 'GET /artifacts', 'GET /metrics'])(
    'is rejected with 400 by %s if the request has two Authorization headers',
    async (line) => {
      const app = await startApp()
      const keys = [app.key, 'svc_junk']
      for (const [first, second] of [keys, keys.toReversed()]) {
        const headers = ['Host: x', `Authorization: Bearer ${first}`, `AUTHORIZATION: Bearer ${second}`]
        const answer = await exchange(app, toRequest(line, [...headers, 'Connection: close']))
        expect(answer).toMatch(/^HTTP\/1.1 400 .*Authorization must be sent only once/s)
      }
    },
  )

  const elsewhere: Readonly<Record<string, (key: string) => readonly [string, Record<string, string>]>> = {
    'a query parameter': (key) => [
      `/v1/models?api_key=${key}&token=${key}&key=${key}&access_token=${key}`,
      {},
    ],
    'a cookie': (key) => ['/v1/models', { Cookie: `api_key=${key}; token=${key}; session=${key}` }],
    'x-api-key': (key) => ['/v1/models', { 'x-api-key': key, 'api-key': key, 'X-Auth-Token': key }],
    'a Basic Authorization header': (key) => ['/v1/models', { Authorization: `Basic ${btoa(`${key}:`)}` }],
    'an Authorization header without a scheme': (key) => ['/v1/models', { Authorization: key }],
    'Proxy-Authorization': (key) => ['/v1/models', { 'Proxy-Authorization': `Bearer ${key}` }],
    'an Authorization header with an unknown scheme': (key) => [
      '/v1/models',
      { Authorization: `Token ${key}` },
    ],
    'an empty Bearer header': () => ['/v1/models', { Authorization: 'Bearer' }],
  }
  test.each(Object.entries(elsewhere))('is not accepted in %s', async (_name, place) => {
    const app = await startApp()
    const [path, headers] = place(app.key)
    const answer = await app.call('GET', path, { key: null, headers })
    expect(answer).toMatchObject({ status: 401, body: { error: { code: 'missing_api_key' } } })
  })

  test('is not accepted in a body', async () => {
    const app = await startApp()
    const body = { api_key: app.key, Authorization: `Bearer ${app.key}`, model: 'mock', messages: [] }
    const answer = await app.call('POST', '/v1/chat/completions', { key: null, body })
    expect(answer).toMatchObject({ status: 401, body: { error: { code: 'missing_api_key' } } })
  })

  const malformed = ['nonsense', 'svc_', `svc_scoped_${'a'.repeat(61)}`, 'x'.repeat(10_000), "' OR 1=1 --"]
  test.each(malformed.map((key) => [key.slice(0, 40), key]))(
    'is rejected with 401 invalid_api_key if it is malformed: %s',
    async (_start, key) => {
      const app = await startApp()
      const answer = await app.call('GET', '/v1/models', { key })
      expect(answer).toMatchObject({ status: 401, body: { error: { code: 'invalid_api_key' } } })
      expect(answer.headers.get('www-authenticate')).toBe('Bearer')
    },
  )
})

describe('PARLEY_ALLOWED_HOSTS', () => {
  const ask = (host: string, target: string) =>
    toRequest(`GET ${target}`, [`Host: ${host}`, 'Connection: close'])

  test('applies to every API', async () => {
    const app = await startApp({ PARLEY_ALLOWED_HOSTS: 'chat.example.org' })
    for (const path of ['/v1/models', '/v1/agents', '/trpc/models.list', '/healthz', '/docs']) {
      expect(await exchange(app, ask('evil.example.org', path))).toMatch(/^HTTP\/1.1 400 /)
      expect(await exchange(app, ask('Chat.Example.ORG', path))).not.toMatch(/^HTTP\/1.1 400 /)
    }
  })

  test('checks the host of an absolute request target instead of the Host header', async () => {
    const app = await startApp({ PARLEY_ALLOWED_HOSTS: 'chat.example.org' })
    expect(await exchange(app, ask('chat.example.org', 'http://evil.example.org/healthz'))).toMatch(/ 400 /)
    expect(await exchange(app, ask('evil.example.org', 'http://chat.example.org/healthz'))).toMatch(/ 200 /)
  })
})

test('the redirect from / includes the security headers', async () => {
  const app = await startApp()
  const { status, headers } = await fetch(app.url, { redirect: 'manual' })
  expect([status, headers.get('location')]).toEqual([302, '/console'])
  expect(headers.get('content-security-policy')).toBe("default-src 'none'; frame-ancestors 'none'")
  expect(headers.get('x-content-type-options')).toBe('nosniff')
})

test('a log line includes the request id and path', async () => {
  const { log, lines } = createLineLog()
  const app = await startApp({}, { log })
  for (const path of ['/v1/nothing', '/trpc/nothing', '/nothing']) {
    await app.call('GET', path, { headers: { 'X-Request-Id': `id-of${path.replaceAll('/', '-')}` } })
  }
  const seen = lines.map((line) => JSON.parse(line)).filter(({ reason }) => reason === 'not_found')
  expect(seen.map(({ requestId, path }) => [requestId, path])).toEqual([
    ['id-of-v1-nothing', '/v1/nothing'],
    ['id-of-trpc-nothing', '/trpc/nothing'],
    ['id-of-nothing', '/nothing'],
  ])
})
