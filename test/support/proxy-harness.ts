/** Starts two replicas for a reverse proxy, and sends requests to the proxy over TLS. */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import type { ClientRequest, IncomingMessage } from 'node:http'
import { connect, constants } from 'node:http2'
import { request } from 'node:https'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Agent, fetch as undiciFetch } from 'undici'
import { onTestFinished } from 'vitest'
import { openApp, type TestApp } from './app.ts'
import { forgeKey } from './forge-key.ts'
import { borrowDatabase } from './postgres.ts'
import { type Certificate, makeCertificate } from './proxies.ts'
import { startUpstream, type Upstream } from './start-upstream.ts'

/** The replicas and the model provider that all proxies of a test file use. */
export interface ProxyHarness {
  readonly certificate: Certificate
  readonly upstream: Upstream
  readonly apps: readonly [TestApp, TestApp]
  /** The replicas' addresses in the form `host:port`. */
  readonly replicas: readonly [string, string]
  readonly key: string
  stop(): Promise<void>
}

/** Starts replicas that trust proxies on this machine and use a scripted model provider. */
export async function startProxyHarness(more: Readonly<Record<string, string>>): Promise<ProxyHarness> {
  const folder = await mkdtemp(join(tmpdir(), 'parley-proxied-'))
  const database = await borrowDatabase()
  const upstream = await startUpstream()
  const env = {
    DATABASE_URL: database.url,
    PARLEY_DATA_DIR: join(folder, 'data'),
    PARLEY_SECRET: 'the secret that all replicas share',
    PARLEY_PARENT_KEY: forgeKey('svc_', randomBytes(55).toString('hex').slice(0, 55)),
    PARLEY_BACKEND: 'gateway',
    PARLEY_GATEWAY_URL: upstream.url,
    PARLEY_TRUSTED_PROXIES: '127.0.0.1',
    PARLEY_TRUST_FORWARDED_AUTH: 'true',
    ...more,
  }
  const apps = [await openApp(env), await openApp(env)] as const
  return {
    certificate: await makeCertificate(),
    upstream,
    apps,
    replicas: [new URL(apps[0].url).host, new URL(apps[1].url).host],
    key: env.PARLEY_PARENT_KEY,
    async stop() {
      for (const app of apps) await app.close()
      await upstream.stop()
      database.giveBack()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** Returns a `fetch` that trusts the certificate and connects from `localAddress`. */
export function makeFetch({ cert }: Certificate, localAddress = '127.0.0.1'): typeof fetch {
  const dispatcher = new Agent({ connect: { ca: cert }, localAddress })
  onTestFinished(() => dispatcher.destroy())
  const call = (input: string, init: object) => undiciFetch(input, { ...init, dispatcher })
  return call as unknown as typeof fetch
}

export interface RequestOptions {
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly localAddress?: string
}

/** Starts a request whose body the caller writes; it is aborted when the test ends. */
export function openRequest(url: string, { cert }: Certificate, asked: RequestOptions): ClientRequest {
  const { path, ...options } = asked
  const outgoing = request(url + path, { ...options, ca: cert, agent: false })
  onTestFinished(() => void outgoing.destroy())
  return outgoing
}

/** Waits for the response status, which can arrive before the body is complete. */
export async function statusOf(outgoing: ClientRequest): Promise<number> {
  // A server may close the connection before it has read the whole body.
  outgoing.on('error', () => {})
  const [answer] = (await once(outgoing, 'response')) as [IncomingMessage]
  answer.resume()
  return answer.statusCode as number
}

/** A streamed response that is still in progress. */
export interface OpenResponse {
  /** Waits until the received text matches. */
  receives(pattern: RegExp): Promise<void>
  /** Closes the connection, or cancels the HTTP/2 stream. */
  leave(): void
}

export const httpVersions = ['HTTP/1.1', 'HTTP/2'] as const
export type HttpVersion = (typeof httpVersions)[number]

/** Sends a POST request with a JSON body and collects the response as it arrives. */
export function postJson(
  version: HttpVersion,
  url: string,
  certificate: Certificate,
  { path, key, body }: { readonly path: string; readonly key: string; readonly body: object },
): OpenResponse {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  const text = JSON.stringify(body)
  if (version === 'HTTP/1.1') {
    const outgoing = openRequest(url, certificate, { method: 'POST', path, headers })
    outgoing.end(text)
    const answer = once(outgoing, 'response').then(([stream]) => stream as IncomingMessage)
    return readFrom(answer, () => outgoing.destroy())
  }
  const session = connect(url, { ca: certificate.cert })
  onTestFinished(() => session.destroy())
  const stream = session.request({ ':method': 'POST', ':path': path, ...headers })
  stream.end(text)
  return readFrom(Promise.resolve(stream), () => stream.close(constants.NGHTTP2_CANCEL))
}

function readFrom(opening: Promise<NodeJS.ReadableStream>, leave: () => void): OpenResponse {
  let received = ''
  let wake = () => {}
  const listen = (stream: NodeJS.ReadableStream) => {
    stream.setEncoding('utf8').on('error', () => {})
    stream.on('data', (text) => {
      received += text
      wake()
    })
  }
  // Ignores the error if the client disconnects before the response.
  opening.then(listen, () => {})
  return {
    async receives(pattern) {
      while (!pattern.test(received)) {
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      }
    },
    leave,
  }
}

/** Creates a request body that the test writes in chunks. */
export function makeBody(): { body: ReadableStream; push(bytes: Uint8Array): void; end(): void } {
  let writer: ReadableStreamDefaultController
  const body = new ReadableStream({
    start(controller) {
      writer = controller
    },
  })
  return { body, push: (bytes) => writer.enqueue(bytes), end: () => writer.close() }
}

/** Starts a fake replica that passes health checks but closes the connection on all other requests. */
export async function startFakeReplica(): Promise<{ address: string; seen: readonly string[] }> {
  const seen: string[] = []
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', (bytes) => {
      const [line = ''] = bytes.toString('latin1').split('\r\n')
      if (line.startsWith('GET /readyz')) {
        return void socket.end('HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}')
      }
      seen.push(line)
      socket.destroy()
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return { address: `127.0.0.1:${(server.address() as { port: number }).port}`, seen }
}
