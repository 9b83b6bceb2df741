/**
 * Tests graceful shutdown: open requests may finish, slow ones get an error, and idle connections do not delay the
 * exit.
 */
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { open } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { callServer, makeFolder, type RunningServer, startParley, startServer } from '../support/process.ts'
import { startUpstream, type Upstream } from '../support/start-upstream.ts'

// Starting processes is slow on a busy machine.
vi.setConfig({ testTimeout: 60_000 })

/** Longer than the test timeout, so that a test that waits for the grace period fails. */
const LONG_GRACE = { PARLEY_SHUTDOWN_SECONDS: '600' }
const SHORT_GRACE = { PARLEY_SHUTDOWN_SECONDS: '0.3' }

interface OpenStream {
  /** The bytes of the first read. */
  readonly start: string
  /** The whole stream, once it has ended. */
  readonly whole: Promise<string>
}

const chatBody = (content: string, stream: boolean) => ({
  stream,
  messages: [{ role: 'user', content }],
})

/** Opens a stream and waits for its first bytes. */
async function openStream({ url, key }: RunningServer, content: string): Promise<OpenStream> {
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
    body: JSON.stringify(chatBody(content, true)),
  })
  if (response.body === null) throw new Error('a stream has a body')
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
  const start = (await reader.read()).value ?? ''
  const readRest = async () => {
    let text = start
    for (let next = await reader.read(); !next.done; next = await reader.read()) text += next.value
    return text
  }
  return { start, whole: readRest() }
}

/** Signals the server to stop, and waits until it reports that. */
async function beginStop(server: RunningServer, signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
  server.kill(signal)
  await server.prints(/received: finishing open requests.*\n/, 'stderr')
}

/** Opens a raw connection that sends bytes exactly as written. */
async function openSocket(
  url: string,
): Promise<{ socket: Socket; hears: (text: string) => Promise<string> }> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1').setEncoding('utf8')
  onTestFinished(() => void socket.destroy())
  let heard = ''
  socket.on('data', (text: string) => {
    heard += text
  })
  const hears = (text: string) =>
    new Promise<string>((resolve, reject) => {
      const look = () => heard.includes(text) && resolve(heard)
      socket.on('data', look).once('close', () => reject(new Error(`the connection closed after: ${heard}`)))
      look()
    })
  return { socket, hears }
}

async function startBehindGateway(
  env: Record<string, string>,
): Promise<{ server: RunningServer; upstream: Upstream }> {
  const upstream = await startUpstream()
  onTestFinished(() => upstream.stop())
  const gateway = { PARLEY_BACKEND: 'gateway', PARLEY_GATEWAY_URL: upstream.url }
  return { server: await startServer({ folder: await makeFolder(), env: { ...gateway, ...env } }), upstream }
}

describe('when the server is stopped, an open stream', () => {
  test.each(['SIGTERM', 'SIGINT'] as const)(
    'is completed when it ends within the grace period (%s)',
    async (signal) => {
      const server = await startServer({ folder: await makeFolder(), env: LONG_GRACE })
      const stream = await openStream(server, '[[tokens:8]] [[delay:60]]')
      await beginStop(server, signal)
      const text = await stream.whole
      expect(text.length).toBeGreaterThan(stream.start.length)
      expect(text.endsWith('data: [DONE]\n\n')).toBe(true)
      expect(await server.ended).toMatchObject({ code: 0 })
    },
  )

  test.each([
    ['a stream that sends all the time', '[[tokens:100000]] [[delay:20]]'],
    ['a stream that has sent only a comment', '[[hang]]'],
  ])('ends with an error event and without [DONE] (%s)', async (_title, content) => {
    const env = { ...SHORT_GRACE, PARLEY_HEARTBEAT_SECONDS: '0.1' }
    const server = await startServer({ folder: await makeFolder(), env })
    const stream = await openStream(server, content)
    await beginStop(server)
    const events = (await stream.whole).split('\n\n')
    expect(events.at(-1)).toBe('')
    expect(JSON.parse(events.at(-2)?.replace('data: ', '') ?? '')).toEqual({
      error: { message: expect.any(String), type: 'server_error', param: null, code: 'service_unavailable' },
    })
    expect(events.join()).not.toContain('[DONE]')
    expect(await server.ended).toMatchObject({ code: 0 })
  })

  test('is also closed at the model provider', async () => {
    const { server, upstream } = await startBehindGateway(SHORT_GRACE)
    const stream = await openStream(server, 'endless {{up:hang-after 2}}')
    const request = await upstream.waitForRequest('endless')
    await beginStop(server)
    expect((await upstream.waitForEnd(request.id)).endedBy).toBe('client')
    expect(await stream.whole).toContain('service_unavailable')
    expect(await server.ended).toMatchObject({ code: 0 })
  })
})

describe('a server that is stopped before it listens', () => {
  test.each(['SIGTERM', 'SIGINT'] as const)(
    'exits with code 0 while it reads its settings (%s)',
    async (signal) => {
      const folder = await makeFolder()
      const secretFile = join(folder, 'secret')
      expect(spawnSync('mkfifo', [secretFile]).status).toBe(0)
      const server = startParley(['serve'], { folder, env: { PORT: '0', PARLEY_SECRET_FILE: secretFile } })
      // The open call blocks until the server has opened the pipe for reading.
      await using pipe = await open(secretFile, 'w')
      server.kill(signal)
      await pipe.writeFile('a secret that is long enough for it')
      await pipe.close()
      expect(await server.ended).toMatchObject({ code: 0, signal: null })
    },
  )

  test('still prints the key that it created', async () => {
    const upstream = await startUpstream()
    onTestFinished(() => upstream.stop())
    await upstream.script('/v1/models', '{{up:hang}}')
    const env = { PORT: '0', PARLEY_BACKEND: 'gateway', PARLEY_GATEWAY_URL: upstream.url }
    const server = startParley(['serve'], { folder: await makeFolder(), env })
    await upstream.waitForPath('/v1/models')
    expect(server.stdout).toBe('')
    server.kill('SIGTERM')
    expect(await server.ended).toMatchObject({ code: 0, stdout: expect.stringMatching(/ svc_\w{61}\n/) })
  })
})

describe('an open request without streaming', () => {
  test('completes within the grace period, and its idle connection does not delay the exit', async () => {
    const { server, upstream } = await startBehindGateway(LONG_GRACE)
    const { socket, hears } = await openSocket(server.url)
    const body = JSON.stringify(chatBody('slow one {{up:slow-head 300}}', false))
    const head = `POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${server.key}`
    socket.write(`${head}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`)
    await upstream.waitForRequest('slow one')
    await beginStop(server)
    expect(await hears('"usage"')).toMatch(/^HTTP\/1.1 200 /)
    expect(await server.ended).toMatchObject({ code: 0 })
  })

  test('returns 503 when it outlasts the grace period', async () => {
    const server = await startServer({ folder: await makeFolder(), env: SHORT_GRACE })
    const body = chatBody('[[hang]]', false)
    const answer = callServer(server.url, 'POST', '/v1/chat/completions', server.key, body)
    // The server responds on a later connection, so the first request has reached it by then.
    await callServer(server.url, 'GET', '/v1/keys/validate', server.key)
    await beginStop(server)
    expect(await answer).toMatchObject({ status: 503, body: { error: { code: 'service_unavailable' } } })
    expect(await server.ended).toMatchObject({ code: 0 })
  })
})

/** Connects once; returns `connected`, or the code of the error. */
async function tryConnect(url: string): Promise<string> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  try {
    await once(socket, 'connect')
    return 'connected'
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? ''
  } finally {
    socket.destroy()
  }
}

describe('a stopping server', () => {
  test('announces the stop on open connections, closes them and does not accept new ones', async () => {
    const server = await startServer({ folder: await makeFolder(), env: LONG_GRACE })
    const { socket, hears } = await openSocket(server.url)
    // The response to the first request proves that the beginning of the second has arrived.
    socket.write('GET /healthz HTTP/1.1\r\nHost: a\r\n\r\nGET /readyz HTTP/1.1\r\nHost: a\r\n')
    await hears('"ok"')
    await beginStop(server)
    // The server first accepts the connections that already wait.
    await expect.poll(() => tryConnect(server.url)).toBe('ECONNREFUSED')
    socket.write('\r\n')
    const heard = await hears('draining')
    expect(heard).toContain('HTTP/1.1 503 ')
    expect(heard).toMatch(/^Connection: close\r$/im)
    expect(await server.ended).toMatchObject({ code: 0 })
  })

  test('does not wait for idle connections', async () => {
    const server = await startServer({ folder: await makeFolder(), env: LONG_GRACE })
    const { socket, hears } = await openSocket(server.url)
    socket.write('GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n')
    expect(await hears('"ok"')).toMatch(/^Connection: keep-alive\r$/im)
    expect(await server.stop()).toMatchObject({ code: 0 })
  })

  test('does not wait for connections without any request', async () => {
    const server = await startServer({ folder: await makeFolder(), env: LONG_GRACE })
    const { socket } = await openSocket(server.url)
    await once(socket, 'connect')
    await callServer(server.url, 'GET', '/healthz')
    expect(await server.stop()).toMatchObject({ code: 0 })
  })

  test('exits immediately on a second signal', async () => {
    const server = await startServer({ folder: await makeFolder(), env: LONG_GRACE })
    const stream = await openStream(server, '[[tokens:100000]] [[delay:20]]')
    const cut = expect(stream.whole).rejects.toThrow()
    await beginStop(server)
    server.kill('SIGTERM')
    expect(await server.ended).toMatchObject({ code: 1 })
    await cut
  })

  test('checkpoints its database and releases the data directory', async () => {
    const folder = await makeFolder()
    await (await startServer({ folder })).stop()
    const second = await startServer({ folder })
    expect(second.stderr).toBe('')
  })
})

describe('an uncaught error', () => {
  /** A module, loaded before the server's code, that throws on SIGUSR2. */
  const bomb = (what: string) =>
    `data:text/javascript,process.on('SIGUSR2', () => { ${encodeURIComponent(what)} })`

  test.each([
    ['an exception', `throw new Error('boom')`],
    ['a rejection', `Promise.reject(new Error('boom'))`],
  ])('(%s) lets open requests finish and then ends the process with exit code 1', async (_title, what) => {
    const nodeOptions = ['--import', bomb(what)]
    const server = await startServer({ folder: await makeFolder(), nodeOptions })
    const stream = await openStream(server, '[[tokens:8]] [[delay:60]]')
    server.kill('SIGUSR2')
    expect((await stream.whole).endsWith('data: [DONE]\n\n')).toBe(true)
    const { code, stderr } = await server.ended
    expect(code).toBe(1)
    expect(JSON.parse(stderr)).toMatchObject({ level: 60, err: { message: 'boom' } })
  })
})

describe('a request that reached a busy server before the signal', () => {
  test('receives a response even if its connection was not yet accepted', async () => {
    const server = await startServer({ folder: await makeFolder(), env: LONG_GRACE })
    server.kill('SIGSTOP')
    const clients = await Promise.all(Array.from({ length: 20 }, () => openSocket(server.url)))
    await Promise.all(clients.map(({ socket }) => once(socket, 'connect')))
    const answers = clients.map(({ socket, hears }) => {
      socket.write('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n')
      return hears('{"status":"ok"}')
    })
    server.kill('SIGTERM')
    server.kill('SIGCONT')
    for (const answer of await Promise.all(answers)) expect(answer).toContain('200 OK')
    expect(await server.ended).toMatchObject({ code: 0 })
  })
})

test('a response that begins after the stop signal closes its connection', async () => {
  const { server, upstream } = await startBehindGateway(LONG_GRACE)
  const { socket, hears } = await openSocket(server.url)
  const body = JSON.stringify({ model: 'up-chat', ...chatBody('{{up:slow-head 1500}}', false) })
  socket.write(
    `POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${server.key}\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  )
  await upstream.waitForRequest('slow-head')
  await beginStop(server)
  expect(await hears('"finish_reason"')).toMatch(/^HTTP\/1\.1 200 [\s\S]*\r\nConnection: close\r\n/)
})
