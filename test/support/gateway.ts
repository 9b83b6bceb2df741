/** Creates gateway providers that use a scripted upstream, and the requests that tests send to them. */
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { beforeEach, onTestFinished } from 'vitest'
import { createGatewayBackend, type GatewayOptions } from '../../src/providers/gateway.ts'
import type { ChatBackend } from '../../src/providers/provider.ts'
import { never } from './backend.ts'
import { type SeenRequest, shareUpstream, type Upstream } from './start-upstream.ts'

/** The provider key of test gateways. */
export const apiKey = 'provider-key-0123456789'

/** Timeouts that no test reaches. */
export const patient = { connectMs: 10_000, firstByteMs: 15_000, idleMs: 15_000 }

/** Changes to the default options of a test gateway. */
export interface GatewayChanges extends Partial<Omit<GatewayOptions, 'timings'>> {
  readonly timings?: Partial<GatewayOptions['timings']>
}

/** An upstream with the gateways that use it. */
export interface GatewayStand {
  readonly upstream: Upstream
  /** Creates a gateway that closes with the test. */
  gateway(changes?: GatewayChanges): ChatBackend
  /** Reads the bytes that the upstream sends for a body, without a gateway. */
  readDirectly(body: unknown): Promise<Buffer>
  /** Waits until the request that contains `text` has ended; returns which side ended it. */
  findWhoEnded(text: string): Promise<SeenRequest['endedBy']>
}

/** Uses the upstream of this worker; each test starts with an empty request log. */
export async function startGatewayStand(): Promise<GatewayStand> {
  const upstream = await shareUpstream()
  beforeEach(() => upstream.clear())
  return {
    upstream,
    gateway({ timings, ...changes } = {}) {
      const backend = createGatewayBackend({
        name: 'gateway',
        url: upstream.url,
        apiKey,
        timings: { ...patient, ...timings },
        ...changes,
      })
      onTestFinished(() => backend.close())
      return backend
    },
    async readDirectly(body) {
      const answer = await fetch(`${upstream.url}/chat/completions`, {
        method: 'POST',
        body: JSON.stringify(body),
      })
      return Buffer.from(await answer.arrayBuffer())
    },
    async findWhoEnded(text) {
      const { id } = await upstream.waitForRequest(text)
      return (await upstream.waitForEnd(id)).endedBy
    },
  }
}

/** Starts a TCP server with this connection handler on a free port; it stops with the test. */
export async function listen(
  onConnection: (socket: Socket) => void = () => {},
): Promise<{ port: number; server: Server }> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    // The other side may reset a connection that the test leaves open.
    socket.on('error', () => {})
    onConnection(socket)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return { port: (server.address() as AddressInfo).port, server }
}

/** Returns a request for a non-streaming answer to `text`. */
export function ask(text: string, signal: AbortSignal = never, more: Record<string, unknown> = {}) {
  return { body: { model: 'up-chat', messages: [{ role: 'user', content: text }], ...more }, signal }
}

/** Returns a request for a streamed response to `text`. */
export function askForStream(text: string, signal: AbortSignal = never, more: Record<string, unknown> = {}) {
  return ask(text, signal, { stream: true, ...more })
}

type Call = (backend: ChatBackend, text: string, signal?: AbortSignal) => Promise<unknown>

/** Both kinds of request, for tests that apply to both. */
export const ways: readonly (readonly [string, Call])[] = [
  ['complete', (backend, text, signal) => backend.complete(ask(text, signal))],
  ['stream', (backend, text, signal) => backend.stream(askForStream(text, signal))],
]
