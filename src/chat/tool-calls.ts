/** Puts streamed tool calls together, and makes their deltas what every client can read. */
import { BackendFailure } from '../providers/provider.ts'

/** A whole tool call, as a message carries it; fields a provider adds stay. Contract: Chat message (`tool_calls`). */
export interface ToolCall {
  readonly [field: string]: unknown
  readonly id: string
  readonly type: string
  readonly function?: { readonly name: string; readonly arguments: string }
}

interface CallDelta {
  [field: string]: unknown
  index?: number | null
  id?: string | null
  type?: string | null
  function?: { name?: string | null; arguments?: unknown } | null
}

/** How a call is begun to the caller. */
interface FirstDelta extends ToolCall {
  readonly index: number
}

interface PartialCall {
  /** What the backend counts it as; not every backend counts from 0 or at all. */
  readonly sentIndex: CallDelta['index']
  readonly first: FirstDelta
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
  take(sent: unknown): (FirstDelta | CallDelta)[] {
    if (!Array.isArray(sent)) throw new BackendFailure('protocol', 'tool_calls is not a list')
    return sent.map((delta) => this.takeOne(delta)).filter((delta) => delta !== undefined)
  }

  /** What is still owed at the end: `"{}"` for every function call that came without arguments. */
  takeMissingArguments(): CallDelta[] {
    const owing = this.calls.filter((call) => call.first.function !== undefined && call.arguments === '')
    for (const call of owing) call.arguments = '{}'
    return owing.map(({ first }) => ({ index: first.index, function: { arguments: '{}' } }))
  }

  /** The calls as they stand. */
  list(): ToolCall[] {
    return this.calls.map(({ first, arguments: text }) => {
      const { index: _, ...call } = first
      const { function: called } = call
      return called === undefined ? call : { ...call, function: { ...called, arguments: text || '{}' } }
    })
  }

  private takeOne(sent: unknown): FirstDelta | CallDelta | undefined {
    const delta = asDelta(sent)
    const known = this.find(delta)
    return known === undefined ? this.start(delta) : continueCall(known, delta)
  }

  private start(delta: CallDelta): FirstDelta {
    const { type, function: called, ...rest } = delta
    const text = argumentsText(called?.arguments)
    const first: FirstDelta = {
      ...rest,
      index: this.calls.length,
      id: delta.id || this.newId(),
      type: type ?? 'function',
      ...(called ? { function: { ...called, name: called.name ?? '', arguments: text } } : {}),
    }
    this.calls.push({ sentIndex: delta.index, first, arguments: text })
    return first
  }

  /**
   * Some backends give every call the same index, some none: a new id always starts a new call, and so does another name where there is
   * neither.
   */
  private find({ index, id, function: called }: CallDelta): PartialCall | undefined {
    const isPlaced = typeof index === 'number'
    const candidates = isPlaced ? this.calls.filter((call) => call.sentIndex === index) : this.calls
    if (id) return candidates.find(({ first }) => first.id === id)
    const last = candidates.at(-1)
    const isRenamed = !isPlaced && called?.name && called.name !== last?.first.function?.name
    return isRenamed ? undefined : last
  }
}

function asDelta(sent: unknown): CallDelta {
  const called = (sent as CallDelta | null)?.function ?? {}
  if (typeof sent !== 'object' || sent === null || typeof called !== 'object') {
    throw new BackendFailure('protocol', 'a tool call is no object')
  }
  return sent as CallDelta
}

/** The rest of a call that has begun; undefined when the delta says nothing new. */
function continueCall(known: PartialCall, delta: CallDelta): CallDelta | undefined {
  const { id: _id, type: _type, function: called, ...rest } = delta
  const text = argumentsText(called?.arguments)
  known.arguments += text
  const continued: CallDelta = { ...rest, index: known.first.index }
  if (text !== '') continued.function = { arguments: text }
  return Object.keys(continued).length > 1 ? continued : undefined
}

/**
 * A call as it is told back to the model. Backends put arguments into their templates as an object, and refuse the whole request where
 * they cannot: arguments that are none are left out, and the call's answer says what was wrong.
 */
export function toReadableCall(call: ToolCall): ToolCall {
  const { function: called } = call
  if (called === undefined || isObjectText(called.arguments)) return call
  return { ...call, function: { ...called, arguments: '{}' } }
}

function isObjectText(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
  } catch {
    return false
  }
}

/** Arguments are text holding JSON; some backends send the object itself, or nothing. */
export function argumentsText(value: unknown): string {
  if (value === undefined || value === null) return ''
  return typeof value === 'string' ? value : JSON.stringify(value)
}
