/** What the scripted upstream saw: the requests, how each of them ended, and waiting for that. */
import type { IncomingMessage, ServerResponse } from 'node:http'

/** A request as the upstream saw it. */
export interface SeenRequest {
  readonly id: number
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  /** The parsed JSON body, or its text where it is none; null without a body. */
  readonly body: unknown
  /** Counts the connections, so that reuse shows. */
  readonly connection: number
  /** Bytes of the answer's body handed to the socket so far. */
  sentBytes: number
  /** How it came to its end: a whole answer, a fault from the script, or the client that left; null while it runs. */
  endedBy: 'answer' | 'script' | 'client' | null
  /** Unix milliseconds of that end. */
  endedAt: number | null
}

/** The latest 5,000 requests. */
export class RequestLog {
  private readonly requests: SeenRequest[] = []
  private readonly waiters = new Set<() => void>()
  private readonly connections = new WeakMap<object, number>()
  private requestCount = 0
  private connectionCount = 0

  /** Follows a request to its end, and keeps it. */
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

  /** The requests, oldest first. */
  list(): readonly SeenRequest[] {
    return this.requests
  }

  clear(): void {
    this.requests.length = 0
  }

  /** Waits for a request that `fits`, looking after each event and forty times a second. */
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
