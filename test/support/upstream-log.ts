/** Records the requests that the scripted upstream sees and how each one ended. */
import type { IncomingMessage, ServerResponse } from 'node:http'

/** A request as the upstream saw it. */
export interface SeenRequest {
  readonly id: number
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  /** The parsed JSON body, or its text if it is not JSON; null without a body. */
  readonly body: unknown
  /** The number of the connection, which shows reuse. */
  readonly connection: number
  /** Bytes of the answer's body handed to the socket so far. */
  sentBytes: number
  /** The cause of its end: a complete response, a scripted fault or a client that disconnected; null while it runs. */
  endedBy: 'answer' | 'script' | 'client' | null
  /** The time of its end in Unix milliseconds. */
  endedAt: number | null
}

/** Holds the latest 5,000 requests. */
export class RequestLog {
  private readonly requests: SeenRequest[] = []
  private readonly waiters = new Set<() => void>()
  private readonly connections = new WeakMap<object, number>()
  private requestCount = 0
  private connectionCount = 0

  /** Records a request and follows it to its end. */
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

  /** Waits for a request that `fits`, checking after each event and forty times a second. */
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
