/** Tests how the gateway backend reports failures of the upstream server. */
import type { LookupFunction } from 'node:net'
import { describe, expect, test } from 'vitest'
import { failureOf, iteratorDone } from '../../support/backend.ts'
import { chatCall, listen, startGatewayHarness, streamCall, ways } from '../../support/gateway.ts'

const { upstream, gateway, findWhoEnded } = await startGatewayHarness()

describe.each(ways)('a gateway call (%s)', (_way, call) => {
  test.each([
    ['{{up:reset}} reset before the head', 'unreachable'],
    ['{{up:close}} closed before the head', 'unreachable'],
    ['{{up:type text/html}} a web page', 'protocol'],
    ['{{up:type text/plain; charset=utf-8}} a text', 'protocol'],
    ['{{up:header content-encoding: gzip}} encoded without being asked', 'protocol'],
    [`{{up:header x-large: ${'x'.repeat(20_000)}}} a head beyond the limit`, 'protocol'],
  ])('reports the kind of failure: %s', async (text, kind) => {
    expect(await failureOf(call(gateway(), text))).toMatchObject({ kind, status: undefined, said: undefined })
  })

  test('reports a timeout and disconnects if the response headers are late', async () => {
    const failure = await failureOf(call(gateway({ timings: { firstByteMs: 300 } }), '{{up:hang}} late'))
    expect(failure.kind).toBe('timeout')
    expect(await findWhoEnded('late')).toBe('client')
  })

  test('reports a timeout if connecting takes too long', async () => {
    // This server accepts connections but never responds to a TLS handshake.
    const { port } = await listen()
    const url = `https://127.0.0.1:${port}/v1`
    const failure = await failureOf(call(gateway({ url, timings: { connectMs: 300 } }), 'hello'))
    expect(failure.kind).toBe('timeout')
  })

  test('reports a refused connection as unreachable', async () => {
    const { port, server } = await listen()
    server.close()
    const failure = await failureOf(call(gateway({ url: `http://127.0.0.1:${port}/v1` }), 'hello'))
    expect(failure).toMatchObject({ kind: 'unreachable', cause: { code: 'ECONNREFUSED' } })
  })

  test('reports a server without TLS behind an https URL as unreachable', async () => {
    const url = upstream.url.replace('http:', 'https:')
    expect((await failureOf(call(gateway({ url }), 'hello'))).kind).toBe('unreachable')
  })

  test('reports an unknown host name as unreachable', async () => {
    const lookup: LookupFunction = (_name, _options, callback) =>
      callback(Object.assign(new Error('no such name'), { code: 'ENOTFOUND' }), [])
    const failure = await failureOf(call(gateway({ url: 'http://runner.test/v1', lookup }), 'hello'))
    expect(failure).toMatchObject({ kind: 'unreachable', cause: { code: 'ENOTFOUND' } })
  })

  test('reports a server that does not speak HTTP as a protocol failure', async () => {
    const { port } = await listen((socket) => socket.end('SSH-2.0-OpenSSH_9.6\r\n'))
    const failure = await failureOf(call(gateway({ url: `http://127.0.0.1:${port}/v1` }), 'hello'))
    expect(failure.kind).toBe('protocol')
  })

  test('reports a closed keep-alive connection as unreachable, and the next call opens a new one', async () => {
    const backend = gateway()
    await backend.complete(chatCall('one'))
    await upstream.listRequests()
    expect((await failureOf(call(backend, '{{up:close}} two'))).kind).toBe('unreachable')
    await backend.complete(chatCall('three'))
    const [one, two, three] = await upstream.listRequests()
    expect(two?.connection).toBe(one?.connection)
    expect(three?.connection).not.toBe(two?.connection)
  })

  test('does not follow a redirect', async () => {
    let isFollowed = false
    const { port } = await listen(() => {
      isFollowed = true
    })
    const text = `{{up:redirect http://127.0.0.1:${port}/v1/chat/completions}}`
    expect(await failureOf(call(gateway(), text))).toMatchObject({ kind: 'status', status: 307 })
    expect(isFollowed).toBe(false)
  })

  test.each([
    ['http://169.254.169.254/v1'],
    ['http://[fe80::1]/v1'],
    ['http://[fd00:ec2::254]/v1'],
    ['http://[::ffff:169.254.1.1]/v1'],
    ['http://100.100.100.200/v1'],
  ])('does not connect to %s', async (url) => {
    const failure = await failureOf(call(gateway({ url }), 'hello'))
    expect(failure.kind).toBe('unreachable')
    expect(String(failure.cause)).toMatch(/link-local or metadata/)
  })

  test('does not connect to a host name that also resolves to a metadata address', async () => {
    const lookup: LookupFunction = (_name, _options, callback) =>
      callback(null, [
        { address: '127.0.0.1', family: 4 },
        { address: '169.254.169.254', family: 4 },
      ])
    const url = upstream.url.replace('127.0.0.1', 'runner.test')
    const failure = await failureOf(call(gateway({ url, lookup }), 'hello'))
    expect(String(failure.cause)).toMatch(/runner\.test is a link-local or metadata/)
    expect(await upstream.listRequests()).toEqual([])
  })
})

test.each(ways)('an informational response before the final response is ignored (%s)', async (_way, call) => {
  expect(await call(gateway(), '{{up:hints}} hello')).toBeTypeOf('object')
})

test('a gateway may have a host name that resolves to a loopback address', async () => {
  const url = upstream.url.replace('127.0.0.1', 'localhost')
  expect(await gateway({ url }).complete(chatCall('hello'))).toBeInstanceOf(Uint8Array)
})

describe('an interrupted response body', () => {
  test.each([
    ['{{up:reset-after}} reset', {}, 'unreachable'],
    ['{{up:cut-off}} shorter than its length', {}, 'unreachable'],
    ['{{up:hang-after}} never ending', { idleMs: 300 }, 'timeout'],
  ])('makes a completion fail: %s', async (text, timings, kind) => {
    expect((await failureOf(gateway({ timings }).complete(chatCall(text)))).kind).toBe(kind)
  })

  test.each([
    ['{{up:reset-after 2}} reset', {}, 'unreachable'],
    ['{{up:cut-off 2}} without its last chunk', {}, 'unreachable'],
    ['{{up:cut-off 2}}{{up:header connection: close}} on a last connection', {}, 'unreachable'],
    ['{{up:hang-after 2}} silent', { idleMs: 300 }, 'timeout'],
  ])('makes a stream fail after the received bytes: %s', async (text, timings, kind) => {
    const reads = await gateway({ timings }).stream(streamCall(text))
    let seen = ''
    const failure = await failureOf(
      (async () => {
        for (let step = await reads.next(); !step.done; step = await reads.next())
          seen += Buffer.from(step.value)
      })(),
    )
    expect(failure.kind).toBe(kind)
    expect(seen.match(/data: /g)).toHaveLength(2)
    expect(await reads.next()).toEqual(iteratorDone)
  })
})
