/** The one door out: HTTP calls to one backend's origin over a keep-alive pool, with limits on time and on where they lead. */
import { lookup as lookupName } from 'node:dns'
import type { LookupFunction } from 'node:net'
import { Pool } from 'undici'
import { createGuardedConnector } from '../../guarded-connector.ts'
import {
  EventExchange,
  type Exchange,
  JsonExchange,
  type Reads,
  type Refusal,
  type ToFailure,
} from './exchange.ts'

export type { Refusal }

/** How long each step of a call may take; undici checks them about twice a second, so they end up to a second late. */
export interface EgressTimings {
  readonly connectMs: number
  /** From the request being written to the answer's head being read. */
  readonly firstByteMs: number
  /** Between two reads of the answer's body; stands still while the reader is slow. */
  readonly idleMs: number
}

/** Where an egress leads, and what it carries there. */
export interface EgressOptions {
  readonly origin: string
  /** Sent as a Bearer token to `origin`; there is no way to send it elsewhere. Security: 2.10 */
  readonly apiKey?: string
  readonly timings: EgressTimings
  /** Resolves the origin's host name; the system's resolver when absent. */
  readonly lookup?: LookupFunction
  /** Says what an answer outside 2xx means; its body is cut off at 64 KiB. */
  readonly toFailure: ToFailure
}

/** One call, as the egress sends it: no header but its own, and those of a trace, leaves the service. */
export interface EgressCall {
  /** Path and query, starting with `/`. */
  readonly path: string
  /** A JSON text makes the call a POST; without it, it is a GET. */
  readonly body?: string
  readonly signal: AbortSignal
  readonly trace?: Readonly<Record<string, string>> | undefined
}

/** HTTP calls to one origin. Redirects are not followed: a 3xx is a refusal. */
export interface Egress {
  /**
   * Answers with the body of a 2xx whose type is JSON.
   * @throws BackendFailure; the signal's reason once the signal is aborted
   */
  readJson(call: EgressCall, maxBytes: number): Promise<Buffer>
  /** The same, in the pieces it came in: joining large ones costs more than all else that is done with them. */
  readJsonPieces(call: EgressCall, maxBytes: number): Promise<readonly Buffer[]>
  /**
   * Answers with the body of a 2xx whose type is server-sent events, as soon as its head is in. Its `next` is called again
   * only after the last one settled.
   * @throws BackendFailure before and during the iteration; the signal's reason once the signal is aborted
   */
  readEvents(call: EgressCall): Promise<AsyncIterator<Buffer, void, void>>
  /** Ends the calls in flight and closes the sockets. */
  close(): Promise<void>
}

const maxHeadBytes = 16_384
/** Below the 5 s after which uvicorn (vLLM, LiteLLM) closes an idle connection without having announced it. */
const idleConnectionMs = 4_000

/** Opens the way to one origin. Security: 2.10 */
export function createEgress(options: EgressOptions): Egress {
  const { connectMs, firstByteMs, idleMs } = options.timings
  const { toFailure } = options
  const pool = new Pool(options.origin, {
    connect: createGuardedConnector(connectMs, options.lookup ?? lookupName),
    connections: null,
    pipelining: 1,
    allowH2: false,
    keepAliveTimeout: idleConnectionMs,
    maxHeaderSize: maxHeadBytes,
    headersTimeout: firstByteMs,
    bodyTimeout: idleMs,
  })
  // Without accept-encoding any coding would be welcome (RFC 9110, 12.5.3), and nothing here decodes one.
  const getHeaders = ['accept', 'application/json', 'accept-encoding', 'identity', 'user-agent', 'parley']
  if (options.apiKey !== undefined) getHeaders.push('authorization', `Bearer ${options.apiKey}`)
  const postHeaders = ['content-type', 'application/json', ...getHeaders]

  function send<Answer>(call: EgressCall, exchange: Exchange<Answer>): Promise<Answer> {
    if (call.signal.aborted) return Promise.reject(call.signal.reason)
    const { path, body, trace } = call
    const answer = exchange.begin()
    pool.dispatch(
      body === undefined
        ? { path, method: 'GET', headers: getHeaders }
        : { path, method: 'POST', headers: withTrace(postHeaders, trace), body },
      exchange,
    )
    return answer
  }

  return {
    readJson: (call, maxBytes) => send(call, new JsonExchange(call.signal, toFailure, maxBytes, takeWhole)),
    readJsonPieces: (call, maxBytes) =>
      send(call, new JsonExchange(call.signal, toFailure, maxBytes, takePieces)),
    readEvents: (call) => send(call, new EventExchange(call.signal, toFailure)),
    close: () => pool.destroy(),
  }
}

function withTrace(headers: string[], trace: EgressCall['trace']): string[] {
  return trace === undefined ? headers : [...headers, ...Object.entries(trace).flat()]
}

const takeWhole = (reads: Reads) => reads.take()
const takePieces = (reads: Reads) => reads.takePieces()
