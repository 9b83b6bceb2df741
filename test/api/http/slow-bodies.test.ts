/** Tests that request bodies over the size or time limits are rejected early. */
import { once } from 'node:events'
import { connect } from 'node:net'
import { describe, expect, test } from 'vitest'
import { startApp } from '../../support/app.ts'
import { createLineLog } from '../../support/log-lines.ts'
import { RawConnection, toRequest } from '../../support/raw-connection.ts'
import { callProcedure } from '../../support/rpc.ts'

const CHAT = '/v1/chat/completions'
const json = { 'Content-Type': 'application/json' }
const hello = '{"model":"mock","messages":[{"role":"user","content":"hello"}]}'

describe('a body over the size limit', () => {
  const env = { PARLEY_MAX_BODY_BYTES: '65536' }
  const limits = [
    [CHAT, 65_536],
    ['/v1/agents', 1_048_576],
  ] as const

  test.each(limits)(
    'is rejected with 413 as soon as its Content-Length arrives, and the connection is closed: %s',
    async (path, maxBytes) => {
      const app = await startApp(env)
      const length = `Content-Length: ${maxBytes + 1}`
      const connection = await RawConnection.open(app)
      connection.send(toRequest(`POST ${path}`, [...headersOf(app.key), length], '{'))
      const answer = await connection.receives(/\r\n\r\n/)
      expect(answer).toMatch(/^HTTP\/1.1 413 /)
      expect(answer).toMatch(/\r\nConnection: close\r\n/)
    },
  )

  test.each(limits)(
    'is rejected with 413 if it is chunked, and the connection is closed: %s',
    async (path, maxBytes) => {
      const app = await startApp(env)
      const chunk = `${maxBytes.toString(16)}\r\n${' '.repeat(maxBytes)}\r\n`
      const headers = [...headersOf(app.key), 'Transfer-Encoding: chunked']
      const connection = await RawConnection.open(app)
      connection.send(toRequest(`POST ${path}`, headers, chunk + chunk))
      const answer = await connection.receives(/\r\n\r\n/)
      expect(answer).toMatch(/^HTTP\/1.1 413 /)
      expect(answer).toMatch(/\r\nConnection: close\r\n/)
    },
  )

  test('is rejected, but a body of exactly the limit is accepted', async () => {
    const app = await startApp(env)
    const body = hello + ' '.repeat(65_536 - hello.length)
    expect((await app.call('POST', CHAT, { body, headers: json })).status).toBe(200)
    expect((await app.call('POST', CHAT, { body: `${body} `, headers: json })).status).toBe(413)
  })

  test('results in an error response even if the client sends all of it before reading', async () => {
    const app = await startApp(env)
    for (const [key, status] of [
      [app.key, 413],
      ['svc_wrong', 401],
    ] as const) {
      const socket = connect({ port: Number(new URL(app.url).port), host: '127.0.0.1' })
      const body = Buffer.alloc(10_000_000)
      await new Promise<void>((resolve, reject) => {
        socket.once('error', reject)
        socket.write(toRequest(`POST ${CHAT}`, [...headersOf(key), `Content-Length: ${body.length}`]))
        socket.write(body, (error) => (error ? reject(error) : resolve()))
      })
      const [answer] = await once(socket, 'data')
      expect(answer.toString()).toMatch(new RegExp(`^HTTP/1.1 ${status} `))
      socket.destroy()
    }
  })
})

describe('before authentication', () => {
  const targets = [CHAT, '/v1/agents', '/trpc/agents.create']

  test.each(targets)('the server does not ask for the body of a request to %s', async (path) => {
    const app = await startApp()
    const sized = ['Expect: 100-continue', `Content-Length: ${hello.length}`]
    const refused = await RawConnection.open(app)
    refused.send(toRequest(`POST ${path}`, [...headersOf('svc_wrong'), ...sized]))
    expect(await refused.receives(/\r\n\r\n/)).toMatch(/^HTTP\/1.1 401 /)

    const admitted = await RawConnection.open(app)
    admitted.send(toRequest(`POST ${path}`, [...headersOf(app.key), ...sized]))
    expect(await admitted.receives(/\r\n\r\n/)).toBe('HTTP/1.1 100 Continue\r\n\r\n')
    admitted.send(hello)
    await admitted.receives(/HTTP\/1.1 (200|400) /)
  })

  test.each(targets)('the server rejects a request to %s before its huge body arrives', async (path) => {
    const app = await startApp()
    const connection = await RawConnection.open(app)
    connection.send(
      toRequest(`POST ${path}`, [...headersOf('svc_wrong'), 'Content-Length: 10000000000'], '{'),
    )
    expect(await connection.receives(/\r\n\r\n/)).toMatch(/^HTTP\/1.1 401 /)
    // The server also closes the connection of a client that keeps sending.
    connection.send(' '.repeat(100_000))
    await connection.ends()
  })
})

describe('a request with a slow body', () => {
  const targets = [
    [CHAT, /"code":"request_timeout"/],
    ['/v1/agents', /"code":"request_timeout"/],
    ['/trpc/agents.create', /"reason":"request_timeout"/],
  ] as const

  test.each(targets)('returns 408 after the idle timeout: %s', async (path, code) => {
    const app = await startApp({ PARLEY_BODY_IDLE_SECONDS: '0.05' })
    const connection = await RawConnection.open(app)
    connection.send(toRequest(`POST ${path}`, [...headersOf(app.key), 'Content-Length: 100'], '{'))
    expect(await connection.receives(code)).toMatch(/^HTTP\/1.1 408 /)
  })

  test('returns 408 after the total timeout even if the body arrives without a pause', async () => {
    const app = await startApp({ PARLEY_BODY_SECONDS: '0.1' })
    const connection = await RawConnection.open(app)
    connection.send(toRequest('POST /v1/agents', [...headersOf(app.key), 'Content-Length: 100000'], '{'))
    const drip = setInterval(() => connection.send(' '), 5)
    expect(await connection.receives(/"code"/).finally(() => clearInterval(drip))).toMatch(/^HTTP\/1.1 408 /)
  })
})

describe('a client that disconnects mid-body', () => {
  test.each(['/v1/agents', '/trpc/agents.create'])(
    'does not change data or cause a log warning at %s',
    async (path) => {
      const { log, lines } = createLineLog()
      const app = await startApp({}, { log })
      const yaml =
        '{"yaml":"name: Half\\ninstructions: Half.","json":{"yaml":"name: Half\\ninstructions: Half."}}'
      for (const leave of ['reset', 'endSending'] as const) {
        const connection = await RawConnection.open(app)
        connection.send(toRequest(`POST ${path}`, [...headersOf(app.key), 'Content-Length: 1000'], yaml))
        // The response to this request proves that the server has received the earlier request too.
        await app.call('GET', '/v1/keys/validate')
        connection[leave]()
      }
      expect((await callProcedure(app, 'agents.list')).body.result.data.json.data).toEqual([])
      await app.close()
      expect(lines.filter((line) => JSON.parse(line).level >= 40)).toEqual([])
    },
  )
})

function headersOf(key: string): string[] {
  return ['Host: x', `Authorization: Bearer ${key}`, 'Content-Type: application/json']
}

test('a body that arrives in thousands of tiny chunks is rejected', async () => {
  const app = await startApp()
  const form = 'Content-Type: multipart/form-data; boundary=x'
  const rest = [CHAT, 'Content-Type: application/json', '{"a":'] as const
  const trpc = ['/trpc/chat.stream', 'Content-Type: application/json', '{"json":'] as const
  for (const [path, type, start] of [rest, trpc, ['/v1/files', form, '--x\r\n']] as const) {
    const connection = await RawConnection.open(app)
    const headers = ['Host: x', `Authorization: Bearer ${app.key}`, type, 'Transfer-Encoding: chunked']
    connection.send(toRequest(`POST ${path}`, headers, `${start.length}\r\n${start}\r\n`))
    connection.send('1\r\n \r\n'.repeat(5_200))
    expect(await connection.receives(/too small/)).toMatch(/^HTTP\/1.1 400 /)
  }
})
