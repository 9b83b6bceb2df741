/** Records the requests to the scripted model provider, and how they ended. */
import type { IncomingMessage, ServerResponse } from 'node:http'

export interface SeenRequest {
  readonly id: number
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  /** The parsed JSON body, or its text if it is not JSON; null without a body. */
  readonly body: unknown
  /** Number of the TCP connection, which shows whether connections are reused. */
  readonly connection: number
  /** The number of body bytes written to the socket so far. */
  sentBytes: number
  /**
   * Why the request ended: a complete response, a scripted fault or a disconnect; null if it has not ended.
   */
  endedBy: 'answer' | 'script' | 'client' | null
  /** Unix milliseconds. */
  readonly beganAt: number
  /** Unix milliseconds; null if the request has not ended. */
  endedAt: number | null
}

/** Stores the latest 5,000 requests. */
export class RequestLog {
  private readonly requests: SeenRequest[] = []
  private readonly waiters = new Set<() => void>()
  private readonly connections = new WeakMap<object, number>()
  private requestCount = 0
  private connectionCount = 0

  /** Records a request and updates the entry until the request ends. */
  add(request: IncomingMessage, response: ServerResponse, body: unknown): SeenRequest {
    const { socket } = request
    if (!this.connections.has(socket)) this.connections.set(socket, this.connectionCount++)
    const seen: SeenRequest = {
      id: this.requestCount++,
      method: request.method ?? '',
      path: request.url ?? '',
      headers: request.headers,
      body,
      connection: this.connections.get(socket) ?? 0,
      sentBytes: 0,
      endedBy: null,
      beganAt: Date.now(),
      endedAt: null,
    }
    response.once('close', () => {
      seen.endedBy ??= response.writableFinished ? 'answer' : 'client'
      seen.endedAt = Date.now()
      this.notify()
    })
    this.requests.push(seen)
    if (this.requests.length > 5_000) this.requests.shift()
    this.notify()
    return seen
  }

  /** Lists the requests, oldest first. */
  list(): readonly SeenRequest[] {
    return this.requests
  }

  clear(): void {
    this.requests.length = 0
  }

  /** Waits until `fits` returns true for a request; checks on each change and every 25 ms. */
  waitFor(fits: (seen: SeenRequest) => boolean): Promise<SeenRequest> {
    return new Promise((resolve) => {
      const look = () => {
        const found = this.requests.find(fits)
        if (found === undefined) return
        this.waiters.delete(look)
        clearInterval(timer)
        resolve(found)
      }
      const timer = setInterval(look, 25)
      this.waiters.add(look)
      look()
    })
  }

  private notify(): void {
    for (const waiter of this.waiters) waiter()
  }
}
