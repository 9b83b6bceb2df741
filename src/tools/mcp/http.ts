/** The way to MCP servers over HTTP: one pool of connections each, with limits on what comes back. */
import { AsyncLocalStorage } from 'node:async_hooks'
import { Agent, fetch, type RequestInit as UndiciRequestInit } from 'undici'
import { createGuardedConnector } from '../../lib/net.ts'
import { MOST_MESSAGE_BYTES } from './messages.ts'

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
 * A way to one server. `onLost` is told when no connection can be made, when the server knows nothing of the session any more, and
 * when its news have stopped coming. Protocol: MCP, Streamable HTTP (Session Management).
 */
export function createMcpHttp(callMs: number, onLost: () => void): McpHttp {
  const agent = new Agent({
    connect: createGuardedConnector(CONNECT_SOCKET_MS),
    maxHeaderSize: 16_384,
    // Servers may be silent for as long as there is no news.
    bodyTimeout: 0,
  })
  const calls = new AsyncLocalStorage<(error: unknown) => void>()

  let hasNews = false

  async function guardedFetch(url: string | URL, init: RequestInit = {}): Promise<Response> {
    const failCall = calls.getStore()
    const headers = new Headers(init.headers)
    // The older revision asks for news with a GET, which a server need not know, and takes it up again once.
    const isOldNews = init.method === 'GET'
    const request = toUndici(init, failCall === undefined ? undefined : callMs + SPARE_MS)
    const response = await fetch(url, { ...request, dispatcher: agent }).catch((error) => {
      if (unreachable.has(error.cause?.code) || (isOldNews && hasNews)) onLost()
      throw error
    })
    if (isOldNews ? hasNews && !response.ok : isForgotten(response.status) && headers.has('mcp-session-id'))
      onLost()
    hasNews ||= isOldNews && response.ok
    const isNews = headers.get('mcp-method') === 'subscriptions/listen'
    return withLimits(response, { onBroken: (error) => failCall?.(error), onEnd: () => isNews && onLost() })
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

/** The same request, which ends after so long. */
function toUndici(init: RequestInit, mostMs: number | undefined): UndiciRequestInit {
  const signals = init.signal ? [init.signal] : []
  if (mostMs !== undefined) signals.push(AbortSignal.timeout(mostMs))
  // Both describe the same standard, each with its own classes.
  return { ...init, signal: AbortSignal.any(signals) } as UndiciRequestInit
}

type UndiciResponse = Awaited<ReturnType<typeof fetch>>

interface BodyEvents {
  /** It breaks off, or a message in it is too long. */
  readonly onBroken: (error: unknown) => void
  /** However it ends. */
  readonly onEnd: () => void
}

/** The response with a body that fails once a message in it is too long. */
function withLimits(response: UndiciResponse, events: BodyEvents): Response {
  const { status, statusText, body } = response
  const headers = [...response.headers]
  if (body === null) return new Response(null, { status, statusText, headers })
  const isEvents = response.headers.get('content-type')?.startsWith('text/event-stream') ?? false
  const limited = toStream(limit(body, isEvents, events))
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
  { onBroken, onEnd }: BodyEvents,
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
  } finally {
    onEnd()
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
