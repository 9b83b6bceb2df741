/** Puts streamed tool calls together, and makes their deltas what every client can read. */
import { BackendFailure } from './backend.ts'

/** A whole tool call, as a message carries it; fields a provider adds stay. Contract: Chat message (`tool_calls`). */
export interface ToolCall {
  readonly [field: string]: unknown
  readonly id: string
  readonly type: string
  readonly function?: { readonly name: string; readonly arguments: string }
}

interface CallDelta {
  [field: string]: unknown
  index?: number
  id?: string
  type?: string
  function?: { name?: string; arguments?: unknown }
}

interface PartialCall {
  /** What the backend counts it as; not every backend counts from 0 or at all. */
  readonly sentIndex: number | undefined
  readonly index: number
  readonly id: string
  readonly first: CallDelta
  arguments: string
}

/** The calls of one choice, while they arrive. */
export class ToolCallAssembler {
  private readonly calls: PartialCall[] = []
  private readonly newId: () => string

  constructor(newId: () => string) {
    this.newId = newId
  }

  /**
   * Mends deltas: an index always; id, type and name in a call's first delta and never again; arguments always text. Decision: 12.
   * @throws BackendFailure `protocol` when they are not a list of objects.
   */
  take(sent: unknown): CallDelta[] {
    if (!Array.isArray(sent)) throw new BackendFailure('protocol', 'tool_calls is not a list')
    return sent.map((delta) => this.takeOne(delta)).filter((delta) => delta !== undefined)
  }

  /** What is still owed at the end: `"{}"` for every function call that came without arguments. */
  takeMissingArguments(): CallDelta[] {
    const owing = this.calls.filter((call) => call.first.function !== undefined && call.arguments === '')
    for (const call of owing) call.arguments = '{}'
    return owing.map(({ index }) => ({ index, function: { arguments: '{}' } }))
  }

  /** The calls as they stand. */
  list(): ToolCall[] {
    return this.calls.map(({ id, first, arguments: text }) => {
      const { index: _, type = 'function', function: called, ...rest } = first
      const call = { ...rest, id, type }
      return called === undefined
        ? call
        : { ...call, function: { name: called.name ?? '', arguments: text === '' ? '{}' : text } }
    })
  }

  private takeOne(sent: unknown): CallDelta | undefined {
    if (typeof sent !== 'object' || sent === null)
      throw new BackendFailure('protocol', 'a tool call is no object')
    const delta = sent as CallDelta
    const known = this.find(delta)
    return known === undefined ? this.start(delta) : continueCall(known, delta)
  }

  private start(delta: CallDelta): CallDelta {
    const { type = 'function', function: called, ...rest } = delta
    const index = this.calls.length
    const id = delta.id || this.newId()
    const text = argumentsText(called?.arguments)
    const first: CallDelta = { ...rest, index, id, type }
    if (called !== undefined) first.function = { ...called, name: called.name ?? '', arguments: text }
    this.calls.push({ sentIndex: delta.index, index, id, first, arguments: text })
    return first
  }

  /** Some backends give every call the same index, some none: a new id always starts a new call. */
  private find({ index, id }: CallDelta): PartialCall | undefined {
    const candidates =
      index === undefined ? this.calls : this.calls.filter((call) => call.sentIndex === index)
    return id ? candidates.find((call) => call.id === id) : candidates.at(-1)
  }
}

/** The rest of a call that has begun; undefined when the delta says nothing new. */
function continueCall(known: PartialCall, delta: CallDelta): CallDelta | undefined {
  const { id: _id, type: _type, function: called, ...rest } = delta
  const text = argumentsText(called?.arguments)
  known.arguments += text
  const continued: CallDelta = { ...rest, index: known.index }
  if (text !== '') continued.function = { arguments: text }
  return Object.keys(continued).length > 1 ? continued : undefined
}

/** Arguments are text holding JSON; some backends send the object itself, or nothing. */
export function argumentsText(value: unknown): string {
  if (value === undefined || value === null) return ''
  return typeof value === 'string' ? value : JSON.stringify(value)
}
