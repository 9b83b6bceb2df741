/** Writes server-sent events to a response, with heartbeats and back-pressure. */
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { type Latin1, STALL_MS, writeChunk } from './response.ts'

/** Prevents caching, and prevents proxies from compressing the stream, which would delay events. */
const STREAM_CACHE_CONTROL = 'no-store, no-transform'

export const eventStreamHeaders: readonly string[] = [
  'Content-Type',
  'text/event-stream; charset=utf-8',
  'Cache-Control',
  STREAM_CACHE_CONTROL,
  'X-Accel-Buffering',
  'no',
]

export const DONE = 'data: [DONE]\n\n'
const HEARTBEAT = ': keep-alive\n\n'

interface EventWriting {
  readonly events: AsyncIterator<Uint8Array | Latin1, void, void>
  writeHead(): void
  readonly end: string
  renderFailure(thrown: unknown): Uint8Array
  readonly heartbeatMs: number
}

/**
 * Writes events and heartbeats until the events end, and then `end`. Throws a failure that occurs before the
 * headers are sent, so that it can set the status. Writes a later failure as an event instead of `end`.
 */
export async function writeEvents(response: ServerResponse, writing: EventWriting): Promise<void> {
  const { events } = writing
  let isHeadSent = false
  function sendHead(): void {
    if (isHeadSent) return
    isHeadSent = true
    writing.writeHead()
  }
  const heartbeat = setInterval(() => {
    if (response.destroyed || response.writableNeedDrain) return
    sendHead()
    response.write(HEARTBEAT)
  }, writing.heartbeatMs)
  try {
    for (;;) {
      const next = await events.next()
      if (response.destroyed) return
      sendHead()
      if (next.done) break
      heartbeat.refresh()
      if (!writeChunk(response, next.value)) await drained(response)
    }
    response.end(writing.end)
  } catch (thrown) {
    if (!isHeadSent) throw thrown
    if (!response.destroyed) response.end(writing.renderFailure(thrown))
  } finally {
    clearInterval(heartbeat)
    await events.return?.()
  }
}

/** Waits until the client has read the buffered data; disconnects a client that stops reading. */
async function drained(response: ServerResponse): Promise<void> {
  const waiting = new AbortController()
  const stalled = setTimeout(() => response.destroy(), STALL_MS)
  try {
    await Promise.race([
      once(response, 'drain', { signal: waiting.signal }),
      once(response, 'close', { signal: waiting.signal }),
    ])
  } finally {
    clearTimeout(stalled)
    waiting.abort()
  }
}
