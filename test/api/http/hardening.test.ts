/** Tests how the server handles malformed and unusual HTTP requests on raw connections. */
import { Agent, request as openRequest } from 'node:http'
import { describe, expect, test } from 'vitest'
import { listen } from '../../../src/http/server.ts'
import { startApp, type TestApp } from '../../support/app.ts'
import { exchange, RawConnection, toRequest } from '../../support/raw-connection.ts'

const CHAT = '/v1/chat/completions'

describe('a malformed request', () => {
  const cases: [name: string, status: number, headers: readonly string[], body: string][] = [
    ['two framings', 400, ['Host: x', 'Content-Length: 4', 'Transfer-Encoding: chunked'], '0\r\n\r\n'],
    ['two lengths', 400, ['Host: x', 'Content-Length: 4', 'Content-Length: 5'], 'abcd'],
    ['a list of lengths', 400, ['Host: x', 'Content-Length: 4, 4'], 'abcd'],
    ['a signed length', 400, ['Host: x', 'Content-Length: +4'], 'abcd'],
    ['an unknown transfer coding', 400, ['Host: x', 'Transfer-Encoding: chunked, gzip'], '0\r\n\r\n'],
    ['a space before the colon', 400, ['Host: x', 'Content-Length : 4'], 'abcd'],
    ['a folded header', 400, ['Host: x', 'X-One: a', ' b'], ''],
    ['a bare line feed', 400, ['Host: x\nX-One: a'], ''],
    ['a NUL in a header', 400, ['Host: x', 'X-One: a\0b'], ''],
    ['a missing Host', 400, [], ''],
    ['two Host headers', 400, ['Host: x', 'Host: y', 'Connection: close'], ''],
    ['one header over 16 KiB', 431, ['Host: x', `X-One: ${'a'.repeat(17_000)}`], ''],
    [
      'many headers over 16 KiB',
      431,
      ['Host: x', ...Array.from({ length: 2000 }, (_, i) => `X-${i}: a`)],
      '',
    ],
  ]

  test.each(cases)('with %s returns %i and closes the connection', async (_name, status, headers, body) => {
    const app = await startApp()
    const answer = await exchange(app, toRequest('POST /v1/agents', headers, body))
    expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `))
    expect(answer.match(/HTTP\/1.1 /g)).toHaveLength(1)
    expect((await app.call('GET', '/healthz')).status).toBe(200)
  })

  const nonsense = [
    '\0\0\0\0',
    'GET\r\n\r\n',
    '\x16\x03\x01\x02\x00\x01\x00',
    'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  ]
  test.each(nonsense)('returns 400 if it is not HTTP (%j)', async (bytes) => {
    const app = await startApp()
    expect(await exchange(app, bytes)).toMatch(/^HTTP\/1.1 400 /)
  })

  test('with an endless chunk extension is rejected', async () => {
    const app = await startApp()
    const headers = [...headersOf(app), 'Transfer-Encoding: chunked']
    expect(await exchange(app, toRequest(`POST ${CHAT}`, headers, `1;${'a'.repeat(20_000)}`))).toMatch(
      /HTTP\/1.1 (413|400) /,
    )
  })
})

test('a request whose headers arrive too slowly returns 408', async () => {
  const server = await listen(() => {}, '127.0.0.1', 0)
  expect(server).toMatchObject({ headersTimeout: 15_000, requestTimeout: 0, keepAliveTimeout: 75_000 })
  server.headersTimeout = 50
  const { port } = server.address() as { port: number }
  const answer = await exchange({ url: `http://127.0.0.1:${port}` }, 'GET / HTTP/1.1\r\nHost: x\r\nX-One: ')
  server.close()
  expect(answer).toMatch(/^HTTP\/1.1 408 /)
})

describe('an HTTP connection', () => {
  test('returns the responses to pipelined requests in order', async () => {
    const app = await startApp()
    const connection = await RawConnection.open(app)
    const body = '{"model":"mock","messages":[{"role":"user","content":"[[delay:20]] slow"}]}'
    connection.send(
      toRequest(
        `POST ${CHAT}`,
        [...headersOf(app), `Content-Length: ${body.length}`, 'X-Request-Id: one'],
        body,
      ) +
        toRequest('GET /v1/models', [...headersOf(app), 'X-Request-Id: two']) +
        toRequest('GET /healthz', ['Host: x', 'X-Request-Id: three']) +
        toRequest('GET /v1/nothing', [...headersOf(app), 'X-Request-Id: four', 'Connection: close']),
    )
    const ids = [...(await connection.ends()).matchAll(/X-Request-Id: (\w+)/g)].map(([, id]) => id)
    expect(ids).toEqual(['one', 'two', 'three', 'four'])
  })

  test('returns the response even if the client has half-closed it', async () => {
    const app = await startApp()
    const connection = await RawConnection.open(app)
    connection.send(toRequest('GET /v1/models', headersOf(app)))
    connection.endSending()
    expect(await connection.ends()).toMatch(/^HTTP\/1.1 200 [\s\S]*"object":"list"/)
  })

  test('can be reset mid-stream without affecting the server', async () => {
    const app = await startApp()
    const body =
      '{"model":"mock","stream":true,"messages":[{"role":"user","content":"[[delay:5]] [[tokens:900]]"}]}'
    const connection = await RawConnection.open(app)
    connection.send(toRequest(`POST ${CHAT}`, [...headersOf(app), `Content-Length: ${body.length}`], body))
    await connection.receives(/data: /)
    connection.reset()
    expect((await app.call('GET', '/v1/models')).status).toBe(200)
  })

  test('does not delay shutdown if it is kept alive', async () => {
    const app = await startApp({ PARLEY_SHUTDOWN_SECONDS: '60' })
    const agent = new Agent({ keepAlive: true })
    const answer = new Promise<void>((resolve, reject) => {
      const body = '{"model":"mock","messages":[{"role":"user","content":"[[delay:100]] hello"}]}'
      const headers = { Authorization: `Bearer ${app.key}`, 'Content-Type': 'application/json' }
      const request = openRequest(app.url + CHAT, { agent, method: 'POST', headers }, (response) => {
        response.resume().on('end', resolve)
      })
      request.on('error', reject).end(body)
    })
    // The response to this request proves that the server has received the earlier request too.
    await app.call('GET', '/v1/models')
    await app.close()
    await answer
    agent.destroy()
  })

  test('ignores an unknown Expect header', async () => {
    const app = await startApp()
    const headers = [...headersOf(app), 'Expect: the-unexpected', 'Connection: close']
    expect(await exchange(app, toRequest('GET /v1/models', headers))).toMatch(/^HTTP\/1.1 200 /)
  })

  test('remains HTTP/1.1 if the client requests an upgrade', async () => {
    const app = await startApp()
    const headers = [...headersOf(app), 'Connection: Upgrade, close', 'Upgrade: websocket']
    expect(await exchange(app, toRequest('GET /v1/models', headers))).toMatch(/^HTTP\/1.1 200 /)
  })

  test('does not return interim responses to HTTP/1.0 requests', async () => {
    const app = await startApp()
    const body = '{"model":"mock","messages":[{"role":"user","content":"hello"}]}'
    const headers = [...headersOf(app), 'Expect: 100-continue', `Content-Length: ${body.length}`]
    const request = toRequest(`POST ${CHAT}`, headers, body).replace('HTTP/1.1', 'HTTP/1.0')
    expect(await exchange(app, request)).toMatch(/^HTTP\/1.1 200 /)
  })
})

function headersOf(app: TestApp): string[] {
  return ['Host: x', `Authorization: Bearer ${app.key}`, 'Content-Type: application/json']
}
