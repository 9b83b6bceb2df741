/** The way to MCP servers over HTTP: one pool of connections each, with limits on what comes back. */
import { AsyncLocalStorage } from 'node:async_hooks'
import { Agent, fetch, type RequestInit as UndiciRequestInit } from 'undici'
import { createGuardedConnector } from '../../guarded-connector.ts'
import { MOST_MESSAGE_BYTES } from './limits.ts'

const CONNECT_SOCKET_MS = 5_000
/** Beyond the time of the call that a request is for. */
const SPARE_MS = 60_000

/** `fetch` for one MCP server. */
export interface McpHttp {
  readonly fetch: (url: string | URL, init?: RequestInit) => Promise<Response>
  /** Makes a call whose promise rejects also when its answer breaks off: the library would wait on. */
  call<T>(start: () => Promise<T>): Promise<T>
  close(): Promise<void>
}

/**
 * A way to one server. `onLost` is told when no connection can be made, and when the server knows nothing of the session any more.
 * Protocol: MCP, Streamable HTTP (Session Management).
 */
export function createMcpHttp(callMs: number, onLost: () => void): McpHttp {
  const agent = new Agent({
    connect: createGuardedConnector(CONNECT_SOCKET_MS),
    maxHeaderSize: 16_384,
    // Servers may be silent for as long as there is no news.
    bodyTimeout: 0,
  })
  const calls = new AsyncLocalStorage<(error: unknown) => void>()

  async function guardedFetch(url: string | URL, init: RequestInit = {}): Promise<Response> {
    const failCall = calls.getStore()
    const request = { ...toUndici(init, callMs), dispatcher: agent }
    const response = await fetch(url, request).catch((error) => {
      if (unreachable.has(error.cause?.code)) onLost()
      throw error
    })
    if (isForgotten(response.status) && isInSession(init)) onLost()
    return withLimits(response, (error) => failCall?.(error))
  }

  return {
    fetch: guardedFetch,
    call(start) {
      const failing = Promise.withResolvers<never>()
      return Promise.race([calls.run(failing.reject, start), failing.promise])
    },
    close: () => agent.destroy(),
  }
}

const unreachable = new Set([
  'ECONNREFUSED',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'UND_ERR_CONNECT_TIMEOUT',
])

/** The specification says 404; servers made after its library's examples say 400. */
export function isForgotten(status: number | undefined): boolean {
  return status === 404 || status === 400
}

/** A stream of news need not be there at all, whatever a server says to that. */
function isInSession({ method, headers }: RequestInit): boolean {
  return method === 'POST' && new Headers(headers).has('mcp-session-id')
}

/** The same request; one for an answer ends some time after anybody waits for it. */
function toUndici(init: RequestInit, callMs: number): UndiciRequestInit {
  const signals = init.signal ? [init.signal] : []
  if (init.method === 'POST') signals.push(AbortSignal.timeout(callMs + SPARE_MS))
  // Both describe the same standard, each with its own classes.
  return { ...init, signal: AbortSignal.any(signals) } as UndiciRequestInit
}

type UndiciResponse = Awaited<ReturnType<typeof fetch>>

/** The response with a body that fails once a message in it is too long; `onBroken` hears of that, and of a body that breaks off. */
function withLimits(response: UndiciResponse, onBroken: (error: unknown) => void): Response {
  const { status, statusText, body } = response
  const headers = [...response.headers]
  if (body === null) return new Response(null, { status, statusText, headers })
  const isEvents = response.headers.get('content-type')?.startsWith('text/event-stream') ?? false
  const limited = toStream(limit(body, isEvents, onBroken))
  return new Response(limited, { status, statusText, headers })
}

function toStream(chunks: AsyncGenerator<Uint8Array>): ReadableStream<Uint8Array> {
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await chunks.next()
      if (done) controller.close()
      else controller.enqueue(value)
    },
    cancel: async () => void (await chunks.return(undefined)),
  })
}

async function* limit(
  body: AsyncIterable<Uint8Array>,
  isEvents: boolean,
  onBroken: (error: unknown) => void,
): AsyncGenerator<Uint8Array> {
  const size = new MessageSize(isEvents)
  try {
    for await (const chunk of body) {
      if (size.add(chunk) > MOST_MESSAGE_BYTES) throw new Error('a message is larger than 4 MiB')
      yield chunk
    }
  } catch (error) {
    onBroken(error)
    throw error
  }
}

/** Counts the bytes of the message that is arriving: a whole body, or what came since the last empty line. */
class MessageSize {
  private readonly isEvents: boolean
  private sizeBytes = 0
  private lineBytes = 0

  constructor(isEvents: boolean) {
    this.isEvents = isEvents
  }

  /** The size so far. */
  add(chunk: Uint8Array): number {
    this.sizeBytes += chunk.length
    if (!this.isEvents) return this.sizeBytes
    for (const [at, byte] of chunk.entries()) {
      if (byte === CR) continue
      if (byte === LF && this.lineBytes === 0) this.sizeBytes = chunk.length - at - 1
      this.lineBytes = byte === LF ? 0 : this.lineBytes + 1
    }
    return this.sizeBytes
  }
}

const [CR, LF] = [0x0d, 0x0a]
