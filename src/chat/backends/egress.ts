/** The one door out: HTTP calls to one backend's origin over a keep-alive pool, with limits on time and size. */
import { lookup as lookupName } from 'node:dns'
import type { LookupFunction } from 'node:net'
import ipaddr from 'ipaddr.js'
import { buildConnector, type Dispatcher, Pool } from 'undici'
import { BackendFailure } from '../backend.ts'

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
  readonly toFailure: (refusal: Refusal) => BackendFailure
}

/** One call, as the egress sends it: no header but its own leaves the service. */
export interface EgressCall {
  /** Path and query, starting with `/`. */
  readonly path: string
  /** A JSON text makes the call a POST; without it, it is a GET. */
  readonly body?: string
  readonly signal: AbortSignal
}

type Headers = Readonly<Record<string, string | string[] | undefined>>

/** An answer whose status is not 2xx. */
export interface Refusal {
  readonly status: number
  readonly headers: Headers
  readonly body: Buffer
}

/** HTTP calls to one origin. Redirects are not followed: a 3xx is a refusal. */
export interface Egress {
  /**
   * Answers with the body of a 2xx whose type is JSON.
   * @throws BackendFailure; the signal's reason once the signal is aborted
   */
  readJson(call: EgressCall, maxBytes: number): Promise<Buffer>
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
const maxRefusalBytes = 65_536
/** Bytes read ahead of a slow reader before the socket is paused. */
const readAheadBytes = 65_536
/** Below the 5 s after which uvicorn (vLLM, LiteLLM) closes an idle connection without having announced it. */
const idleConnectionMs = 4_000

/** Opens the way to one origin. Security: 2.10 */
export function createEgress(options: EgressOptions): Egress {
  const { connectMs, firstByteMs, idleMs } = options.timings
  const pool = new Pool(options.origin, {
    connect: createConnector(connectMs, options.lookup ?? lookupName),
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
    const { path, body } = call
    exchange.begin()
    pool.dispatch(
      body === undefined
        ? { path, method: 'GET', headers: getHeaders }
        : { path, method: 'POST', headers: postHeaders, body },
      exchange,
    )
    return exchange.answer
  }

  return {
    readJson: (call, maxBytes) => send(call, new JsonExchange(call.signal, options.toFailure, maxBytes)),
    readEvents: (call) => send(call, new EventExchange(call.signal, options.toFailure)),
    close: () => pool.destroy(),
  }
}

/** Where clouds answer with an instance's credentials, besides the link-local ranges. */
const metadataAddresses = new Set(['fd00:ec2::254', 'fd20:ce::254', '100.100.100.200', '192.0.0.192'])

function isForbiddenAddress(address: string): boolean {
  if (!ipaddr.isValid(address)) return false
  const parsed = ipaddr.process(address)
  return parsed.range() === 'linkLocal' || metadataAddresses.has(parsed.toString())
}

/**
 * Connects to the host the operator configured. That choice is the allow-list: runners live on loopback and in private
 * networks (vLLM, LiteLLM next door), so those stay open. Link-local and cloud metadata addresses hold no runner, only
 * credentials, so they are refused however they are reached: as a literal or as the answer of a name server that changed its
 * mind. Every resolved address is checked at the moment of connecting. Security: 2.10
 */
function createConnector(connectMs: number, lookup: LookupFunction): buildConnector.connector {
  const guardedLookup: LookupFunction = (hostname, lookupOptions, callback) => {
    lookup(hostname, lookupOptions, (error, found, family) => {
      if (error !== null) return callback(error, found, family)
      const addresses = typeof found === 'string' ? [found] : found.map((each) => each.address)
      if (addresses.some(isForbiddenAddress)) return callback(forbidden(hostname), found, family)
      callback(null, found, family)
    })
  }
  const connect = buildConnector({ timeout: connectMs, allowH2: false, lookup: guardedLookup })
  // A literal address is never looked up.
  return (target, callback) =>
    isForbiddenAddress(target.hostname)
      ? callback(forbidden(target.hostname), null)
      : connect(target, callback)
}

function forbidden(hostname: string): Error {
  return new Error(`${hostname} is a link-local or metadata address, which no backend may have.`)
}

const timeoutCodes = new Set([
  'UND_ERR_CONNECT_TIMEOUT',
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
  'ETIMEDOUT',
])

/** Names what undici or the network reported. */
function toFailure(cause: Error & { code?: unknown }): BackendFailure {
  const code = typeof cause.code === 'string' ? cause.code : ''
  if (timeoutCodes.has(code)) return new BackendFailure('timeout', 'The backend took too long.', { cause })
  // A body cut short is a lost connection; undici tells it from nonsense only by llhttp's words.
  const isNonsense = cause.name === 'HTTPParserError' && !cause.message.includes('Invalid EOF state')
  if (isNonsense || code === 'UND_ERR_HEADERS_OVERFLOW') {
    // A parser error carries the bytes it stumbled over, which may be somebody's words.
    const reason = new Error(cause.message)
    return new BackendFailure('protocol', 'The backend does not speak HTTP as it should.', { cause: reason })
  }
  return new BackendFailure('unreachable', 'The connection to the backend failed.', { cause })
}

/** What undici is told when we end a call; nobody sees it, so it needs no stack of its own. */
const callIsOver = new Error('The call is over.')

/** What was read from the network and not yet taken. */
class Reads {
  private reads: Buffer[] = []
  sizeBytes = 0

  add(read: Buffer): void {
    this.reads.push(read)
    this.sizeBytes += read.length
  }

  /** All of them at once. A single one is handed on as it came, without a copy. */
  take(): Buffer {
    const [first, ...others] = this.reads
    const taken =
      first !== undefined && others.length === 0 ? first : Buffer.concat(this.reads, this.sizeBytes)
    this.clear()
    return taken
  }

  clear(): void {
    this.reads = []
    this.sizeBytes = 0
  }
}

/** One call in flight: settles `answer` once, and after its end ignores whatever undici still reports. */
abstract class Exchange<Answer> implements Dispatcher.DispatchHandler {
  readonly answer: Promise<Answer>
  protected readonly reads = new Reads()
  protected readonly resolve: (answer: Answer) => void
  protected readonly reject: (reason: unknown) => void
  protected controller: Dispatcher.DispatchController | undefined
  protected isOver = false
  protected readonly signal: AbortSignal
  private readonly toFailure: EgressOptions['toFailure']
  private readonly onAbort = () => this.abort(this.signal.reason)
  private refused: { status: number; headers: Headers } | undefined

  constructor(signal: AbortSignal, refusalToFailure: EgressOptions['toFailure']) {
    const { promise, resolve, reject } = Promise.withResolvers<Answer>()
    this.answer = promise
    this.resolve = resolve
    this.reject = reject
    this.signal = signal
    this.toFailure = refusalToFailure
  }

  /** The type a 2xx must have. */
  protected abstract readonly mediaType: string
  /** The head is in, and it is the one hoped for. */
  protected abstract onAccepted(): void
  protected abstract onRead(read: Buffer): void
  protected abstract onEnd(): void
  /** Tells the caller; called once, and not after `onEnd`. */
  protected abstract onFailed(reason: unknown): void

  begin(): void {
    this.signal.addEventListener('abort', this.onAbort)
  }

  /** No more is wanted of this call; returns false if it was over already. */
  protected end(): boolean {
    if (this.isOver) return false
    this.isOver = true
    this.signal.removeEventListener('abort', this.onAbort)
    return true
  }

  /** Ends the call with a failure and cuts off what is still on the wire. */
  protected abort(reason: unknown): void {
    if (!this.end()) return
    this.onFailed(reason)
    this.controller?.abort(callIsOver)
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.controller = controller
    // Aborted while the connection was being made: undici drops the request before it writes a byte of it.
    if (this.isOver) controller.abort(callIsOver)
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: Headers): void {
    if (status < 200) return
    if (status >= 300) {
      this.refused = { status, headers }
    } else if (!isMediaType(headers['content-type'], this.mediaType)) {
      this.abort(new BackendFailure('protocol', `The backend did not answer with ${this.mediaType}.`))
    } else if ((headers['content-encoding'] ?? 'identity') !== 'identity') {
      this.abort(new BackendFailure('protocol', 'The backend encoded its answer without being asked to.'))
    } else {
      this.onAccepted()
    }
  }

  onResponseData(_controller: Dispatcher.DispatchController, read: Buffer): void {
    if (this.refused === undefined) {
      this.onRead(read)
    } else {
      this.reads.add(read)
      if (this.reads.sizeBytes >= maxRefusalBytes) this.abort(this.refusal(this.refused))
    }
  }

  onResponseEnd(): void {
    if (this.refused !== undefined) this.abort(this.refusal(this.refused))
    else this.onEnd()
  }

  onResponseError(_controller: Dispatcher.DispatchController | null, error: Error): void {
    if (this.isOver) return
    // The status says enough, even where its explanation got lost on the way.
    this.abort(this.refused === undefined ? toFailure(error) : this.refusal(this.refused))
  }

  private refusal({ status, headers }: { status: number; headers: Headers }): BackendFailure {
    return this.toFailure({ status, headers, body: this.reads.take().subarray(0, maxRefusalBytes) })
  }
}

function isMediaType(header: string | string[] | undefined, mediaType: string): boolean {
  if (typeof header !== 'string') return false
  const end = header.indexOf(';')
  const found = end === -1 ? header : header.slice(0, end)
  return found === mediaType || found.trim().toLowerCase() === mediaType
}

/** Reads a JSON body whole. */
class JsonExchange extends Exchange<Buffer> {
  protected readonly mediaType = 'application/json'
  private readonly maxBytes: number

  constructor(signal: AbortSignal, refusalToFailure: EgressOptions['toFailure'], maxBytes: number) {
    super(signal, refusalToFailure)
    this.maxBytes = maxBytes
  }

  protected onAccepted(): void {}

  protected onRead(read: Buffer): void {
    this.reads.add(read)
    if (this.reads.sizeBytes <= this.maxBytes) return
    this.abort(new BackendFailure('protocol', `The backend's answer is larger than ${this.maxBytes} bytes.`))
  }

  protected onEnd(): void {
    if (this.end()) this.resolve(this.reads.take())
  }

  protected onFailed(reason: unknown): void {
    this.reject(reason)
  }
}

type Step = IteratorResult<Buffer, void>
const noMore: Step = { done: true, value: undefined }

/** Hands over an event stream as it comes, and pauses the socket while its reader is slow. */
class EventExchange extends Exchange<AsyncIterator<Buffer, void, void>> {
  protected readonly mediaType = 'text/event-stream'
  private failure: { readonly reason: unknown } | undefined
  private waiting: { resolve: (step: Step) => void; reject: (reason: unknown) => void } | undefined
  private isScheduled = false
  private readonly wait = (resolve: (step: Step) => void, reject: (reason: unknown) => void) => {
    this.waiting = { resolve, reject }
  }

  next(): Promise<Step> {
    const promise = new Promise<Step>(this.wait)
    this.handOver()
    return promise
  }

  return(): Promise<Step> {
    this.reads.clear()
    this.failure = undefined
    if (this.end()) this.controller?.abort(callIsOver)
    this.handOver()
    return Promise.resolve(noMore)
  }

  protected onAccepted(): void {
    this.resolve(this)
  }

  protected onRead(read: Buffer): void {
    this.reads.add(read)
    if (this.reads.sizeBytes >= readAheadBytes) this.controller?.pause()
    this.schedule()
  }

  protected onEnd(): void {
    this.end()
    this.schedule()
  }

  protected onFailed(reason: unknown): void {
    // Does nothing once the head is in, when the answer is settled.
    this.reject(reason)
    if (this.signal.aborted) this.reads.clear()
    this.failure = { reason }
    this.schedule()
  }

  /** undici reports the HTTP chunks of one network read one by one; by the time of the microtask all of them are here. */
  private schedule(): void {
    if (this.isScheduled || this.waiting === undefined) return
    this.isScheduled = true
    queueMicrotask(this.onScheduled)
  }

  private readonly onScheduled = () => {
    this.isScheduled = false
    this.handOver()
  }

  /** Gives a waiting reader what there is: bytes first, then a failure, then the end. */
  private handOver(): void {
    const { waiting } = this
    if (waiting === undefined) return
    if (this.reads.sizeBytes > 0) {
      this.waiting = undefined
      waiting.resolve({ done: false, value: this.reads.take() })
      if (this.controller?.paused) this.controller.resume()
    } else if (this.failure !== undefined) {
      this.waiting = undefined
      waiting.reject(this.failure.reason)
      this.failure = undefined
    } else if (this.isOver) {
      this.waiting = undefined
      waiting.resolve(noMore)
    }
  }
}
