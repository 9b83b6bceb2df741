/** One call as both doors hand it to the operations: who calls, from where, and the headers of its answer. */

import type { Logger } from 'pino'
import type { Ambient } from '../console/identity.ts'
import type { AnyCaller, Caller } from '../keys/schema.ts'
import type { RequestWatch } from '../observability/watch.ts'

/** What a door knows of a call before anybody is authenticated. */
export interface Arrival {
  readonly watch: RequestWatch
  readonly requestId: string
  /** The client's address, read from the proxy's header only when the peer is trusted. */
  readonly clientAddress: string
  /** The bearer token, as sent; undefined without one. */
  readonly bearer: string | undefined
  /** The token in the address of something that is only read; undefined without one, and where none counts. Decision: 9. */
  readonly token?: string | undefined
  /** What else tells who is calling; undefined with a token, and where only a token counts. */
  readonly ambient: Ambient | undefined
}

/** The context of one call; `caller` is set by `authorize`. A class, because accessor literals cost on this path. */
export class CallContext<C extends AnyCaller = Caller, D = unknown> {
  /** What the operation's module needs of the service. */
  readonly deps: D
  readonly arrival: Arrival
  /** Response headers as a flat list of names and values; the door writes them on success and on failure. */
  readonly headers: string[] = []
  private authorized: C | undefined

  constructor(deps: D, arrival: Arrival) {
    this.deps = deps
    this.arrival = arrival
  }

  /** Who is calling. */
  get caller(): C {
    if (this.authorized === undefined) throw new Error('the caller was asked for before it was authorized')
    return this.authorized
  }

  set caller(caller: C) {
    this.authorized = caller
    this.arrival.watch.caller = caller
  }

  setHeader(name: string, value: string): void {
    this.headers.push(name, value)
  }
}

/** The same dependencies with a log that names the request in every line. */
export function withRequestLog<D extends { readonly log: Logger }>({
  deps,
  arrival,
}: Pick<CallContext<AnyCaller, D>, 'deps' | 'arrival'>): D {
  return { ...deps, log: deps.log.child(arrival.watch.line) }
}
