/** Reads a backend's whole answer, and fills in what every client relies on. */

import { type AnswerNames, hasNames, noUsage, toUsage } from './answer-parts.ts'
import { BackendFailure } from './backend.ts'
import type { Usage } from './schema.ts'
import { argumentsText, type ToolCall } from './tool-calls.ts'

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
