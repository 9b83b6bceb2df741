/** Reads a model's streamed answer, normalizes it, and forwards the original bytes wherever possible. */

import type { AnswerLimit } from '../../budgets/grants.ts'
import { isJsonObject } from '../../lib/formats/json.ts'
import { within } from '../../lib/timeout.ts'
import { failCall, toAnswerAttributes } from '../../providers/call-span.ts'
import type { AnswerNames } from '../../providers/chat-api.ts'
import { BackendFailure } from '../../providers/provider.ts'
import type { TraceSpan } from '../../telemetry/tracing.ts'
import { AnswerCounter } from '../output-limit.ts'
import {
  countPlainBytes,
  dataOf,
  EventReader,
  encodeEvent,
  eventEnd,
  plainEnd,
  splitRun,
} from '../sse-reader.ts'
import type { SaidMessage, ToolCall, ToolLoop } from '../tool-loop.ts'
import { type AnswerOptions, type Ask, type ModelAnswer, noUsage } from './model-answer.ts'
import { ChunkNormalizer } from './normalize-chunks.ts'
import { parseEvent } from './parse-answer.ts'
import { ReadAhead } from './read-ahead.ts'
import { trimChunk } from './trim-chunk.ts'

export const askForStream: Ask<StreamedAnswer> = async (backend, request, span, options) => {
  const source = await backend.stream({ ...request, trace: span?.headers })
  const answer = new StreamedAnswer(source, options, span)
  try {
    answer.first = await answer.next()
    return answer
  } catch (thrown) {
    answer.fail(thrown)
    await answer.close()
    throw thrown
  }
}

/** Milliseconds to wait for the usage and `[DONE]` after the last finish reason. */
const AFTER_FINISH_MS = 3_000
const noMore = { done: true, value: undefined } as const

export class StreamedAnswer implements ModelAnswer {
  readonly text = undefined
  isUsageEarly = false
  isEnded = false
  /** The first complete events for the client; undefined if the answer contains none. */
  first: Uint8Array | undefined
  private readonly source: AsyncIterator<Uint8Array, void, void>
  private readonly options: AnswerOptions
  private readonly span: TraceSpan | undefined
  private readonly normalizer: ChunkNormalizer
  private readonly reader = new EventReader()
  private readonly counter = new AnswerCounter()
  private readonly forwarded: Uint8Array[] = []
  private isDone = false
  private isClosed = false
  private isLeft = false
  private readonly ahead: ReadAhead<Uint8Array> | undefined
  private failure: { readonly thrown: unknown } | undefined

  constructor(
    source: AsyncIterator<Uint8Array, void, void>,
    options: AnswerOptions,
    span: TraceSpan | undefined,
  ) {
    this.source = source
    this.options = options
    this.span = span
    this.normalizer = new ChunkNormalizer(options)
    if (options.limit?.metering === 'bytes')
      this.ahead = new ReadAhead(
        () => this.read(),
        () => void this.leave(),
      )
  }

  get usage() {
    return this.normalizer.usage
  }

  get names() {
    return this.normalizer.names
  }

  get textBytes() {
    return this.counter.textBytes
  }

  get mediaBytes() {
    return this.counter.mediaBytes
  }

  get isFinished(): boolean {
    return this.normalizer.finishedChoices >= this.options.choices
  }

  get indexes(): readonly number[] {
    return this.normalizer.indexes
  }

  finishOf(choice: number): string | undefined {
    return this.normalizer.finishOf(choice)
  }

  /** Returns no calls of an answer that was ended, because their arguments can be incomplete. */
  callsOf(choice: number): ToolCall[] {
    return this.isEnded ? [] : this.normalizer.callsOf(choice)
  }

  /** Builds the message from the forwarded events; called only if the model is called again. */
  message(): SaidMessage {
    const events = this.forwarded.flatMap((run) => [...splitRun(Buffer.from(run))])
    const deltas = events.map((event) => JSON.parse(dataOf(event) as string).choices?.[0]?.delta ?? {})
    return joinDeltas(deltas)
  }

  /**
   * Returns the next complete events for the client; undefined at the end.
   * @throws BackendFailure if the answer is incomplete.
   */
  next(): Promise<Uint8Array | undefined> {
    return this.ahead === undefined ? this.read() : this.ahead.next()
  }

  private async read(): Promise<Uint8Array | undefined> {
    while (!this.isDone) {
      if (this.failure !== undefined) throw this.failure.thrown
      const read = await (this.isFinished ? this.readEnd() : this.source.next())
      if (read.done) return this.assertFinished(this.options.choices)
      const run = this.reader.push(read.value)
      const wanted = run === undefined ? undefined : this.take(run)
      if (wanted === undefined) continue
      if (this.options.withholdsCalls) this.forwarded.push(wanted)
      return wanted
    }
    return this.assertFinished(1)
  }

  /**
   * Reads from the provider after the last finish reason. A timeout or a lost connection ends the stream
   * normally, because only usage may follow.
   */
  private async readEnd(): Promise<IteratorResult<Uint8Array, void>> {
    try {
      return await within(AFTER_FINISH_MS, this.source.next(), () => noMore)
    } catch (thrown) {
      if (thrown instanceof BackendFailure) return noMore
      throw thrown
    }
  }

  *finish(loop: ToolLoop, names: AnswerNames | undefined): Generator<Uint8Array> {
    const { request, tools, usage } = loop
    const head = { object: 'chat.completion.chunk', ...names }
    for (let index = 0; tools !== undefined && index < (request.n ?? 1); index++) {
      const sent = this.normalizer.finishOf(index)
      if (sent === undefined) continue
      const { calls, finish } = loop.endOf(this.callsOf(index), sent)
      const tool_calls = calls.map((call, position) => ({ index: position, ...call }))
      if (calls.length > 0)
        yield encodeEvent({ ...head, choices: [{ index, delta: { tool_calls }, finish_reason: null }] })
      yield encodeEvent({ ...head, choices: [{ index, delta: {}, finish_reason: finish }] })
    }
    if (!request.stream_options?.include_usage) return
    yield encodeEvent({ ...head, choices: [], usage: usage ?? noUsage })
  }

  fail(thrown: unknown): void {
    failCall(this.span, thrown)
  }

  /** Reads to the end of the body after `[DONE]`, so that the connection can be reused. */
  async close(): Promise<void> {
    if (this.isClosed) return
    this.isClosed = true
    if (this.span !== undefined) {
      const { names, usage, finishReasons } = this.normalizer
      this.span.set(toAnswerAttributes(names, finishReasons, usage))
      this.span.end()
    }
    await this.leave()
  }

  /** Stops reading from the provider. */
  private async leave(): Promise<void> {
    if (this.isLeft) return
    this.isLeft = true
    const leave = () => this.source.return?.()
    if (this.isDone && !this.isEnded) void this.source.next().then(leave, leave)
    else await leave()
  }

  /**
   * Accepts a stream without `[DONE]`. @throws BackendFailure if fewer than `choices` choices have a finish
   * reason
   */
  private assertFinished(choices: number): undefined {
    if (this.normalizer.finishedChoices >= choices) return undefined
    const problem = 'the stream ended before the answer was complete'
    throw new BackendFailure('protocol', problem, { isIncomplete: true })
  }

  private take(run: Buffer): Uint8Array | undefined {
    const text = run.toString('latin1')
    const wanted: Uint8Array[] = []
    try {
      for (let at = 0; at < run.length && !this.isDone; ) {
        const plain = this.normalizer.hasBegun ? plainEnd(text, at) : at
        const end = plain > at ? plain : eventEnd(run, at)
        // Usually a read is one run of plain events, which needs no copy.
        const bytes = at === 0 && end === run.length ? run : run.subarray(at, end)
        if (plain > at) {
          if (this.countPlain(text, at, end)) wanted.push(bytes)
          else for (const event of splitRun(bytes)) wanted.push(...this.takeEvent(event))
        } else wanted.push(...this.takeEvent(bytes))
        at = end
      }
    } catch (thrown) {
      // Defers the error, so that earlier events are still sent to the client.
      this.failure = { thrown }
    }
    return wanted.length <= 1 ? wanted[0] : Buffer.concat(wanted)
  }

  /** Counts plain events. Returns false, and counts nothing, if the answer reaches its limit in them. */
  private countPlain(text: string, start: number, end: number): boolean {
    const { limit } = this.options
    if (limit === undefined) return true
    const bytes = countPlainBytes(text, start, end)
    if (this.countedBytes(limit) + bytes >= limit.endsAtBytes) return false
    this.counter.textBytes += bytes
    // Providers that report the usage before the end of an answer count too little.
    if (this.usage !== undefined) this.isUsageEarly = true
    return true
  }

  /** Counts a chunk; returns the bytes beyond the limit, which are negative before it is reached. */
  private count(chunk: unknown, limit: AnswerLimit): number {
    const before = this.textBytes
    this.counter.add(chunk, 'delta')
    if (isJsonObject(chunk) && isJsonObject(chunk.usage)) this.isUsageEarly = false
    else if (this.textBytes > before && this.usage !== undefined) this.isUsageEarly = true
    return this.countedBytes(limit) - limit.endsAtBytes
  }

  private countedBytes({ mediaBytesPerByte }: AnswerLimit): number {
    return this.counter.textBytes + this.counter.mediaBytes / mediaBytesPerByte
  }

  /** Ends the answer in a chunk that exceeds the limit, and closes the connection to the provider. */
  private endIn(chunk: unknown, excess: number): Uint8Array[] {
    this.isDone = true
    this.isEnded = true
    void this.leave()
    const kept = excess === 0 ? chunk : trimChunk(chunk, excess)
    const taken = kept === undefined ? [] : this.normalizer.take(kept)
    return [...taken, ...this.normalizer.endChoices('length')].map(encodeEvent)
  }

  private takeEvent(event: Buffer): Uint8Array[] {
    if (this.isDone) return []
    const { limit } = this.options
    const data = dataOf(event)
    this.isDone = data === '[DONE]'
    if (data === undefined || this.isDone) return []
    const chunk = parseEvent(data)
    const excess = limit === undefined ? -1 : this.count(chunk, limit)
    if (limit !== undefined && excess >= 0) return this.endIn(chunk, excess)
    const normalized = this.normalizer.take(chunk)
    return normalized[0] === chunk ? [event] : normalized.map(encodeEvent)
  }
}

/** Joins strings and lists across deltas; for any other field, the last value wins. */
export function joinDeltas(deltas: readonly Readonly<Record<string, unknown>>[]): SaidMessage {
  const said: Record<string, unknown> & { content: string | null } = { content: null }
  const lists = new Map<string, unknown[]>()
  for (const [field, piece] of deltas.flatMap((delta) => Object.entries(delta))) {
    const before = said[field]
    if (piece === null || field === 'role') continue
    if (typeof before === 'string' && typeof piece === 'string') said[field] = before + piece
    else if (Array.isArray(piece)) {
      // Copying the list for each piece would take quadratic time.
      const list = lists.get(field) ?? []
      for (const item of piece) list.push(item)
      said[field] = list
      lists.set(field, list)
    } else {
      said[field] = piece
      lists.delete(field)
    }
  }
  return said
}
