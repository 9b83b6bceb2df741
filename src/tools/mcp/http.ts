/**
 * Provides `fetch` for one MCP server, with separate connections, guarded addresses, timeouts and a message
 * size limit.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { Agent, fetch, type RequestInit as UndiciRequestInit } from 'undici'
import { createGuardedConnector } from '../../lib/net.ts'
import { MAX_MESSAGE_BYTES } from './messages.ts'

const CONNECT_SOCKET_MS = 5_000
const SPARE_MS = 60_000

export type McpHttp = ReturnType<typeof createMcpHttp>

/**
 * Creates the `fetch` for one MCP server. Calls `onLost` if no connection can be opened, the server has lost
 * the session, or its notification stream has ended.
 */
export function createMcpHttp(callMs: number, onLost: () => void) {
  const agent = new Agent({
    connect: createGuardedConnector(CONNECT_SOCKET_MS),
    maxHeaderSize: 16_384,
    // A notification stream may be idle for any length of time.
    bodyTimeout: 0,
  })
  const calls = new AsyncLocalStorage<(error: unknown) => void>()

  let hasNotifications = false

  async function guardedFetch(url: string | URL, init: RequestInit = {}): Promise<Response> {
    const failCall = calls.getStore()
    const headers = new Headers(init.headers)
    // In the older protocol revision, the client listens with a GET request, which a server may reject. The
    // library reconnects once.
    const isOldListener = init.method === 'GET'
    const signals = init.signal ? [init.signal] : []
    if (failCall !== undefined) signals.push(AbortSignal.timeout(callMs + SPARE_MS))
    // Node and undici declare different types for the same standard.
    const request = { ...init, signal: AbortSignal.any(signals) } as UndiciRequestInit
    const response = await fetch(url, { ...request, dispatcher: agent }).catch((error) => {
      if (unreachable.has(error.cause?.code) || (isOldListener && hasNotifications)) onLost()
      throw error
    })
    if (
      isOldListener
        ? hasNotifications && !response.ok
        : isForgotten(response.status) && headers.has('mcp-session-id')
    )
      onLost()
    hasNotifications ||= isOldListener && response.ok
    const isListener = headers.get('mcp-method') === 'subscriptions/listen'
    return withLimits(
      response,
      (error) => failCall?.(error),
      () => isListener && onLost(),
    )
  }

  return {
    fetch: guardedFetch,
    /** Runs a call. Also rejects if the response ends early, because the library would wait forever. */
    call<T>(start: () => Promise<T>): Promise<T> {
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

/** The specification requires 404, but servers based on its examples return 400. */
export function isForgotten(status: number | undefined): boolean {
  return status === 404 || status === 400
}

function withLimits(
  { status, statusText, headers, body }: Awaited<ReturnType<typeof fetch>>,
  onBroken: (error: unknown) => void,
  onEnd: () => void,
): Response {
  const init = { status, statusText, headers: [...headers] }
  if (body === null) return new Response(null, init)
  const isEvents = headers.get('content-type')?.startsWith('text/event-stream') ?? false
  return new Response(toStream(limit(body, isEvents, onBroken, onEnd)), init)
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
  onEnd: () => void,
): AsyncGenerator<Uint8Array> {
  const addToSize = createSizeCounter(isEvents)
  try {
    for await (const chunk of body) {
      if (addToSize(chunk) > MAX_MESSAGE_BYTES) throw new Error('a message is larger than 4 MiB')
      yield chunk
    }
  } catch (error) {
    onBroken(error)
    throw error
  } finally {
    onEnd()
  }
}

/**
 * Counts the current message's bytes: the whole body, or an event stream's bytes since the last empty line.
 */
function createSizeCounter(isEvents: boolean): (chunk: Uint8Array) => number {
  let sizeBytes = 0
  let lineBytes = 0
  return (chunk) => {
    sizeBytes += chunk.length
    if (!isEvents) return sizeBytes
    for (const [at, byte] of chunk.entries()) {
      if (byte === CR) continue
      if (byte === LF && lineBytes === 0) sizeBytes = chunk.length - at - 1
      lineBytes = byte === LF ? 0 : lineBytes + 1
    }
    return sizeBytes
  }
}

const [CR, LF] = [0x0d, 0x0a]
