/** The gateway backend against a scripted upstream in a second process: what passes, what fails, what stops. */

import { getEventListeners } from 'node:events'
import { type AddressInfo, createServer, type LookupFunction, type Server, type Socket } from 'node:net'
import fc from 'fast-check'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { BackendFailure, type ChatBackend } from '../src/chat/backend.ts'
import { createGatewayBackend, type GatewayOptions } from '../src/chat/backends/gateway.ts'
import { startUpstream, type Upstream } from './support/start-upstream.ts'

const apiKey = 'provider-key-0123456789'
const patient = { connectMs: 10_000, firstByteMs: 15_000, idleMs: 15_000 }
const never = new AbortController().signal

let upstream: Upstream
const backends: ChatBackend[] = []
const servers: { server: Server; sockets: Set<Socket> }[] = []

beforeAll(async () => {
  upstream = await startUpstream()
})

afterEach(async () => {
  await Promise.all(backends.splice(0).map((backend) => backend.close()))
  for (const { server, sockets } of servers.splice(0)) {
    for (const socket of sockets) socket.destroy()
    server.close()
  }
  await upstream.clear()
})

afterAll(() => upstream.stop())

function gateway(options: Partial<GatewayOptions> = {}): ChatBackend {
  const backend = createGatewayBackend({
    name: 'gateway',
    url: upstream.url,
    apiKey,
    timings: patient,
    ...options,
  })
  backends.push(backend)
  return backend
}

/** A TCP server that does what `onConnection` says, on a free port. */
async function listen(onConnection: (socket: Socket) => void): Promise<number> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    // The other side may reset what this test leaves open.
    socket.on('error', () => {})
    onConnection(socket)
  })
  servers.push({ server, sockets })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return (server.address() as AddressInfo).port
}

function ask(text: string, signal: AbortSignal = never, more: Record<string, unknown> = {}) {
  return { body: { model: 'up-chat', messages: [{ role: 'user', content: text }], ...more }, signal }
}

function askForStream(text: string, signal: AbortSignal = never, more: Record<string, unknown> = {}) {
  return ask(text, signal, { stream: true, ...more })
}

async function readAll(reads: AsyncIterator<Uint8Array, void, void>): Promise<Buffer> {
  const found: Uint8Array[] = []
  for (let step = await reads.next(); !step.done; step = await reads.next()) found.push(step.value)
  return Buffer.concat(found)
}

/** The bytes the upstream sends for a body, read without the gateway backend. */
async function readDirectly(body: unknown): Promise<Buffer> {
  const answer = await fetch(`${upstream.url}/chat/completions`, {
    method: 'POST',
    body: JSON.stringify(body),
  })
  return Buffer.from(await answer.arrayBuffer())
}

async function failureOf(promise: Promise<unknown>): Promise<BackendFailure> {
  const thrown = await promise.then(
    () => undefined,
    (reason) => reason,
  )
  expect(thrown).toBeInstanceOf(BackendFailure)
  return thrown as BackendFailure
}

/** Both ways of asking, for what holds for both. */
const ways = [
  [
    'complete',
    (backend: ChatBackend, text: string, signal?: AbortSignal) => backend.complete(ask(text, signal)),
  ],
  [
    'stream',
    (backend: ChatBackend, text: string, signal?: AbortSignal) => backend.stream(askForStream(text, signal)),
  ],
] as const

describe('a completion', () => {
  test('arrives byte for byte', async () => {
    const request = ask('héllo {{up:cut 7}}')
    expect(Buffer.from(await gateway().complete(request))).toEqual(await readDirectly(request.body))
  })

  test('is asked for with the body as given, our own headers and the key', async () => {
    const request = ask('headers', never, { temperature: 0.5, nested: { kept: [1, null, 'é'] } })
    await gateway().complete(request)
    const [seen] = await upstream.listRequests()
    expect(seen).toMatchObject({ method: 'POST', path: '/v1/chat/completions', body: request.body })
    expect(seen?.headers).toEqual({
      host: upstream.origin.slice('http://'.length),
      connection: 'keep-alive',
      'content-type': 'application/json',
      'content-length': String(Buffer.byteLength(JSON.stringify(request.body))),
      accept: 'application/json',
      'accept-encoding': 'identity',
      'user-agent': 'parley',
      authorization: `Bearer ${apiKey}`,
    })
  })

  test('is asked for without authorization when there is no key, or an empty one', async () => {
    const backend = createGatewayBackend({ name: 'gateway', url: upstream.url, timings: patient })
    backends.push(backend)
    await backend.complete(ask('anonymous'))
    const failure = await failureOf(
      gateway({ apiKey: '' }).complete(ask('{{up:status 400}}{{up:message no}}')),
    )
    expect(failure.said?.message).toBe('no')
    for (const { headers } of await upstream.listRequests())
      expect(headers).not.toHaveProperty('authorization')
  })

  test('is found below a base URL with a trailing slash and a query', async () => {
    await gateway({ url: `${upstream.url}/?api-version=1` }).complete(ask('path'))
    expect((await upstream.listRequests())[0]?.path).toBe('/v1/chat/completions?api-version=1')
  })

  test('uses the connection of the one before', async () => {
    const backend = gateway()
    await backend.complete(ask('first'))
    // undici frees the connection only after another turn of the event loop.
    await upstream.listRequests()
    await backend.complete(ask('second'))
    const [first, second] = await upstream.listRequests()
    expect(second?.connection).toBe(first?.connection)
  })

  test('larger than the limit is a protocol failure', async () => {
    const text = `{{up:text ${'x'.repeat(5_000)}}}`
    const failure = await failureOf(gateway({ maxAnswerBytes: 4_000 }).complete(ask(text)))
    expect(failure.kind).toBe('protocol')
    expect((await gateway({ maxAnswerBytes: 6_000 }).complete(ask(text))).length).toBeGreaterThan(5_000)
  })
})

describe('a stream', () => {
  test.each([
    'plain words',
    '{{up:chunks 500}}',
    '{{up:drip}} ünïcödé 🎈',
    '{{up:crlf}} line ends',
    '{{up:comments}} pings',
    '{{up:python}} späces 🎈',
    '{{up:tight}} no space',
    '{{up:bad-json 2}} broken JSON',
    '{{up:half-line 2}} half a line',
    '{{up:no-finish}} no finish reason',
    '{{up:no-done}} no end marker',
    '{{up:error-frame 2}} an error frame',
    '{{up:giant 1500000}} a giant line',
    '{{up:until-close}} no framing',
    '{{up:reasoning let me think}} reasoning',
    '{{up:tool weather {"city":"Oslo","days":[1,2]}}} a tool call',
    '{{up:end-after 0}} nothing at all',
  ])('arrives byte for byte: %s', async (text) => {
    const request = askForStream(text, never, { n: 2, stream_options: { include_usage: true } })
    const bytes = await readAll(await gateway().stream(request))
    expect(bytes).toEqual(await readDirectly(request.body))
  })

  test('arrives unchanged however the network cuts it', async () => {
    const backend = gateway()
    const text = fc.string({ unit: 'grapheme', maxLength: 60 }).filter((each) => !each.includes('{{up:'))
    await fc.assert(
      fc.asyncProperty(text, fc.nat(), async (words, seed) => {
        const { body } = askForStream(words)
        const cut = askForStream(`${words}{{up:cut ${seed}}}`)
        expect(await readAll(await backend.stream(cut))).toEqual(await readDirectly(body))
      }),
      { numRuns: 40 },
    )
  })

  test('hands over each event while the upstream still works on the next', async () => {
    const reads = await gateway().stream(askForStream('{{up:hang-after 2}} slow'))
    let text = ''
    while (!text.includes('"content":"Upstream"'))
      text += Buffer.from((await reads.next()).value ?? []).toString()
    expect(text.match(/data: /g)).toHaveLength(2)
  })

  test('resolves at the head, before the first event', async () => {
    const reads = await gateway().stream(askForStream('{{up:hang-after 0}} head only'))
    expect(reads.next).toBeTypeOf('function')
  })

  test('left early ends the call at the upstream', async () => {
    const reads = await gateway().stream(askForStream('{{up:hang-after 2}} left early'))
    await reads.next()
    const waiting = reads.next()
    expect(await reads.return?.()).toEqual({ done: true, value: undefined })
    expect(await waiting).toEqual({ done: true, value: undefined })
    expect(await reads.next()).toEqual({ done: true, value: undefined })
    const { id } = await upstream.waitForRequest('left early')
    expect((await upstream.waitForEnd(id)).endedBy).toBe('client')
  })

  test('waits for a slow reader, without losing a byte or running into the idle limit', async () => {
    const size = 64 * 1024 * 1024
    const reads = await gateway({ timings: { ...patient, idleMs: 400 } }).stream(
      askForStream(`{{up:flood ${size}}}`),
    )
    await reads.next()
    const { id } = await upstream.waitForRequest('{{up:flood')
    const stalled = await upstream.waitForStall(id, 2_500)
    expect(stalled.endedBy).toBeNull()
    expect(stalled.sentBytes).toBeLessThan(size / 2)
    let count = 0
    for (let step = await reads.next(); !step.done; step = await reads.next()) count += step.value.length
    expect(count).toBeGreaterThan(size - stalled.sentBytes)
    expect((await upstream.waitForEnd(id)).endedBy).toBe('answer')
  })

  test('does not wait for other streams', async () => {
    const backend = gateway()
    const streams = await Promise.all(
      Array.from({ length: 300 }, () => backend.stream(askForStream('{{up:hang-after 1}} many'))),
    )
    expect(await Promise.all(streams.map(async (reads) => (await reads.next()).done))).not.toContain(true)
    expect(await upstream.listRequests()).toHaveLength(300)
  })
})

describe.each(ways)('a failed call (%s)', (_way, call) => {
  test.each([
    ['{{up:reset}} reset before the head', 'unreachable'],
    ['{{up:close}} closed before the head', 'unreachable'],
    ['{{up:type text/html}} a web page', 'protocol'],
    ['{{up:type text/plain; charset=utf-8}} a text', 'protocol'],
    ['{{up:header content-encoding: gzip}} encoded without being asked', 'protocol'],
    [`{{up:header x-large: ${'x'.repeat(20_000)}}} a head beyond the limit`, 'protocol'],
  ])('%s', async (text, kind) => {
    expect(await failureOf(call(gateway(), text))).toMatchObject({ kind, status: undefined, said: undefined })
  })

  test('no head in time is a timeout, and the upstream is let go', async () => {
    const failure = await failureOf(
      call(gateway({ timings: { ...patient, firstByteMs: 300 } }), '{{up:hang}} late'),
    )
    expect(failure.kind).toBe('timeout')
    const { id } = await upstream.waitForRequest('late')
    expect((await upstream.waitForEnd(id)).endedBy).toBe('client')
  })

  test('no connection in time is a timeout', async () => {
    // A TLS handshake nobody answers.
    const port = await listen(() => {})
    const url = `https://127.0.0.1:${port}/v1`
    const failure = await failureOf(call(gateway({ url, timings: { ...patient, connectMs: 300 } }), 'hello'))
    expect(failure.kind).toBe('timeout')
  })

  test('a refused connection is unreachable', async () => {
    const port = await listen(() => {})
    servers.pop()?.server.close()
    const failure = await failureOf(call(gateway({ url: `http://127.0.0.1:${port}/v1` }), 'hello'))
    expect(failure).toMatchObject({ kind: 'unreachable', cause: { code: 'ECONNREFUSED' } })
  })

  test('a server without TLS behind an https address is unreachable', async () => {
    const url = upstream.url.replace('http:', 'https:')
    expect((await failureOf(call(gateway({ url }), 'hello'))).kind).toBe('unreachable')
  })

  test('an unknown name is unreachable', async () => {
    const lookup: LookupFunction = (_name, _options, callback) =>
      callback(Object.assign(new Error('no such name'), { code: 'ENOTFOUND' }), [])
    const failure = await failureOf(call(gateway({ url: 'http://runner.test/v1', lookup }), 'hello'))
    expect(failure).toMatchObject({ kind: 'unreachable', cause: { code: 'ENOTFOUND' } })
  })

  test('a server that does not speak HTTP is a protocol failure', async () => {
    const port = await listen((socket) => socket.end('SSH-2.0-OpenSSH_9.6\r\n'))
    const failure = await failureOf(call(gateway({ url: `http://127.0.0.1:${port}/v1` }), 'hello'))
    expect(failure.kind).toBe('protocol')
  })

  test('a kept connection that the upstream closes is unreachable, and the next call gets a new one', async () => {
    const backend = gateway()
    await backend.complete(ask('one'))
    await upstream.listRequests()
    expect((await failureOf(call(backend, '{{up:close}} two'))).kind).toBe('unreachable')
    await backend.complete(ask('three'))
    const [one, two, three] = await upstream.listRequests()
    expect(two?.connection).toBe(one?.connection)
    expect(three?.connection).not.toBe(two?.connection)
  })

  test('is not failed by an informational answer', async () => {
    expect(await call(gateway(), '{{up:hints}} hello')).toBeTypeOf('object')
  })

  test('a redirect is not followed', async () => {
    const other = await startUpstream()
    try {
      const text = `{{up:redirect ${other.url}/chat/completions}}`
      expect(await failureOf(call(gateway(), text))).toMatchObject({ kind: 'status', status: 307 })
      expect(await other.listRequests()).toEqual([])
    } finally {
      await other.stop()
    }
  })

  test.each([
    ['http://169.254.169.254/v1'],
    ['http://[fe80::1]/v1'],
    ['http://[fd00:ec2::254]/v1'],
    ['http://[::ffff:169.254.1.1]/v1'],
    ['http://100.100.100.200/v1'],
  ])('%s is refused before a connection is made', async (url) => {
    const failure = await failureOf(call(gateway({ url }), 'hello'))
    expect(failure.kind).toBe('unreachable')
    expect(String(failure.cause)).toMatch(/link-local or metadata/)
  })

  test('a name that leads to a metadata address is refused, whatever else it leads to', async () => {
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

test('a name that leads to the loopback interface is allowed', async () => {
  const url = upstream.url.replace('127.0.0.1', 'localhost')
  expect(await gateway({ url }).complete(ask('hello'))).toBeInstanceOf(Uint8Array)
})

describe('a body that breaks off', () => {
  test.each([
    ['{{up:reset-after}} reset', patient, 'unreachable'],
    ['{{up:cut-off}} shorter than its length', patient, 'unreachable'],
    ['{{up:hang-after}} never ending', { ...patient, idleMs: 300 }, 'timeout'],
  ])('fails a completion: %s', async (text, timings, kind) => {
    expect((await failureOf(gateway({ timings }).complete(ask(text)))).kind).toBe(kind)
  })

  test.each([
    ['{{up:reset-after 2}} reset', patient, 'unreachable'],
    ['{{up:cut-off 2}} without its last chunk', patient, 'unreachable'],
    ['{{up:cut-off 2}}{{up:header connection: close}} on a last connection', patient, 'unreachable'],
    ['{{up:hang-after 2}} silent', { ...patient, idleMs: 300 }, 'timeout'],
  ])('fails a stream after its bytes, once: %s', async (text, timings, kind) => {
    const reads = await gateway({ timings }).stream(askForStream(text))
    let seen = ''
    const failure = await failureOf(
      (async () => {
        for (let step = await reads.next(); !step.done; step = await reads.next())
          seen += Buffer.from(step.value)
      })(),
    )
    expect(failure.kind).toBe(kind)
    expect(seen.match(/data: /g)).toHaveLength(2)
    expect(await reads.next()).toEqual({ done: true, value: undefined })
  })
})

describe.each(ways)('a refusal (%s)', (_way, call) => {
  test.each([400, 409, 413, 415, 422])('%i says what the backend said', async (status) => {
    const body =
      '{"error":{"message":"too many tokens","type":"x","code":"context_length","param":"messages"}}'
    const failure = await failureOf(call(gateway(), `{{up:status ${status}}}{{up:body ${body}}}`))
    expect(failure).toMatchObject({
      kind: 'status',
      status,
      said: { message: 'too many tokens', code: 'context_length', param: 'messages' },
    })
  })

  test.each([401, 402, 403, 404, 408, 429, 500, 502, 503, 529])('%i says nothing', async (status) => {
    const failure = await failureOf(call(gateway(), `{{up:status ${status}}}{{up:message secret detail}}`))
    expect(failure).toMatchObject({ kind: 'status', status, said: undefined })
    expect(failure.message).not.toContain('secret')
  })
})

describe('what a refusal says', () => {
  const saidOf = async (body: string, more = '') =>
    (await failureOf(gateway().complete(ask(`{{up:status 400}}{{up:body ${body}}}${more}`)))).said

  test.each([
    ['{"error":"text"}', { message: 'text' }],
    ['{"message":"text","code":"c","param":"p"}', { message: 'text', code: 'c', param: 'p' }],
    [
      '{"object":"error","message":"text","type":"BadRequestError","param":null,"code":400}',
      { message: 'text' },
    ],
    ['{"detail":"text"}', { message: 'text' }],
    ['{"detail":[{"loc":["body","n"],"msg":"text","type":"int"}]}', { message: 'text' }],
    ['{"error":{"message":"text","code":null,"param":null}}', { message: 'text' }],
    ['{"error":{"message":""}}', undefined],
    ['{"error":{"message":["text"]}}', undefined],
    ['{"error":null}', undefined],
    ['["text"]', undefined],
    ['null', undefined],
    ['<html>text</html>', undefined],
  ])('%s', async (body, said) => {
    expect(await saidOf(body)).toEqual(said)
  })

  test.each([
    [`wrong key ${apiKey}.`, 'wrong key [redacted].'],
    ['header was Bearer abc.def-ghi!', 'header was Bearer [redacted]'],
    ['key sk-proj-a1b2c3d4e5 is not valid', 'key [redacted] is not valid'],
    ['key sk-a1b2****c3d4.', 'key [redacted]'],
    ['a risk-free model', 'a risk-free model'],
  ])('%s becomes %s', async (message, shown) => {
    const body = JSON.stringify({ error: { message, code: message, param: message } })
    expect(await saidOf(body)).toEqual({ message: shown, code: shown, param: shown })
  })

  test('at most 500 characters, none of them half, and no key that the limit would cut', async () => {
    expect((await saidOf(JSON.stringify({ message: 'x'.repeat(2_000) })))?.message).toBe('x'.repeat(500))
    const said = await saidOf(JSON.stringify({ message: `${'x'.repeat(499)}🎈` }))
    expect(said?.message.isWellFormed()).toBe(true)
    const cut = await saidOf(JSON.stringify({ message: `${'x '.repeat(245)}${apiKey}` }))
    expect(cut?.message).not.toContain(apiKey.slice(0, 8))
  })

  test('no more than 64 KiB of it are read', async () => {
    const text = '{{up:status 400}}{{up:until-close}}{{up:flood 100000000}} endless'
    expect(await failureOf(gateway().complete(ask(text)))).toMatchObject({ status: 400, said: undefined })
    const { id } = await upstream.waitForRequest('endless')
    expect((await upstream.waitForEnd(id)).endedBy).toBe('client')
  })

  test.each([
    ['{{up:status 503}}{{up:cut-off}}', patient],
    ['{{up:status 503}}{{up:reset-after}}', patient],
    ['{{up:status 503}}{{up:hang-after}}', { ...patient, idleMs: 300 }],
  ])('the status stands where its body breaks off: %s', async (text, timings) => {
    expect(await failureOf(gateway({ timings }).complete(ask(text)))).toMatchObject({
      kind: 'status',
      status: 503,
    })
  })

  test.each([
    ['{{up:retry-after 7}}', 7],
    ['{{up:retry-after 0}}', 0],
    ['{{up:retry-after 1.2}}', 2],
    ['{{up:retry-after Wed, 21 Oct 2026 07:28:30 GMT}}{{up:header date: Wed, 21 Oct 2026 07:28:00 GMT}}', 30],
    ['{{up:retry-after Wed, 21 Oct 2026 07:27:00 GMT}}{{up:header date: Wed, 21 Oct 2026 07:28:00 GMT}}', 0],
    ['{{up:retry-after soon}}', undefined],
    ['{{up:retry-after -5}}', undefined],
    ['', undefined],
  ])('Retry-After: %s means %s seconds', async (directive, seconds) => {
    const failure = await failureOf(gateway().complete(ask(`{{up:status 429}}${directive}`)))
    expect(failure.retryAfterSeconds).toBe(seconds)
  })
})

test('an upstream that fails at first answers later', async () => {
  const backend = gateway()
  const request = ask('{{up:first 2}}{{up:status 500}} shaky')
  expect(await failureOf(backend.complete(request))).toMatchObject({ status: 500 })
  expect(await failureOf(backend.complete(request))).toMatchObject({ status: 500 })
  expect(JSON.parse(String(await backend.complete(request)))).toMatchObject({ object: 'chat.completion' })
})

describe.each(ways)('an aborted call (%s)', (_way, call) => {
  const reason = new Error('the caller left')

  test('is not made when it was aborted before', async () => {
    await expect(call(gateway(), 'too late', AbortSignal.abort(reason))).rejects.toBe(reason)
    expect(await upstream.listRequests()).toEqual([])
  })

  test('stops while connecting', async () => {
    // A TLS handshake nobody answers.
    const port = await listen(() => {})
    const abort = new AbortController()
    const calling = call(gateway({ url: `https://127.0.0.1:${port}/v1` }), 'hello', abort.signal)
    abort.abort(reason)
    await expect(calling).rejects.toBe(reason)
  })

  test('is not sent once the connection it waited for is there', async () => {
    const abort = new AbortController()
    const backend = gateway()
    const calling = call(backend, 'never sent', abort.signal)
    abort.abort(reason)
    await expect(calling).rejects.toBe(reason)
    await backend.complete(ask('sent'))
    expect((await upstream.listRequests()).map((seen) => JSON.stringify(seen.body))).toEqual([
      expect.stringContaining('"sent"'),
    ])
  })

  test('stops while waiting for the head', async () => {
    const abort = new AbortController()
    const calling = call(gateway(), '{{up:hang}} no head', abort.signal)
    const { id } = await upstream.waitForRequest('no head')
    abort.abort(reason)
    await expect(calling).rejects.toBe(reason)
    expect((await upstream.waitForEnd(id)).endedBy).toBe('client')
  })
})

describe('an abort in mid-answer', () => {
  const reason = new Error('the caller left')

  test('stops a completion', async () => {
    const abort = new AbortController()
    const calling = gateway().complete(ask('{{up:hang-after}} half a body', abort.signal))
    const { id } = await upstream.waitForRequest('half a body')
    // By its answer to a second question the upstream has sent the half.
    expect((await upstream.listRequests())[0]?.sentBytes).toBeGreaterThan(0)
    abort.abort(reason)
    await expect(calling).rejects.toBe(reason)
    expect((await upstream.waitForEnd(id)).endedBy).toBe('client')
  })

  test('stops a stream that waits for the next event', async () => {
    const abort = new AbortController()
    const reads = await gateway().stream(askForStream('{{up:hang-after 2}} half a stream', abort.signal))
    let waiting = reads.next()
    for (let text = ''; text.split('data: ').length < 3; waiting = reads.next()) {
      text += Buffer.from((await waiting).value ?? [])
    }
    abort.abort(reason)
    await expect(waiting).rejects.toBe(reason)
    expect(await reads.next()).toEqual({ done: true, value: undefined })
    const { id } = await upstream.waitForRequest('half a stream')
    expect((await upstream.waitForEnd(id)).endedBy).toBe('client')
  })

  test('drops what a slow reader has not taken', async () => {
    const abort = new AbortController()
    const reads = await gateway().stream(askForStream('{{up:flood 50000000}} unread', abort.signal))
    const { id } = await upstream.waitForRequest('unread')
    await upstream.waitForStall(id, 100)
    abort.abort(reason)
    await expect(reads.next()).rejects.toBe(reason)
    expect(await reads.next()).toEqual({ done: true, value: undefined })
    expect((await upstream.waitForEnd(id)).endedBy).toBe('client')
  })
})

describe('a signal that outlives its calls', () => {
  test.each([
    ['a completion', (signal: AbortSignal) => gateway().complete(ask('whole', signal))],
    ['a failure', (signal: AbortSignal) => failureOf(gateway().complete(ask('{{up:reset}}', signal)))],
    [
      'a refusal',
      (signal: AbortSignal) => failureOf(gateway().stream(askForStream('{{up:status 500}}', signal))),
    ],
    [
      'a stream',
      async (signal: AbortSignal) => readAll(await gateway().stream(askForStream('whole', signal))),
    ],
    [
      'a stream left early',
      async (signal: AbortSignal) =>
        (await gateway().stream(askForStream('{{up:hang-after 1}}', signal))).return?.(),
    ],
  ])('keeps nothing of %s', async (_what, call) => {
    const { signal } = new AbortController()
    await call(signal)
    expect(getEventListeners(signal, 'abort')).toEqual([])
  })
})

describe('the model list', () => {
  const list = (...data: unknown[]) => JSON.stringify({ object: 'list', data })

  test('is read from the path beside the chat', async () => {
    const models = await gateway().listModels(never)
    expect(models).toEqual([
      { id: 'up-chat', created: 1_700_000_000, ownedBy: 'upstream', contextLength: 8192, chats: true },
      { id: 'up-small', created: 1_700_000_001, ownedBy: 'upstream', contextLength: 2048, chats: true },
      { id: 'up-embedding', created: 1_700_000_002, ownedBy: 'upstream', chats: false },
    ])
    const [seen] = await upstream.listRequests()
    expect(seen).toMatchObject({ method: 'GET', path: '/v1/models', body: null })
    expect(seen?.headers).toMatchObject({ authorization: `Bearer ${apiKey}` })
    expect(seen?.headers).not.toHaveProperty('content-type')
  })

  test.each([
    [{ id: 'm', context_length: 4096 }, { contextLength: 4096 }],
    [{ id: 'm', max_model_len: 4096 }, { contextLength: 4096 }],
    [{ id: 'm', context_window: 4096 }, { contextLength: 4096 }],
    [{ id: 'm', meta: { n_ctx_train: 4096 } }, { contextLength: 4096 }],
    [
      { id: 'm', context_length: null, max_model_len: '9', context_window: 0, meta: { n_ctx_train: 4096 } },
      { contextLength: 4096 },
    ],
    [{ id: 'm', meta: null }, {}],
    [{ id: 'm', created: 'yesterday', owned_by: 7 }, {}],
  ])('%j is read', async (listed, found) => {
    await upstream.script('/v1/models', `{{up:body ${list(listed)}}}`)
    expect(await gateway().listModels(never)).toEqual([
      { id: 'm', created: 0, ownedBy: 'gateway', chats: true, ...found },
    ])
  })

  test.each(['text-embedding-3-small', 'nomic-EMBED-text', 'org/Embedding'])(
    '%s does not chat',
    async (id) => {
      await upstream.script('/v1/models', `{{up:body ${list({ id })}}}`)
      expect(await gateway().listModels(never)).toMatchObject([{ id, chats: false }])
    },
  )

  test('leaves out what is no model', async () => {
    await upstream.script(
      '/v1/models',
      `{{up:body ${list(null, 'm', 7, [], {}, { id: 7 }, { id: '' }, { id: 'm' })}}}`,
    )
    expect((await gateway().listModels(never)).map((model) => model.id)).toEqual(['m'])
  })

  test.each([
    ['{{up:body not JSON}}', { kind: 'protocol' }],
    ['{{up:body {"data":{}}}}', { kind: 'protocol' }],
    ['{{up:body null}}', { kind: 'protocol' }],
    ['{{up:type text/html}}', { kind: 'protocol' }],
    ['{{up:status 401}}', { kind: 'status', status: 401 }],
    ['{{up:reset}}', { kind: 'unreachable' }],
    ['{{up:hang}}', { kind: 'timeout' }],
    ['{{up:drip}}{{up:delay 40}}', { kind: 'timeout' }],
  ])('fails: %s', async (directive, failure) => {
    await upstream.script('/v1/models', directive)
    const backend = gateway({ timings: { ...patient, modelListMs: 400 } })
    expect(await failureOf(backend.listModels(never))).toMatchObject(failure)
  })

  test('is given up when the caller leaves', async () => {
    await upstream.script('/v1/models', '{{up:hang}}')
    const abort = new AbortController()
    const listing = gateway().listModels(abort.signal)
    const { id } = await upstream.waitForPath('/v1/models')
    const reason = new Error('the caller left')
    abort.abort(reason)
    await expect(listing).rejects.toBe(reason)
    expect((await upstream.waitForEnd(id)).endedBy).toBe('client')
  })
})

test('closing ends what is in flight, and nothing is sent after it', async () => {
  const backend = gateway()
  const waiting = failureOf(backend.complete(ask('{{up:hang}} in flight')))
  const reads = await backend.stream(askForStream('{{up:hang-after 0}} in flight'))
  const next = failureOf(reads.next())
  await upstream.waitForRequest('{{up:hang}} in flight')
  await backend.close()
  expect((await waiting).kind).toBe('unreachable')
  expect((await next).kind).toBe('unreachable')
  expect((await failureOf(backend.complete(ask('after')))).kind).toBe('unreachable')
  const requests = await upstream.listRequests()
  expect(requests).toHaveLength(2)
  for (const { id } of requests) expect((await upstream.waitForEnd(id)).endedBy).toBe('client')
})
