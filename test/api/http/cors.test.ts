/** Tests that pages from any origin can call the public API, but not the console or tRPC routes. */
import { describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../support/app.ts'
import { exchange, toRequest } from '../../support/raw-connection.ts'

const origin = 'https://shop.example'
const listed = (headers: Headers, name: string) => headers.get(name)?.toLowerCase().split(', ') ?? []

function preflight(app: TestApp, path: string, method: string, asked?: string) {
  return app.call('OPTIONS', path, {
    key: null,
    headers: {
      Origin: origin,
      'Access-Control-Request-Method': method,
      ...(asked === undefined ? {} : { 'Access-Control-Request-Headers': asked }),
    },
  })
}

const allowed = [
  'authorization',
  'content-type',
  'upload-offset',
  'upload-metadata',
  'tus-resumable',
  'x-stainless-lang',
  'x-stainless-package-version',
  'x-stainless-helper-method',
  'openai-organization',
  'openai-beta',
  'if-match',
  'if-none-match',
  'range',
  'prefer',
  'x-http-method-override',
  'x-request-id',
  'idempotency-key',
  'last-event-id',
  'x-parley-conversation',
  'x-parley-visitor',
]

const exposed = [
  'location',
  'upload-offset',
  'upload-length',
  'upload-expires',
  'tus-resumable',
  'x-request-id',
  'x-ratelimit-limit',
  'x-ratelimit-remaining',
  'x-ratelimit-reset',
  'retry-after',
  'x-parley-stored',
  'x-parley-turn',
  'x-parley-conversation',
  'x-artifact-id',
  'protocol-version',
  'etag',
  'content-range',
  'x-parley-provider',
  'x-parley-attempts',
  'x-parley-degraded',
]

describe('a preflight response under /v1', () => {
  const paths = [
    '/v1/chat/completions',
    '/v1/models',
    '/v1/models/a/b',
    '/v1/agents',
    '/v1/agents/x',
    '/v1/nothing',
  ]

  test.each(paths)('allows requests to %s without requiring a key', async (path) => {
    const app = await startApp()
    const { status, text, headers } = await preflight(app, path, 'POST', allowed.join(','))
    expect({ status, text }).toEqual({ status: 204, text: '' })
    expect(headers.get('access-control-allow-origin')).toBe('*')
    expect(headers.has('access-control-allow-credentials')).toBe(false)
    expect(listed(headers, 'access-control-allow-methods')).toEqual(
      expect.arrayContaining(['get', 'head', 'post', 'put', 'patch', 'delete']),
    )
    expect(listed(headers, 'access-control-allow-headers')).toEqual(allowed)
    expect(Number(headers.get('access-control-max-age'))).toBeGreaterThan(0)
  })

  test('does not allow unknown request headers', async () => {
    const app = await startApp()
    const asked =
      'Authorization, Cookie, X-Proxy-Secret, X-Email, X-Stainless-OS, X-Forwarded-For, x-stainless-é, *'
    const { headers } = await preflight(app, '/v1/models', 'GET', asked)
    expect(listed(headers, 'access-control-allow-headers')).toEqual(['authorization', 'x-stainless-os'])
  })

  test('allows the default headers if the preflight request does not list any', async () => {
    const app = await startApp()
    const { headers } = await preflight(app, '/v1/models', 'GET')
    expect(listed(headers, 'access-control-allow-headers')).toEqual(['authorization', 'content-type'])
  })

  test('does not count toward the limits on requests and failed authentications', async () => {
    const app = await startApp({ PARLEY_RATE_LIMIT_AUTH_FAILURES: '1', PARLEY_RATE_LIMIT_PARENT: '1' })
    for (let count = 0; count < 3; count++) {
      expect((await preflight(app, '/v1/models', 'GET', 'authorization')).status).toBe(204)
    }
    expect((await app.call('GET', '/v1/models')).status).toBe(200)
    expect((await app.call('GET', '/v1/models', { key: null })).status).toBe(401)
  })
})

describe('a response under /v1', () => {
  const requests: [method: string, path: string, status: number][] = [
    ['GET', '/v1/models', 200],
    ['POST', '/v1/chat/completions', 400],
    ['GET', '/v1/agents/none', 404],
    ['PATCH', '/v1/models', 405],
    ['GET', '/v1/nothing', 404],
  ]

  test.each(requests)('is readable from any origin: %s %s (%i)', async (method, path, status) => {
    const app = await startApp()
    for (const from of [origin, 'null', 'http://localhost:5173']) {
      const answer = await app.call(method, path, { headers: { Origin: from } })
      expect(answer.status).toBe(status)
      expect(answer.headers.get('access-control-allow-origin')).toBe('*')
      expect(answer.headers.has('access-control-allow-credentials')).toBe(false)
      expect(listed(answer.headers, 'access-control-expose-headers')).toEqual(expect.arrayContaining(exposed))
      expect(answer.headers.get('vary')).toContain('Origin')
    }
  })

  test('is readable from any origin even if the request has no key', async () => {
    const app = await startApp()
    const answer = await app.call('GET', '/v1/models', { key: null, headers: { Origin: origin } })
    expect(answer.status).toBe(401)
    expect(answer.headers.get('access-control-allow-origin')).toBe('*')
  })

  test('is readable from any origin even if it is a stream', async () => {
    const app = await startApp()
    const body = { model: 'mock', messages: [{ role: 'user', content: 'hello' }], stream: true }
    const answer = await app.call('POST', '/v1/chat/completions', { body, headers: { Origin: origin } })
    expect(answer.headers.get('access-control-allow-origin')).toBe('*')
  })

  test.each(['GET /v1/models', 'OPTIONS /v1/models', 'GET /v1/nothing'])(
    'contains each CORS header exactly once: %s',
    async (line) => {
      const app = await startApp()
      const headers = [
        'Host: x',
        `Origin: ${origin}`,
        `Authorization: Bearer ${app.key}`,
        'Connection: close',
      ]
      const answer = await exchange(app, toRequest(line, headers))
      expect(answer.match(/access-control-allow-origin/gi)).toHaveLength(1)
      expect(answer.match(/access-control-expose-headers/gi)).toHaveLength(1)
    },
  )
})

describe('a response outside the public API', () => {
  const paths = [
    '/v1/manager',
    '/v1/manager/me',
    '/v1/manager/agents',
    '/trpc/models.list',
    '/healthz',
    '/readyz',
    '/openapi.json',
    '/docs',
    '/nothing',
  ]

  test.each(paths)('has no CORS headers: %s', async (path) => {
    const app = await startApp()
    const answers = [
      await app.call('GET', path, { headers: { Origin: origin } }),
      await preflight(app, path, 'POST', 'authorization,content-type'),
    ]
    for (const { headers } of answers) {
      expect([...headers.keys()].filter((name) => name.startsWith('access-control-'))).toEqual([])
    }
  })
})
