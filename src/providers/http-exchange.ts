/** One HTTP call in flight: what undici reports of it becomes a JSON body, a stream of events, or a failure. */
import type { Dispatcher } from 'undici'
import { countExternalBytes } from '../lib/external-memory.ts'
import { BackendFailure } from './provider.ts'

type Header = string | string[] | undefined

/** The head of an answer. */
interface Head {
  readonly status: number
  readonly headers: Readonly<Record<string, Header>>
}

/** An answer whose status is not 2xx. */
export interface Refusal extends Head {
  /** Cut off at 64 KiB. */
  readonly body: Buffer
}

/** Says what a refusal means. */
export type ToFailure = (refusal: Refusal) => BackendFailure

const maxRefusalBytes = 65_536
/** Bytes read ahead of a slow reader before the socket is paused. */
const readAheadBytes = 65_536
/** Reads that are smaller on average are joined. */
const LEAST_PIECE_BYTES = 4_096

/** What undici is told when we end a call; nobody sees it, so it needs no stack of its own. */
const callIsOver = new Error('The call is over.')

/** One call in flight: settles its answer once, and after its end ignores whatever undici still reports. */
export abstract class Exchange<Answer> implements Dispatcher.DispatchHandler {
  protected readonly answer = Promise.withResolvers<Answer>()
  protected readonly reads = new Reads()
  protected readonly signal: AbortSignal
  protected controller: Dispatcher.DispatchController | undefined
  protected isOver = false
  private readonly toFailure: ToFailure
  private readonly onAbort = () => this.abort(this.signal.reason)
  private refused: Head | undefined

  constructor(signal: AbortSignal, toFailure: ToFailure) {
    this.signal = signal
    this.toFailure = toFailure
  }

  /** The type a 2xx must have. */
  protected abstract readonly mediaType: string
  /** The head is in, and it is the one hoped for. */
  protected abstract onAccepted(): void
  protected abstract onRead(read: Buffer): void
  protected abstract onEnd(): void

  /** Tells the caller; called once, and not after `onEnd`. */
  protected onFailed(reason: unknown): void {
    // Does nothing once the answer is settled, as that of a stream is when its head is in.
    this.answer.reject(reason)
  }

  /** Comes before the dispatch. */
  begin(): Promise<Answer> {
    this.signal.addEventListener('abort', this.onAbort)
    return this.answer.promise
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

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: Head['headers'],
  ): void {
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
      if (this.reads.sizeBytes >= maxRefusalBytes) this.abort(this.toRefusalFailure(this.refused))
    }
  }

  onResponseEnd(): void {
    if (this.refused === undefined) this.onEnd()
    else this.abort(this.toRefusalFailure(this.refused))
  }

  onResponseError(_controller: Dispatcher.DispatchController | null, error: Error): void {
    if (this.isOver) return
    // The status says enough, even where its explanation got lost on the way.
    this.abort(this.refused === undefined ? toNetworkFailure(error) : this.toRefusalFailure(this.refused))
  }

  private toRefusalFailure(head: Head): BackendFailure {
    return this.toFailure({ ...head, body: this.reads.take().subarray(0, maxRefusalBytes) })
  }
}

/** What was read from the network and not yet taken. */
export class Reads {
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

  /** Each as it came; all of them at once where they are so small that this is less work for whoever takes them. */
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

const timeoutCodes = new Set([
  'UND_ERR_CONNECT_TIMEOUT',
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
  'ETIMEDOUT',
])

/** Names what undici or the network reported. */
function toNetworkFailure(cause: Error & { code?: unknown }): BackendFailure {
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

/** Reads a JSON body whole, and hands it over as it is taken out of the reads. */
export class JsonExchange<Answer> extends Exchange<Answer> {
  protected readonly mediaType = 'application/json'
  private readonly maxBytes: number
  private readonly take: (reads: Reads) => Answer

  constructor(signal: AbortSignal, toFailure: ToFailure, maxBytes: number, take: (reads: Reads) => Answer) {
    super(signal, toFailure)
    this.maxBytes = maxBytes
    this.take = take
  }

  protected onAccepted(): void {}

  protected onRead(read: Buffer): void {
    this.reads.add(read)
    countExternalBytes(read.length)
    if (this.reads.sizeBytes <= this.maxBytes) return
    this.abort(new BackendFailure('protocol', `The backend's answer is larger than ${this.maxBytes} bytes.`))
  }

  protected onEnd(): void {
    if (this.end()) this.answer.resolve(this.take(this.reads))
  }
}

type Step = IteratorResult<Buffer, void>
const noMore: Step = { done: true, value: undefined }

/** Hands over an event stream as it comes, and pauses the socket while its reader is slow. */
export class EventExchange extends Exchange<AsyncIterator<Buffer, void, void>> {
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
    this.answer.resolve(this)
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

  protected override onFailed(reason: unknown): void {
    super.onFailed(reason)
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
