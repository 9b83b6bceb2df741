/** One answer of a model, whole or while it is being written: what the turn reads of it, and the last bytes the client gets. */

import { toAnswerAttributes } from '../providers/call-span.ts'
import type { AnswerNames, Usage } from '../providers/chat-api.ts'
import { BackendFailure } from '../providers/provider.ts'
import type { Turn } from './prepare-turn.ts'
import { argumentsText, type ToolCall } from './tool-calls.ts'
import { type Ask, hasNames, type ModelAnswer, noUsage, type Rounds, toUsage } from './tool-loop.ts'

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

type Fields = Record<string, unknown>

/** Makes up what a backend left out. */
export interface NewIds {
  readonly newNames: () => AnswerNames
  readonly newCallId: () => string
}

/** A completion, mended. */
export interface Completion extends Fields {
  readonly choices: [Choice, ...Choice[]]
  readonly usage: Usage
}

export interface Choice extends Fields {
  readonly message: Fields & { content: string | null; tool_calls?: ToolCall[] }
  finish_reason: string
}

/**
 * The completion in a backend's answer; `isMended` says whether it differs from what was sent. Decision: 12.
 * @throws BackendFailure `protocol` when it is none.
 */
export function readCompletion(
  bytes: Uint8Array,
  { newNames, newCallId }: NewIds,
): { completion: Completion; isMended: boolean } {
  const sent = parse(bytes)
  if (isWhole(sent)) return { completion: sent, isMended: false }
  const filler = new Filler()
  if (!hasNames(sent)) filler.fill(sent, { ...newNames() })
  filler.fill(sent, { object: 'chat.completion', usage: { ...noUsage } })
  for (const [index, choice] of listObjects(sent.choices, 'choices').entries()) {
    const message = asFields(choice.message, 'message')
    const calls = listObjects(message.tool_calls ?? [], 'tool_calls')
    filler.fill(choice, { index, finish_reason: calls.length > 0 ? 'tool_calls' : 'stop' })
    filler.fill(message, { role: 'assistant', content: null })
    if (message.tool_calls === null) filler.set(message, 'tool_calls', undefined)
    for (const call of calls) mendCall(call, filler, newCallId)
  }
  const usage = asFields(sent.usage, 'usage')
  filler.fill(usage, toUsage(usage))
  const completion = sent as Completion
  if (completion.choices.length === 0) throw new BackendFailure('protocol', 'the answer has no choices')
  return { completion, isMended: filler.hasChanged }
}

/** Whether an answer of text alone lacks nothing, as most do; cheaper to see than to mend. */
function isWhole(sent: Fields): sent is Completion {
  const { choices } = sent
  const usage = sent.usage as Partial<Usage> | null | undefined
  return (
    hasNames(sent) &&
    sent.object === 'chat.completion' &&
    Number.isInteger(usage?.prompt_tokens) &&
    Number.isInteger(usage?.completion_tokens) &&
    Number.isInteger(usage?.total_tokens) &&
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

function mendCall(call: Fields, filler: Filler, newCallId: () => string): void {
  if (!call.id) filler.set(call, 'id', newCallId())
  filler.fill(call, { type: 'function' })
  if (call.function === undefined || call.function === null) return
  const called = asFields(call.function, 'function')
  const text = argumentsText(called.arguments) || '{}'
  if (called.arguments !== text) filler.set(called, 'arguments', text)
}

/** Changes objects in place, and remembers that it did. */
class Filler {
  hasChanged = false

  /** Sets the fields that have no value yet. */
  fill(fields: Fields, values: Readonly<Fields>): void {
    for (const [name, value] of Object.entries(values)) {
      const known = fields[name]
      if ((known === undefined || known === null) && known !== value) this.set(fields, name, value)
    }
  }

  set(fields: Fields, name: string, value: unknown): void {
    fields[name] = value
    this.hasChanged = true
  }
}

function parse(bytes: Uint8Array): Fields {
  let value: unknown
  try {
    value = JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('utf8'))
  } catch (cause) {
    throw new BackendFailure('protocol', 'the answer is not JSON', { cause })
  }
  return asFields(value, 'answer')
}

function listObjects(value: unknown, what: string): Fields[] {
  if (!Array.isArray(value)) throw new BackendFailure('protocol', `${what} is not a list`)
  return value.map((item) => asFields(item, what))
}

function asFields(value: unknown, what: string): Fields {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Fields
  throw new BackendFailure('protocol', `${what} is not an object`)
}
