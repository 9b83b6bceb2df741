/** Tests how the server responds to unsupported methods, unknown paths and unusual request targets. */
import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { errorShapeOf } from '../../../src/operations/errors.ts'
import { restOperations } from '../../../src/server/api.ts'
import { startApp, type TestApp } from '../../support/app.ts'
import { exchange, parseRawResponse, toRequest } from '../../support/raw-connection.ts'

const operations = restOperations
const paths = [...new Set(operations.map(({ http }) => http.path))]
const methodsOf = (path: string) =>
  operations.filter(({ http }) => http.path === path).map(({ http }) => http.method as string)
/** Whether the last parameter of a path can contain slashes, including at its end. */
const takesRest = (path: string) =>
  operations.some(({ http, request }) => http.path === path && request?.takesRest)
const filled = (path: string) =>
  path
    .replace('{version}', '1')
    .replace('{artifact_id}', randomUUID())
    .replaceAll(/\{\w+\}/g, 'x')

/** Sends the target unchanged, because a client library would normalize it. */
async function ask(
  app: TestApp,
  line: string,
  headers: readonly string[] = [],
): Promise<{ status: number; body: unknown }> {
  const all = ['Host: x', `Authorization: Bearer ${app.key}`, 'Connection: close', ...headers]
  return parseRawResponse(await exchange(app, toRequest(line, all)))
}

describe.each(paths)('the route %s', (path) => {
  const shape = errorShapeOf(path)

  test('returns 405 with Allow for every unsupported method', async () => {
    const app = await startApp()
    const known = methodsOf(path)
    for (const method of ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'PROPFIND']) {
      const isKnown = known.includes(method === 'HEAD' ? 'GET' : method)
      // Sends unsupported methods without a key, because a supported one may already have rotated the key.
      const answer = await app.call(method, filled(path), isKnown ? {} : { key: null })
      if (isKnown) {
        expect(answer.status).not.toBe(405)
        continue
      }
      expect(answer.status).toBe(405)
      const allowed = answer.headers.get('allow')?.split(', ') ?? []
      expect(allowed.sort()).toEqual([...known, ...(known.includes('GET') ? ['HEAD'] : []), 'OPTIONS'].sort())
      if (method === 'HEAD') continue
      const { error, code } = answer.body
      if (shape === 'artifact') expect(answer.body).toEqual({ ok: false, error: expect.any(String) })
      else expect(shape === 'agent' ? code : error.code).toBe('method_not_allowed')
      expect(typeof error).toBe(shape === 'openai' ? 'object' : 'string')
    }
  })

  test('does not match paths with a trailing slash, capital letters or a double slash', async () => {
    const app = await startApp()
    const withSlash = takesRest(path) ? [] : [`${filled(path)}/`]
    const statuses = await Promise.all(
      [...withSlash, filled(path).toUpperCase(), `/${filled(path)}`].map(async (other) => {
        return (await app.call(methodsOf(path)[0] as string, other)).status
      }),
    )
    expect(new Set(statuses)).toEqual(new Set([404]))
  })
})

test('HEAD returns the Content-Length and Content-Type of GET but no body', async () => {
  const app = await startApp()
  for (const path of ['/v1/models', '/v1/agents', '/v1/keys/validate', '/healthz', '/openapi.json']) {
    const [head, get] = [await app.call('HEAD', path), await app.call('GET', path)]
    expect(head).toMatchObject({ status: 200, text: '' })
    expect(head.headers.get('content-length')).toBe(String(Buffer.byteLength(get.text)))
    expect(head.headers.get('content-type')).toBe(get.headers.get('content-type'))
  }
  const sequential = await Promise.all([app.call('HEAD', '/v1/agents/none'), app.call('GET', '/v1/models')])
  expect(sequential.map(({ status }) => status)).toEqual([404, 200])
})

describe('an unknown path', () => {
  const artifacts = [
    '/artifacts',
    '/artifacts/',
    '/artifacts/x/y/z',
    '/upload/x/y',
    '/capabilities/x',
    '/upload/%2f',
  ]
  test.each(artifacts)('returns an error in the artifact format: %s', async (path) => {
    const app = await startApp()
    expect(await app.call('GET', path)).toMatchObject({ status: 404, body: { ok: false } })
  })

  const agents = [
    '/v1/agents/a/b',
    '/v1/agents/a/versions/x/y/z',
    '/v1/manager/agents/a/b',
    '/v1/manager/agents/a/versions/x/y/z',
  ]
  test.each(agents)('returns an error in the agent format: %s', async (path) => {
    const app = await startApp()
    expect(await app.call('GET', path)).toMatchObject({ status: 404, body: { error: expect.any(String) } })
  })

  const others = [
    '/v1',
    '/v1/',
    '/v1/agentsx',
    '/v1/manager',
    '/v1/manager/',
    '/v1/manager/agentsx',
    '/v1/manager/models',
    '/v1/manager/me/too',
    '/v1/nothing',
    '/v1//models',
    '/nothing',
    '/v2/models',
  ]
  test.each(others)('returns an error in the OpenAI format: %s', async (path) => {
    const app = await startApp()
    const error = {
      message: expect.any(String),
      type: 'invalid_request_error',
      param: null,
      code: 'not_found',
    }
    for (const key of [app.key, null]) {
      const answer = await app.call('GET', path, { key })
      expect(answer).toMatchObject({ status: 404, body: { error } })
    }
  })
})

describe('an unusual request target', () => {
  const cases: [target: string, status: number][] = [
    ['/v1/agents/%2e%2e', 404],
    ['/v1/agents/..', 404],
    ['/v1/../v1/models', 404],
    ['/v1/agents/%2e%2e%2f%2e%2e%2fetc%2fpasswd', 404],
    ['/v1/agents/%00', 404],
    ['/v1/agents/a%00b', 404],
    ['/v1/agents/%F0%9F%98%80', 404],
    ['/v1/agents/%zz', 400],
    ['/v1/agents/%', 400],
    ['/v1/agents/%C3%28', 400],
    ['/v1/agents/%ED%A0%80', 400],
    ['/v1/models/%zz', 400],
    ['/v1/models/..%2f..%2f', 404],
    ['/v1/models/%00', 404],
    ['/v1/%6dodels', 404],
    ['/%zz', 404],
    ['/docs/%2e%2e/%2e%2e/package.json', 404],
    ['/docs/../../package.json', 404],
    ['/v1/models?limit=%zz&&=&a[b]=c&__proto__=1', 200],
    ['/v1/models?', 200],
    ['/healthz?%zz', 200],
    ['http://anything.example/v1/models', 200],
    ['HTTP://anything.example/healthz', 200],
    ['https://anything.example', 302],
    ['http://anything.example?x', 302],
    [`/v1/models?x=${'a'.repeat(8_192)}`, 413],
    [`/v1/agents/${'a'.repeat(8_192)}`, 413],
    [`/v1/agents/${'a'.repeat(8_000)}`, 404],
  ]
  test.each(cases.map(([target, status]) => [target.slice(0, 60), status, target] as const))(
    '%s returns status %i',
    async (_start, status, target) => {
      const app = await startApp()
      const answer = await ask(app, `GET ${target}`)
      expect(answer.status).toBe(status)
      if (status < 400) return
      const error = target.startsWith('/v1/agents') ? expect.any(String) : { message: expect.any(String) }
      expect(answer.body).toMatchObject({ error })
    },
  )

  test('returns 404 if it is * in an OPTIONS request', async () => {
    const app = await startApp()
    expect((await ask(app, 'OPTIONS *')).status).toBe(404)
  })

  test('may contain a second question mark, which belongs to the query', async () => {
    const app = await startApp()
    expect((await ask(app, 'GET /v1/agents?limit=1')).status).toBe(200)
    expect((await ask(app, 'GET /v1/agents?limit=1?2')).status).toBe(400)
  })
})
