/** Writes server-sent events to a response: the head, a heartbeat in silence, back-pressure, and the end. */
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { STALL_MS, writeChunk } from './response.ts'

/** What a stream's head carries beside the headers of every answer. Security: 2.7 (SSE). */
export const eventStreamHeaders: readonly string[] = [
  'Content-Type',
  'text/event-stream; charset=utf-8',
  'Cache-Control',
  'no-cache, no-transform',
  'X-Accel-Buffering',
  'no',
]

/** The end of a stream of the chat API. */
export const DONE = 'data: [DONE]\n\n'
const HEARTBEAT = ': keep-alive\n\n'

export interface EventWriting {
  readonly events: AsyncIterator<Uint8Array, void, void>
  /** Sends the status line and headers; called once, as late as possible. */
  writeHead(): void
  /** What is sent after the last event. */
  readonly end: string
  /** The events a failure after the head is told in. */
  renderFailure(thrown: unknown): Uint8Array
  /** Silence after which a comment is sent, and the head with it. */
  readonly heartbeatMs: number
}

/**
 * Writes every event as it arrives, then the end. A failure before the head is thrown, so that it keeps its status; a later one is
 * told in the stream, which then lacks its end. Decision: 7 (Streams).
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

/** Waits until the client has read what was written, or is gone: a vanished one must not park the loop for ever. */
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
