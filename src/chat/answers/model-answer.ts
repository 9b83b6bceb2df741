/** Defines how a turn reads a model's answer, and implements it for answers that are not streamed. */
import type { AnswerBytes, AnswerLimit } from '../../budgets/grants.ts'
import { unixSeconds } from '../../lib/clock.ts'
import { isJsonObject, toCount } from '../../lib/formats/json.ts'
import { newId } from '../../lib/ids.ts'
import { toAnswerAttributes } from '../../providers/call-span.ts'
import type { AnswerNames, Usage } from '../../providers/chat-api.ts'
import { BackendFailure, type BackendRequest, type ChatBackend } from '../../providers/provider.ts'
import type { TraceSpan } from '../../telemetry/tracing.ts'
import type { Dependencies } from '../dependencies.ts'
import { AnswerCounter } from '../output-limit.ts'
import { argumentsText, type SaidMessage, type ToolCall, type ToolLoop } from '../tool-loop.ts'
import { assertCallCount, assertChoiceCount, parseCompletion } from './parse-answer.ts'

export interface ModelAnswer {
  /** The first bytes for the client; undefined if the answer has no bytes. */
  readonly first: Uint8Array | undefined
  /** Returns the next bytes for the client; undefined at the end. */
  next(): Promise<Uint8Array | undefined>
  finish(loop: ToolLoop, names: AnswerNames | undefined): Iterable<Uint8Array>
  readonly names: AnswerNames | undefined
  readonly usage: Usage | undefined
  /** The text used to estimate tokens; undefined for a stream, whose events are counted instead. */
  readonly text: string | null | undefined
  /** Bytes of the text, reasoning and tool calls; 0 if the turn is not metered. */
  readonly textBytes: number
  /** Bytes of encoded audio and images; 0 if the turn is not metered. */
  readonly mediaBytes: number
  /** Whether the model produced more after the provider had reported the usage. */
  readonly isUsageEarly: boolean
  /** Whether the model has finished all choices. */
  readonly isFinished: boolean
  /** Whether the answer was ended at its limit in bytes. */
  readonly isEnded: boolean
  callsOf(choice: number): readonly ToolCall[]
  message(): SaidMessage
  fail(thrown: unknown): void
  close(): Promise<void> | undefined
}

export interface AnswerOptions {
  readonly choices: number
  /**
   * Whether to withhold tool calls and finish reasons, because the turn must first decide which of them the
   * client receives.
   */
  readonly withholdsCalls: boolean
  /** Undefined if no budget applies; the bytes of the answer are then not counted. */
  readonly limit: AnswerLimit | undefined
  /** The id, time and model of the answer if an earlier stream of this turn began it; otherwise undefined. */
  readonly continued: AnswerNames | undefined
  readonly newNames: () => AnswerNames
  readonly newCallId: () => string
}

export type Ask<Answer extends ModelAnswer = ModelAnswer> = (
  backend: ChatBackend,
  request: BackendRequest,
  span: TraceSpan | undefined,
  options: AnswerOptions,
) => Promise<Answer>

type Fields = Record<string, unknown>

export function newNames(
  { clock, random }: Pick<Dependencies, 'clock' | 'random'>,
  model: string,
): AnswerNames {
  return { id: newId('chatcmpl-', 24, random), created: unixSeconds(clock), model }
}

export function hasNames(answer: Readonly<Fields>): answer is Readonly<Fields> & AnswerNames {
  const { id, created, model } = answer
  return typeof id === 'string' && isCount(created) && typeof model === 'string'
}

export const noUsage: Usage = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 }

/** Replaces required counts that are not whole numbers with 0, and drops such optional counts. */
export function toUsage(sent: Readonly<Fields>): Usage {
  const count = (field: string) => (isCount(sent[field]) ? sent[field] : 0)
  const [prompt_tokens, completion_tokens] = [count('prompt_tokens'), count('completion_tokens')]
  const total_tokens = count('total_tokens') || prompt_tokens + completion_tokens
  return { ...keepCounts(sent), prompt_tokens, completion_tokens, total_tokens }
}

/** Returns whether `toUsage` would return the same values. */
function isUsage(sent: Readonly<Fields>): boolean {
  const { prompt_tokens, completion_tokens, total_tokens } = sent
  if (!isCount(prompt_tokens) || !isCount(completion_tokens) || !isCount(total_tokens)) return false
  return (total_tokens > 0 || prompt_tokens + completion_tokens === 0) && hasOnlyCounts(sent)
}

function hasOnlyCounts(sent: Readonly<Fields>): boolean {
  for (const name in sent) {
    const value = sent[name]
    if (name.endsWith('_tokens') && !isCount(value)) return false
    if (name.endsWith('_tokens_details') && isJsonObject(value) && !hasOnlyCounts(value)) return false
  }
  return true
}

function keepCounts(sent: Readonly<Fields>): Fields {
  const kept = Object.entries(sent).filter(([name, value]) => !name.endsWith('_tokens') || isCount(value))
  return Object.fromEntries(
    kept.map(([name, value]) => [
      name,
      name.endsWith('_tokens_details') && isJsonObject(value) ? keepCounts(value) : value,
    ]),
  )
}

function isCount(value: unknown): value is number {
  return toCount(value, 0) !== undefined
}

/**
 * Requests a complete answer and forwards the provider's bytes unless they must be changed.
 * @throws BackendFailure
 */
export const askForCompletion: Ask = async (backend, request, span, options) => {
  const answer = new WholeAnswer(await backend.complete({ ...request, trace: span?.headers }), options)
  span?.set(answer.attributes())
  span?.end()
  return answer
}

/** The bytes of an answer that was collected from a stream. */
type CollectedBytes = AnswerBytes & Pick<ModelAnswer, 'isEnded'>

export class WholeAnswer implements ModelAnswer {
  readonly names = undefined
  readonly first = undefined
  readonly isUsageEarly = false
  readonly isFinished = true
  private readonly bytes: Uint8Array
  private readonly completion: Completion
  private readonly isNormalized: boolean
  private readonly collected: CollectedBytes | undefined

  constructor(bytes: Uint8Array, options: AnswerOptions, collected?: CollectedBytes) {
    this.bytes = bytes
    this.collected = collected
    const { completion, isNormalized } = readCompletion(bytes, options)
    this.completion = completion
    this.isNormalized = isNormalized
  }

  get usage(): Usage {
    return this.completion.usage
  }

  get text(): string | null {
    return this.message().content
  }

  get textBytes(): number {
    return this.count().textBytes
  }

  get mediaBytes(): number {
    return this.count().mediaBytes
  }

  get isEnded(): boolean {
    return this.collected?.isEnded ?? false
  }

  private count(): AnswerBytes {
    if (this.collected !== undefined) return this.collected
    const counter = new AnswerCounter()
    counter.add(this.completion, 'message')
    return counter
  }

  attributes() {
    const { id, model, usage, choices } = this.completion
    const names = { id: String(id), model: String(model) }
    const finishReasons = choices.map((choice) => choice.finish_reason)
    return toAnswerAttributes(names, finishReasons, usage)
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

  *finish(loop: ToolLoop): Generator<Uint8Array> {
    const isStripped = loop.tools !== undefined && this.stripCalls(loop)
    const isChanged = this.isNormalized || isStripped || loop.isUsageChanged
    if (!isChanged && loop.isFirst) return yield this.bytes
    if (loop.textBefore !== '') this.message().content = loop.textBefore + (this.text ?? '')
    yield Buffer.from(JSON.stringify({ ...this.completion, usage: loop.usage }))
  }

  private stripCalls(loop: ToolLoop): boolean {
    let isStripped = false
    for (const choice of this.completion.choices) {
      const sent = choice.message.tool_calls ?? []
      const { calls, finish } = loop.endOf(sent, choice.finish_reason)
      if (calls.length === sent.length) continue
      isStripped = true
      if (calls.length > 0) choice.message.tool_calls = [...calls]
      else delete choice.message.tool_calls
      choice.finish_reason = finish
    }
    return isStripped
  }

  fail() {}

  close() {
    return undefined
  }
}

interface Completion extends Fields {
  readonly choices: [Choice, ...Choice[]]
  readonly usage: Usage
}

interface Choice extends Fields {
  readonly message: Fields & { content: string | null; tool_calls?: ToolCall[] }
  finish_reason: string
}

function readCompletion(
  bytes: Uint8Array,
  { choices: requested, newNames, newCallId }: AnswerOptions,
): { completion: Completion; isNormalized: boolean } {
  const sent = asFields(parseCompletion(bytes), 'answer')
  const choices = listFields(sent.choices, 'choices')
  assertChoiceCount(choices.length, requested)
  if (isComplete(sent)) return { completion: sent, isNormalized: false }
  const defaults = new Defaults()
  if (!hasNames(sent)) defaults.fill(sent, { ...newNames() })
  defaults.fill(sent, { usage: { ...noUsage } })
  if (sent.object !== 'chat.completion') defaults.set(sent, 'object', 'chat.completion')
  for (const [index, choice] of choices.entries()) {
    const message = asFields(choice.message, 'message')
    const calls = listFields(message.tool_calls ?? [], 'tool_calls')
    assertCallCount(calls.length)
    defaults.fill(choice, { index, finish_reason: calls.length > 0 ? 'tool_calls' : 'stop' })
    defaults.fill(message, { content: null })
    if (message.role !== 'assistant') defaults.set(message, 'role', 'assistant')
    if (message.tool_calls === null) defaults.set(message, 'tool_calls', undefined)
    for (const call of calls) normalizeCall(call, defaults, newCallId)
  }
  const usage = asFields(sent.usage, 'usage')
  if (!isUsage(usage)) defaults.set(sent, 'usage', toUsage(usage))
  const completion = sent as Completion
  if (completion.choices.length === 0) throw new BackendFailure('protocol', 'the answer has no choices')
  return { completion, isNormalized: defaults.hasChanged }
}

/** Returns true for a text answer that has all fields; this check is cheaper than normalizing. */
function isComplete(sent: Fields): sent is Completion {
  const { choices } = sent
  const { usage } = sent
  return (
    hasNames(sent) &&
    sent.object === 'chat.completion' &&
    isJsonObject(usage) &&
    isUsage(usage) &&
    Array.isArray(choices) &&
    choices.length > 0 &&
    choices.every(
      (choice) =>
        Number.isInteger(choice?.index) &&
        typeof choice.finish_reason === 'string' &&
        choice.message?.role === 'assistant' &&
        typeof choice.message.content === 'string' &&
        choice.message.tool_calls === undefined,
    )
  )
}

function normalizeCall(call: Fields, defaults: Defaults, newCallId: () => string): void {
  if (typeof call.id !== 'string' || call.id === '') defaults.set(call, 'id', newCallId())
  defaults.fill(call, { type: 'function' })
  if (call.function === undefined || call.function === null) return
  const called = asFields(call.function, 'function')
  defaults.fill(called, { name: '' })
  const text = argumentsText(called.arguments) || '{}'
  if (called.arguments !== text) defaults.set(called, 'arguments', text)
}

class Defaults {
  hasChanged = false

  /**
   * Sets each missing field to its default value. If the default is a string or a number, also replaces a
   * value of another type.
   */
  fill(fields: Fields, values: Readonly<Fields>): void {
    for (const [name, value] of Object.entries(values)) {
      const known = fields[name]
      if (isMissing(known, value) && known !== value) this.set(fields, name, value)
    }
  }

  set(fields: Fields, name: string, value: unknown): void {
    fields[name] = value
    this.hasChanged = true
  }
}

function isMissing(known: unknown, byDefault: unknown): boolean {
  if (typeof byDefault === 'string') return typeof known !== 'string'
  if (typeof byDefault === 'number') return !isCount(known)
  return known === undefined || known === null
}

function listFields(value: unknown, what: string): Fields[] {
  if (!Array.isArray(value)) throw new BackendFailure('protocol', `${what} is not a list`)
  return value.map((item) => asFields(item, what))
}

function asFields(value: unknown, what: string): Fields {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Fields
  throw new BackendFailure('protocol', `${what} is not an object`)
}
