/** One answer of a model, whole or while it is being written: what the turn reads of it, and the last bytes the client gets. */
import type { TraceSpan } from '../observability/tracing.ts'
import { type AnswerNames, noUsage } from './answer-parts.ts'
import type { BackendRequest, ChatBackend } from './backend.ts'
import { toAnswerAttributes } from './call-span.ts'
import type { MenderOptions } from './chunk-mender.ts'
import { type Completion, readCompletion } from './completion.ts'
import { encodeEvent } from './event-reader.ts'
import { Round } from './round.ts'
import type { Rounds, SaidMessage } from './rounds.ts'
import type { Usage } from './schema.ts'
import type { ToolCall } from './tool-calls.ts'
import type { Turn } from './turn.ts'

export interface ModelAnswer extends AsyncDisposable {
  /** What came for the client with the answer's beginning; undefined when nothing did. */
  readonly first: Uint8Array | undefined
  /** What the client gets next while the model is still writing; undefined when there is no more. */
  next(): Promise<Uint8Array | undefined>
  /** What the client gets once the turn is over. */
  finish(turn: Turn, rounds: Rounds, names: AnswerNames | undefined): Iterable<Uint8Array>
  readonly names: AnswerNames | undefined
  readonly usage: Usage | undefined
  /** The text, where it is at hand: an estimate of its tokens is made from it, else from the events sent. */
  readonly text: string | null | undefined
  callsOf(choice: number): readonly ToolCall[]
  /** The message for the next request to the model. */
  message(): SaidMessage
  fail(thrown: unknown): void
  /** Lets the provider go. Safe to call twice. */
  close(): Promise<void>
}

type Ask = (
  backend: ChatBackend,
  request: BackendRequest,
  span: TraceSpan | undefined,
  options: MenderOptions,
) => Promise<ModelAnswer>

/** The backend's own bytes, where nothing has to be added or taken out. @throws BackendFailure */
export const askForWhole: Ask = async (backend, request, span, options) => {
  const bytes = await backend.complete({ ...request, trace: span?.headers })
  const { completion, isMended } = readCompletion(bytes, options)
  const { id, model, usage, choices } = completion
  const names = { id: String(id), model: String(model) }
  span?.set(
    toAnswerAttributes({ names, usage, finishReasons: choices.map((choice) => choice.finish_reason) }),
  )
  span?.end()
  return new WholeAnswer(bytes, completion, isMended)
}

/** Resolves with the first event, so that a failure before it can be retried. @throws BackendFailure */
export const askForStream: Ask = async (backend, request, span, options) =>
  new StreamedAnswer(await Round.open(backend, request, options, span))

class WholeAnswer implements ModelAnswer {
  readonly names = undefined
  readonly first = undefined
  private readonly bytes: Uint8Array
  private readonly completion: Completion
  private readonly isMended: boolean

  constructor(bytes: Uint8Array, completion: Completion, isMended: boolean) {
    this.bytes = bytes
    this.completion = completion
    this.isMended = isMended
  }

  get usage(): Usage {
    return this.completion.usage
  }

  get text(): string | null {
    return this.message().content
  }

  message() {
    return this.completion.choices[0].message
  }

  callsOf(choice: number): readonly ToolCall[] {
    return this.completion.choices[choice]?.message.tool_calls ?? []
  }

  async next() {
    return undefined
  }

  *finish(turn: Turn, rounds: Rounds): Generator<Uint8Array> {
    const isStripped = turn.tools !== undefined && this.stripCalls(rounds)
    if (!this.isMended && !isStripped && rounds.isFirst) return yield this.bytes
    if (rounds.textBefore !== '') this.message().content = rounds.textBefore + (this.text ?? '')
    yield Buffer.from(JSON.stringify({ ...this.completion, usage: rounds.usage }))
  }

  /** Takes out the calls the caller must not see; true when there were any. */
  private stripCalls(rounds: Rounds): boolean {
    let isStripped = false
    for (const choice of this.completion.choices) {
      const sent = choice.message.tool_calls ?? []
      const { calls, finish } = rounds.endOf(sent, choice.finish_reason)
      if (calls.length === sent.length) continue
      isStripped = true
      if (calls.length > 0) choice.message.tool_calls = [...calls]
      else delete choice.message.tool_calls
      choice.finish_reason = finish
    }
    return isStripped
  }

  fail() {}
  async close() {}
  async [Symbol.asyncDispose]() {}
}

class StreamedAnswer implements ModelAnswer {
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
