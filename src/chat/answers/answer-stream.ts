/** Reads a model's streamed answer, normalizes it, and forwards the original bytes wherever possible. */

import { isJsonObject } from '../../lib/formats/json.ts'
import { within } from '../../lib/timeout.ts'
import { failCall, toAnswerAttributes } from '../../providers/call-span.ts'
import type { AnswerNames } from '../../providers/chat-api.ts'
import { BackendFailure } from '../../providers/provider.ts'
import type { TraceSpan } from '../../telemetry/tracing.ts'
import { AnswerCounter } from '../output-limit.ts'
import { dataOf, EventReader, encodeEvent, eventEnd, plainEnd, splitRun } from '../sse-reader.ts'
import type { SaidMessage, ToolCall, ToolLoop } from '../tool-loop.ts'
import { type AnswerOptions, type Ask, type ModelAnswer, noUsage } from './model-answer.ts'
import { ChunkNormalizer } from './normalize-chunks.ts'
import { parseEvent } from './parse-answer.ts'

export const askForStream: Ask = async (backend, request, span, options) => {
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

class StreamedAnswer implements ModelAnswer {
  readonly text = undefined
  isUsageEarly = false
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

  get audioBytes() {
    return this.counter.audioBytes
  }

  get isFinished(): boolean {
    return this.normalizer.finishedChoices >= this.options.choices
  }

  callsOf(choice: number): ToolCall[] {
    return this.normalizer.callsOf(choice)
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
  async next(): Promise<Uint8Array | undefined> {
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
    const leave = () => this.source.return?.()
    if (this.isDone) void this.source.next().then(leave, leave)
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
          if (this.options.isMetered) this.countEvents(bytes)
          wanted.push(bytes)
        } else wanted.push(...this.takeEvent(bytes))
        at = end
      }
    } catch (thrown) {
      // Defers the error, so that earlier events are still sent to the client.
      this.failure = { thrown }
    }
    return wanted.length <= 1 ? wanted[0] : Buffer.concat(wanted)
  }

  private countEvents(run: Buffer): void {
    for (const event of splitRun(run)) this.count(JSON.parse(dataOf(event) as string))
  }

  /** Providers that report the usage before the end of an answer count too little. */
  private count(chunk: unknown): void {
    const before = this.textBytes
    this.counter.add(chunk, 'delta')
    if (isJsonObject(chunk) && isJsonObject(chunk.usage)) this.isUsageEarly = false
    else if (this.textBytes > before && this.usage !== undefined) this.isUsageEarly = true
  }

  private takeEvent(event: Buffer): Uint8Array[] {
    const data = dataOf(event)
    this.isDone = data === '[DONE]'
    if (data === undefined || this.isDone) return []
    const chunk = parseEvent(data)
    if (this.options.isMetered) this.count(chunk)
    const normalized = this.normalizer.take(chunk)
    return normalized[0] === chunk ? [event] : normalized.map(encodeEvent)
  }
}

/** Joins strings and lists across deltas; for any other field, the last value wins. */
function joinDeltas(deltas: readonly Readonly<Record<string, unknown>>[]): SaidMessage {
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
