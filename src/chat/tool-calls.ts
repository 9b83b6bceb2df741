/** Tool calls: assembles streamed ones and normalizes their deltas for every client. */
import { isJsonObject, parseJson } from '../lib/formats/json.ts'
import { BackendFailure } from '../providers/provider.ts'

/** A whole tool call as a message carries it; fields that a provider adds stay. */
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

/** The first delta of a call, as the client gets it. */
interface FirstDelta extends ToolCall {
  readonly index: number
}

interface PartialCall {
  /** The provider's own index; not every provider counts from 0 or at all. */
  readonly sentIndex: CallDelta['index']
  readonly first: FirstDelta
  arguments: string
}

/** The tool calls of one choice of a stream. */
export class ToolCallAssembler {
  private readonly calls: PartialCall[] = []
  private readonly newId: () => string

  constructor(newId: () => string) {
    this.newId = newId
  }

  /**
   * Normalizes deltas: an index always; id, type and name in a call's first delta and never again; arguments always text.
   * @throws BackendFailure `protocol` when they are not a list of objects.
   */
  take(sent: unknown): (FirstDelta | CallDelta)[] {
    if (!Array.isArray(sent)) throw new BackendFailure('protocol', 'tool_calls is not a list')
    return sent.map((delta) => this.takeOne(delta)).filter((delta) => delta !== undefined)
  }

  /** The deltas that complete function calls without arguments: `"{}"` each. */
  takeMissingArguments(): CallDelta[] {
    const missing = this.calls.filter((call) => call.first.function !== undefined && call.arguments === '')
    for (const call of missing) call.arguments = '{}'
    return missing.map(({ first }) => ({ index: first.index, function: { arguments: '{}' } }))
  }

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
   * Some providers give every call the same index, others none: a new id always starts a new call, and so does another name without
   * id and index.
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

/** The next delta of a known call; undefined when it adds nothing. */
function continueCall(known: PartialCall, delta: CallDelta): CallDelta | undefined {
  const { id: _id, type: _type, function: called, ...rest } = delta
  const text = argumentsText(called?.arguments)
  known.arguments += text
  const continued: CallDelta = { ...rest, index: known.first.index }
  if (text !== '') continued.function = { arguments: text }
  return Object.keys(continued).length > 1 ? continued : undefined
}

/**
 * A call as it is repeated to the model. Providers parse the arguments and reject the whole request when they are not an object, so such
 * arguments are left out; the call's result says what was wrong.
 */
export function toReadableCall(call: ToolCall): ToolCall {
  const { function: called } = call
  if (called === undefined || isJsonObject(parseJson(called.arguments))) return call
  return { ...call, function: { ...called, arguments: '{}' } }
}

/** The name an agent allows a call by; calls of other kinds than functions have none. */
export function nameOf(call: ToolCall): string {
  return call.function?.name ?? ''
}

/** Arguments are text holding JSON; some providers send the object itself, or nothing. */
export function argumentsText(value: unknown): string {
  if (value === undefined || value === null) return ''
  return typeof value === 'string' ? value : JSON.stringify(value)
}
