/** Creates gateway providers, their requests, and the servers that they call. */
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { beforeEach, onTestFinished } from 'vitest'
import { createGatewayBackend, type GatewayOptions } from '../../src/providers/gateway.ts'
import type { ChatBackend } from '../../src/providers/provider.ts'
import { neverAborted } from './backend.ts'
import { type SeenRequest, shareUpstream, type Upstream } from './start-upstream.ts'

/** The key that test gateways send. */
export const apiKey = 'provider-key-0123456789'

/** Timeouts that do not expire in tests of other behavior. */
export const longTimeouts = { connectMs: 10_000, firstByteMs: 15_000, idleMs: 15_000 }

export interface GatewayChanges extends Partial<Omit<GatewayOptions, 'timings'>> {
  readonly timings?: Partial<GatewayOptions['timings']>
}

export interface GatewayHarness {
  readonly upstream: Upstream
  /** Creates a gateway and closes it when the test ends. */
  gateway(changes?: GatewayChanges): ChatBackend
  /** Sends a request directly to the scripted provider; returns the response body. */
  readDirectly(body: unknown): Promise<Buffer>
  /** Waits until the request that contains `text` has ended; returns why it ended. */
  findWhoEnded(text: string): Promise<SeenRequest['endedBy']>
}

/** Uses the worker's scripted provider, and clears its request log before each test. */
export async function startGatewayHarness(): Promise<GatewayHarness> {
  const upstream = await shareUpstream()
  beforeEach(() => upstream.clear())
  return {
    upstream,
    gateway({ timings, ...changes } = {}) {
      const backend = createGatewayBackend({
        name: 'gateway',
        url: upstream.url,
        apiKey,
        timings: { ...longTimeouts, ...timings },
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

/** Starts a TCP server on a free port and stops it when the test ends. */
export async function listen(
  onConnection: (socket: Socket) => void = () => {},
): Promise<{ port: number; server: Server }> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    // The client may reset the connection when the test ends.
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

/** Returns a non-streaming request with `text` as the user message. */
export function chatCall(
  text: string,
  signal: AbortSignal = neverAborted,
  more: Record<string, unknown> = {},
) {
  return { body: { model: 'up-chat', messages: [{ role: 'user', content: text }], ...more }, signal }
}

/** Returns a streaming request with `text` as the user message. */
export function streamCall(
  text: string,
  signal: AbortSignal = neverAborted,
  more: Record<string, unknown> = {},
) {
  return chatCall(text, signal, { stream: true, ...more })
}

type Call = (backend: ChatBackend, text: string, signal?: AbortSignal) => Promise<unknown>

/** Sends a request without and with streaming, for `test.each`. */
export const ways: readonly (readonly [string, Call])[] = [
  ['complete', (backend, text, signal) => backend.complete(chatCall(text, signal))],
  ['stream', (backend, text, signal) => backend.stream(streamCall(text, signal))],
]
