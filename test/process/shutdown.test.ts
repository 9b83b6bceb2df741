/** Tests that a stopping server finishes open requests, aborts slow ones and ignores idle connections. */
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

/** Exceeds the test timeout, so a test fails if the server waits for the whole grace period. */
const LONG_GRACE = { PARLEY_SHUTDOWN_SECONDS: '600' }
const SHORT_GRACE = { PARLEY_SHUTDOWN_SECONDS: '0.3' }

interface OpenStream {
  /** The text of the first chunk. */
  readonly start: string
  /** Resolves to the complete text when the stream ends. */
  readonly whole: Promise<string>
}

const chatBody = (content: string, stream: boolean) => ({
  stream,
  messages: [{ role: 'user', content }],
})

/** Starts a streamed chat completion and waits for its first chunk. */
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

/** Sends the signal, and waits until the server prints that it is stopping. */
async function beginStop(server: RunningServer, signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
  server.kill(signal)
  await server.prints(/received: finishing open requests.*\n/, 'stderr')
}

/** Opens a TCP connection; `hears` waits for a text and returns everything received. */
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

describe('an open stream of a stopping server', () => {
  test.each(['SIGTERM', 'SIGINT'] as const)(
    'is completed if it ends within the grace period (%s)',
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
    ['it sends continuously', '[[tokens:100000]] [[delay:20]]'],
    ['it has sent only a comment', '[[hang]]'],
  ])('ends with an error event instead of [DONE] after the grace period if %s', async (_title, content) => {
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

  test('is also cancelled at the model provider after the grace period', async () => {
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
    'exits with code 0 if it is still reading its settings (%s)',
    async (signal) => {
      const folder = await makeFolder()
      const secretFile = join(folder, 'secret')
      expect(spawnSync('mkfifo', [secretFile]).status).toBe(0)
      const server = startParley(['serve'], { folder, env: { PORT: '0', PARLEY_SECRET_FILE: secretFile } })
      // `open` blocks until the server opens the pipe for reading.
      await using pipe = await open(secretFile, 'w')
      server.kill(signal)
      await pipe.writeFile('a secret that is long enough for it')
      await pipe.close()
      expect(await server.ended).toMatchObject({ code: 0, signal: null })
    },
  )

  test('still prints the parent key that it has created', async () => {
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

describe('an open request that is not streamed', () => {
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

  test('receives 503 after the grace period', async () => {
    const server = await startServer({ folder: await makeFolder(), env: SHORT_GRACE })
    const body = chatBody('[[hang]]', false)
    const answer = callServer(server.url, 'POST', '/v1/chat/completions', server.key, body)
    // The response to a later request shows that the first request has reached the server.
    await callServer(server.url, 'GET', '/v1/keys/validate', server.key)
    await beginStop(server)
    expect(await answer).toMatchObject({ status: 503, body: { error: { code: 'service_unavailable' } } })
    expect(await server.ended).toMatchObject({ code: 0 })
  })
})

/** Tries to connect; returns `connected` or the error code. */
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
  test('returns 503 on open connections, closes them and refuses new ones', async () => {
    const server = await startServer({ folder: await makeFolder(), env: LONG_GRACE })
    const { socket, hears } = await openSocket(server.url)
    // The response to the first request shows that the partial second request has also arrived.
    socket.write('GET /healthz HTTP/1.1\r\nHost: a\r\n\r\nGET /readyz HTTP/1.1\r\nHost: a\r\n')
    await hears('"ok"')
    await beginStop(server)
    // The server still accepts connections that are already in its queue.
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

  test('does not wait for connections that have not sent a request', async () => {
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

  test('releases the data directory for the next server', async () => {
    const folder = await makeFolder()
    await (await startServer({ folder })).stop()
    const second = await startServer({ folder })
    expect(second.stderr).toBe('')
  })
})

describe('an uncaught error', () => {
  /** Returns the URL of a module that runs the statement on SIGUSR2. */
  const bomb = (what: string) =>
    `data:text/javascript,process.on('SIGUSR2', () => { ${encodeURIComponent(what)} })`

  test.each([
    ['an exception', `throw new Error('boom')`],
    ['a rejection', `Promise.reject(new Error('boom'))`],
  ])('(%s) stops the process with exit code 1 after open requests finish', async (_title, what) => {
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

describe('a request that arrives at a busy server before the stop signal', () => {
  test('receives a response even if the server has not yet accepted its connection', async () => {
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

test('the server closes the connection after a response that starts after the stop signal', async () => {
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
