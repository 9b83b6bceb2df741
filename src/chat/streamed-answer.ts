/** One backend stream of a turn: read, mended, and forwarded as the bytes it came in wherever that is possible. */

import { failCall, toAnswerAttributes } from '../providers/call-span.ts'
import type { AnswerNames } from '../providers/chat-api.ts'
import { BackendFailure, type BackendRequest, type ChatBackend } from '../providers/provider.ts'
import type { TraceSpan } from '../telemetry/tracing.ts'
import { ChunkMender } from './normalize-chunks.ts'
import type { Turn } from './prepare-turn.ts'
import { dataOf, EventReader, encodeEvent, eventEnd, plainEnd, splitRun } from './sse-reader.ts'
import {
  type Ask,
  type MenderOptions,
  type ModelAnswer,
  noUsage,
  type Rounds,
  type SaidMessage,
} from './tool-loop.ts'

/** A stream that has brought its first event. */
export class Round {
  readonly mender: ChunkMender
  private readonly reader = new EventReader()
  private readonly source: AsyncIterator<Uint8Array, void, void>
  private readonly options: MenderOptions
  private readonly forwarded: Uint8Array[] = []
  /** The events that came with the first one; undefined when none of them is for the caller. */
  first: Uint8Array | undefined
  private isDone = false
  private isClosed = false
  private failure: { readonly thrown: unknown } | undefined
  private readonly span: TraceSpan | undefined

  private constructor(
    source: AsyncIterator<Uint8Array, void, void>,
    options: MenderOptions,
    span: TraceSpan | undefined,
  ) {
    this.source = source
    this.span = span
    this.options = options
    this.mender = new ChunkMender(options)
  }

  /**
   * Asks the backend and waits for its first event, so that a failure before it can still be mended.
   * @throws BackendFailure
   */
  static async open(
    backend: ChatBackend,
    request: BackendRequest,
    options: MenderOptions,
    span?: TraceSpan,
  ): Promise<Round> {
    const round = new Round(await backend.stream({ ...request, trace: span?.headers }), options, span)
    try {
      round.first = await round.next()
      return round
    } catch (thrown) {
      failCall(span, thrown)
      await round.close()
      throw thrown
    }
  }

  /** The answer has failed after it had begun. */
  breakOff(thrown: unknown): void {
    failCall(this.span, thrown)
  }

  private endSpan(): void {
    if (this.span === undefined) return
    const { names, usage, finishReasons } = this.mender
    this.span.set(toAnswerAttributes({ names, usage, finishReasons }))
    this.span.end()
  }

  /** What this round said, as one message: read back only when the model has to be asked again. */
  said(): SaidMessage {
    const events = this.forwarded.flatMap((run) => [...splitRun(Buffer.from(run))])
    const deltas = events.map((event) => JSON.parse(dataOf(event) as string).choices?.[0]?.delta ?? {})
    return joinDeltas(deltas)
  }

  /**
   * Lets the backend go. After `[DONE]` only the end of the body is due: whoever reads that too keeps the connection for the next
   * call. Safe to call twice.
   */
  async close(): Promise<void> {
    if (this.isClosed) return
    this.isClosed = true
    this.endSpan()
    const leave = () => this.source.return?.()
    if (this.isDone) void this.source.next().then(leave, leave)
    else await leave()
  }

  /**
   * The next run of whole events for the caller; undefined at the end of the backend's answer.
   * @throws BackendFailure when the backend stops before it has finished.
   */
  async next(): Promise<Uint8Array | undefined> {
    while (!this.isDone) {
      if (this.failure !== undefined) throw this.failure.thrown
      const read = await this.source.next()
      if (read.done) return this.assertFinished(this.options.choices)
      const run = this.reader.push(read.value)
      const wanted = run === undefined ? undefined : this.take(run)
      if (wanted === undefined) continue
      if (this.options.holdsCalls) this.forwarded.push(wanted)
      return wanted
    }
    return this.assertFinished(1)
  }

  /** A backend that hangs up after its last finish has said everything; one that says `[DONE]` before any has not. */
  private assertFinished(choices: number): undefined {
    if (this.mender.finishedChoices >= choices) return undefined
    throw new BackendFailure('protocol', 'the stream ended before the answer did')
  }

  /** What of a run goes on to the caller; undefined when nothing does. */
  private take(run: Buffer): Uint8Array | undefined {
    const text = run.toString('latin1')
    const wanted: Uint8Array[] = []
    try {
      for (let at = 0; at < run.length && !this.isDone; ) {
        const plain = this.mender.isUnderWay ? plainEnd(text, at) : at
        const end = plain > at ? plain : eventEnd(run, at)
        const bytes = run.subarray(at, end)
        if (plain > at) wanted.push(bytes)
        else wanted.push(...this.takeEvent(bytes))
        at = end
      }
    } catch (thrown) {
      // What came before the failure still goes out, however the network cut it.
      this.failure = { thrown }
    }
    return wanted.length <= 1 ? wanted[0] : Buffer.concat(wanted)
  }

  private takeEvent(event: Buffer): Uint8Array[] {
    const data = dataOf(event)
    this.isDone = data === '[DONE]'
    if (data === undefined || this.isDone) return []
    const chunk = parseChunk(data)
    const mended = this.mender.take(chunk)
    return mended[0] === chunk ? [event] : mended.map(encodeEvent)
  }
}

/** Text and lists grow from delta to delta; of anything else the last one counts. */
function joinDeltas(deltas: readonly Readonly<Record<string, unknown>>[]): SaidMessage {
  const said: Record<string, unknown> & { content: string | null } = { content: null }
  for (const [field, piece] of deltas.flatMap((delta) => Object.entries(delta))) {
    const before = said[field]
    if (piece === null || field === 'role') continue
    if (typeof before === 'string' && typeof piece === 'string') said[field] = before + piece
    else if (Array.isArray(before) && Array.isArray(piece)) said[field] = [...before, ...piece]
    else said[field] = piece
  }
  return said
}

function parseChunk(data: string): unknown {
  try {
    return JSON.parse(data)
  } catch (cause) {
    throw new BackendFailure('protocol', 'an event is not JSON', { cause })
  }
}

/** Resolves with the first event, so that a failure before it can be retried. @throws BackendFailure */
export const askForStream: Ask = async (backend, request, span, options) =>
  new StreamedAnswer(await Round.open(backend, request, options, span))

export class StreamedAnswer implements ModelAnswer {
  readonly text = undefined
  private readonly round: Round

  constructor(round: Round) {
    this.round = round
  }

  get usage() {
    return this.round.mender.usage
  }

  get names() {
    return this.round.mender.names
  }

  message() {
    return this.round.said()
  }

  callsOf(choice: number) {
    return this.round.mender.callsOf(choice)
  }

  get first() {
    return this.round.first
  }

  next() {
    return this.round.next()
  }

  *finish({ request, tools }: Turn, rounds: Rounds, names: AnswerNames | undefined): Generator<Uint8Array> {
    const head = { object: 'chat.completion.chunk', ...names }
    for (let index = 0; tools !== undefined && index < (request.n ?? 1); index++) {
      const sent = this.round.mender.finishOf(index)
      if (sent === undefined) continue
      const { calls, finish } = rounds.endOf(this.callsOf(index), sent)
      const tool_calls = calls.map((call, position) => ({ index: position, ...call }))
      if (calls.length > 0)
        yield encodeEvent({ ...head, choices: [{ index, delta: { tool_calls }, finish_reason: null }] })
      yield encodeEvent({ ...head, choices: [{ index, delta: {}, finish_reason: finish }] })
    }
    if (!request.stream_options?.include_usage) return
    yield encodeEvent({ ...head, choices: [], usage: rounds.usage ?? noUsage })
  }

  fail(thrown: unknown) {
    this.round.breakOff(thrown)
  }

  close() {
    return this.round.close()
  }

  async [Symbol.asyncDispose]() {
    await this.close()
  }
}
