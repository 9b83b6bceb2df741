/**
 * Calls one provider origin over HTTP; returns a JSON body or an event stream, or throws a BackendFailure.
 */
import type { LookupFunction } from 'node:net'
import { type Dispatcher, Pool } from 'undici'
import { countExternalBytes } from '../lib/external-memory.ts'
import { createGuardedConnector, type Reach } from '../lib/net.ts'
import { toNetworkFailure } from './failures.ts'
import { BackendFailure } from './provider.ts'

/** Timeouts of a call. undici checks them about twice a second, so they may fire up to a second late. */
export interface HttpTimings {
  readonly connectMs: number
  readonly firstByteMs: number
  /** Maximum time between two reads of the body; paused while the reader is slow. */
  readonly idleMs: number
}

interface HttpClientOptions {
  readonly origin: string
  /** Bearer token, sent only to `origin`. */
  readonly apiKey?: string | undefined
  readonly timings: HttpTimings
  readonly lookup?: LookupFunction | undefined
  /** `any` by default. */
  readonly reach?: Reach | undefined
  readonly toFailure: ToFailure
}

/** One call. Headers of the client's request are never forwarded. */
export interface HttpCall {
  readonly path: string
  /** JSON body of a POST request; without it, the request is a GET. */
  readonly body?: string
  readonly signal: AbortSignal
  readonly trace?: Readonly<Record<string, string>> | undefined
  /** Headers of a GET request; sent instead of the bearer token. */
  readonly headers?: Readonly<Record<string, string>> | undefined
}

const MAX_HEAD_BYTES = 16_384

/** Below 5 s, after which uvicorn (vLLM, LiteLLM) closes idle connections without notice. */
const IDLE_CONNECTION_MS = 4_000

/**
 * Without accept-encoding, a server may use any coding (RFC 9110, section 12.5.3), which this client could
 * not decode.
 */
const commonHeaders = ['accept', 'application/json', 'accept-encoding', 'identity', 'user-agent', 'parley']

/** Calls one origin; treats redirects as rejections. */
export class HttpClient {
  private readonly pool: Pool
  private readonly toFailure: ToFailure
  private readonly getHeaders: string[]
  private readonly postHeaders: string[]

  constructor({ origin, apiKey, timings, lookup, reach, toFailure }: HttpClientOptions) {
    this.toFailure = toFailure
    this.pool = new Pool(origin, {
      connect: createGuardedConnector(timings.connectMs, lookup, reach),
      connections: null,
      pipelining: 1,
      allowH2: false,
      keepAliveTimeout: IDLE_CONNECTION_MS,
      maxHeaderSize: MAX_HEAD_BYTES,
      headersTimeout: timings.firstByteMs,
      bodyTimeout: timings.idleMs,
    })
    const key = apiKey === undefined ? [] : ['authorization', `Bearer ${apiKey}`]
    this.getHeaders = [...commonHeaders, ...key]
    this.postHeaders = ['content-type', 'application/json', ...this.getHeaders]
  }

  /** Returns a 2xx response's JSON body. @throws BackendFailure, or the signal's reason */
  readWhole(call: HttpCall, maxBytes: number): Promise<Buffer> {
    return this.send(call, new WholeHandler(call.signal, this.toFailure, maxBytes))
  }

  /**
   * Returns a large JSON body in chunks, because joining them would be the main cost. @throws BackendFailure,
   * or the signal's reason
   */
  readPieces(call: HttpCall, maxBytes: number): Promise<readonly Buffer[]> {
    return this.send(call, new PiecesHandler(call.signal, this.toFailure, maxBytes))
  }

  /**
   * Returns a 2xx response's events; `next` must not be called concurrently. @throws BackendFailure, or the
   * signal's reason
   */
  readEvents(call: HttpCall): Promise<AsyncIterator<Buffer, void, void>> {
    return this.send(call, new EventHandler(call.signal, this.toFailure))
  }

  close(): Promise<void> {
    return this.pool.destroy()
  }

  private send<Answer>(call: HttpCall, handler: ResponseHandler<Answer>): Promise<Answer> {
    const { path, body, signal, trace, headers: own } = call
    if (signal.aborted) return Promise.reject(signal.reason)
    const answer = handler.begin()
    if (body === undefined) {
      const headers = own === undefined ? this.getHeaders : [...commonHeaders, ...Object.entries(own).flat()]
      this.pool.dispatch({ path, method: 'GET', headers }, handler)
    } else {
      const { postHeaders } = this
      const headers = trace === undefined ? postHeaders : [...postHeaders, ...Object.entries(trace).flat()]
      this.pool.dispatch({ path, method: 'POST', headers, body }, handler)
    }
    return answer
  }
}

type Header = string | string[] | undefined

interface Head {
  readonly status: number
  readonly headers: Readonly<Record<string, Header>>
}

export interface Rejection extends Head {
  readonly body: Buffer
}

type ToFailure = (rejection: Rejection) => BackendFailure

const MAX_REJECTION_BYTES = 65_536
/** Pauses the socket when a slow reader has more than this many bytes buffered. */
const READ_AHEAD_BYTES = 65_536
/** Average chunk size in bytes below which chunks are joined. */
const LEAST_PIECE_BYTES = 4_096

/** Aborts a call in undici. Callers never see this error, so all calls share it. */
const callIsOver = new Error('The call is over.')

/** Handles one call's response; settles once, and ignores later events from undici. */
abstract class ResponseHandler<Answer> implements Dispatcher.DispatchHandler {
  protected readonly answer = Promise.withResolvers<Answer>()
  protected readonly reads = new Reads()
  protected readonly signal: AbortSignal
  protected controller: Dispatcher.DispatchController | undefined
  protected isOver = false
  private readonly toFailure: ToFailure
  private rejected: Head | undefined

  constructor(signal: AbortSignal, toFailure: ToFailure) {
    this.signal = signal
    this.toFailure = toFailure
  }

  protected abstract readonly mediaType: string
  protected abstract onAccepted(): void
  protected abstract onRead(read: Buffer): void
  protected abstract onEnd(): void

  protected onFailed(reason: unknown): void {
    // Has no effect after a stream's headers have arrived, because the promise is already resolved.
    this.answer.reject(reason)
  }

  begin(): Promise<Answer> {
    this.signal.addEventListener('abort', this)
    return this.answer.promise
  }

  /** Handles the signal's `abort` event; saves a closure per call. */
  handleEvent(): void {
    this.abort(this.signal.reason)
  }

  protected end(): boolean {
    if (this.isOver) return false
    this.isOver = true
    this.signal.removeEventListener('abort', this)
    return true
  }

  protected abort(reason: unknown): void {
    if (!this.end()) return
    this.onFailed(reason)
    this.controller?.abort(callIsOver)
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.controller = controller
    // If the call is aborted while connecting, undici drops the request before sending it.
    if (this.isOver) controller.abort(callIsOver)
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: Head['headers'],
  ): void {
    if (status < 200) return
    if (status >= 300) {
      this.rejected = { status, headers }
    } else if (!isMediaType(headers['content-type'], this.mediaType)) {
      this.abort(new BackendFailure('protocol', `The provider did not return ${this.mediaType}.`))
    } else if ((headers['content-encoding'] ?? 'identity') !== 'identity') {
      this.abort(new BackendFailure('protocol', 'The provider used an unsupported Content-Encoding.'))
    } else {
      this.onAccepted()
    }
  }

  onResponseData(_controller: Dispatcher.DispatchController, read: Buffer): void {
    if (this.rejected === undefined) {
      this.onRead(read)
    } else {
      this.reads.add(read)
      if (this.reads.sizeBytes >= MAX_REJECTION_BYTES) this.abort(this.toRejection(this.rejected))
    }
  }

  onResponseEnd(): void {
    if (this.rejected === undefined) this.onEnd()
    else this.abort(this.toRejection(this.rejected))
  }

  onResponseError(_controller: Dispatcher.DispatchController | null, error: Error): void {
    if (this.isOver) return
    // Reports a rejection by its status even if its body was lost.
    this.abort(this.rejected === undefined ? toNetworkFailure(error) : this.toRejection(this.rejected))
  }

  private toRejection(head: Head): BackendFailure {
    return this.toFailure({ ...head, body: this.reads.take().subarray(0, MAX_REJECTION_BYTES) })
  }
}

class Reads {
  private reads: Buffer[] = []
  sizeBytes = 0

  add(read: Buffer): void {
    this.reads.push(read)
    this.sizeBytes += read.length
  }

  take(): Buffer {
    const { reads, sizeBytes } = this
    this.clear()
    return reads.length === 1 ? (reads[0] as Buffer) : Buffer.concat(reads, sizeBytes)
  }

  takePieces(): readonly Buffer[] {
    const { reads, sizeBytes } = this
    if (reads.length * LEAST_PIECE_BYTES > sizeBytes) return [this.take()]
    this.clear()
    return reads
  }

  clear(): void {
    this.reads = []
    this.sizeBytes = 0
  }
}

function isMediaType(header: Header, mediaType: string): boolean {
  if (typeof header !== 'string') return false
  const end = header.indexOf(';')
  const found = end === -1 ? header : header.slice(0, end)
  return found === mediaType || found.trim().toLowerCase() === mediaType
}

abstract class JsonHandler<Body> extends ResponseHandler<Body> {
  protected readonly mediaType = 'application/json'
  private readonly maxBytes: number

  constructor(signal: AbortSignal, toFailure: ToFailure, maxBytes: number) {
    super(signal, toFailure)
    this.maxBytes = maxBytes
  }

  protected abstract takeBody(): Body

  protected onAccepted(): void {}

  protected onRead(read: Buffer): void {
    this.reads.add(read)
    countExternalBytes(read.length)
    if (this.reads.sizeBytes <= this.maxBytes) return
    this.abort(
      new BackendFailure('protocol', `The provider's response is larger than ${this.maxBytes} bytes.`),
    )
  }

  protected onEnd(): void {
    if (this.end()) this.answer.resolve(this.takeBody())
  }
}

class WholeHandler extends JsonHandler<Buffer> {
  protected takeBody(): Buffer {
    return this.reads.take()
  }
}

class PiecesHandler extends JsonHandler<readonly Buffer[]> {
  protected takeBody(): readonly Buffer[] {
    return this.reads.takePieces()
  }
}

type Step = IteratorResult<Buffer, void>
const noMore: Step = { done: true, value: undefined }

/** Forwards an event stream as it arrives, and pauses the socket while the reader is slow. */
class EventHandler extends ResponseHandler<AsyncIterator<Buffer, void, void>> {
  protected readonly mediaType = 'text/event-stream'
  private failure: { readonly reason: unknown } | undefined
  private waiting: { resolve: (step: Step) => void; reject: (reason: unknown) => void } | undefined
  private isScheduled = false
  private readonly wait = (resolve: (step: Step) => void, reject: (reason: unknown) => void) => {
    this.waiting = { resolve, reject }
  }

  next(): Promise<Step> {
    const promise = new Promise<Step>(this.wait)
    this.settleRead()
    return promise
  }

  return(): Promise<Step> {
    this.reads.clear()
    this.failure = undefined
    if (this.end()) this.controller?.abort(callIsOver)
    this.settleRead()
    return Promise.resolve(noMore)
  }

  protected onAccepted(): void {
    this.answer.resolve(this)
  }

  protected onRead(read: Buffer): void {
    this.reads.add(read)
    if (this.reads.sizeBytes >= READ_AHEAD_BYTES) this.controller?.pause()
    this.schedule()
  }

  protected onEnd(): void {
    this.end()
    this.schedule()
  }

  protected override onFailed(reason: unknown): void {
    super.onFailed(reason)
    if (this.signal.aborted) this.reads.clear()
    this.failure = { reason }
    this.schedule()
  }

  /** Waits for a microtask, because undici reports the HTTP chunks of one network read one by one. */
  private schedule(): void {
    if (this.isScheduled || this.waiting === undefined) return
    this.isScheduled = true
    queueMicrotask(this.onScheduled)
  }

  private readonly onScheduled = () => {
    this.isScheduled = false
    this.settleRead()
  }

  /** Settles a pending read with bytes if there are any, otherwise with the failure or the end. */
  private settleRead(): void {
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
