/**
 * Normalizes streamed chunks from all providers, and records the tool calls and usage that the turn needs.
 */
import { isDeepStrictEqual } from 'node:util'
import { isJsonObject, toCount } from '../../lib/formats/json.ts'
import type { AnswerNames, Usage } from '../../providers/chat-api.ts'
import { BackendFailure } from '../../providers/provider.ts'
import { argumentsText, type ToolCall } from '../tool-loop.ts'
import { type AnswerOptions, hasNames, toUsage } from './model-answer.ts'
import { assertCallCount, assertChoiceCount } from './parse-answer.ts'

type Fields = Record<string, unknown>

interface Chunk extends Fields {
  choices: unknown[]
}

interface ChoiceState {
  hasRole: boolean
  finish: string | undefined
  readonly calls: ToolCallAssembler
}

/**
 * Normalizes one stream's chunks: the role only in a choice's first chunk, one choice per chunk, each finish
 * reason once, and no usage.
 */
export class ChunkNormalizer {
  usage: Usage | undefined
  names: AnswerNames | undefined
  /** Kept as a counter, because counting the choices again for each chunk would be slow. */
  finishedChoices = 0
  private isNamed = true
  private readonly states = new Map<number, ChoiceState>()
  private readonly options: AnswerOptions

  constructor(options: AnswerOptions) {
    this.options = options
  }

  /**
   * Whether text can be forwarded without parsing, because all choices have begun and no chunk needs a new id
   * or model.
   */
  get hasBegun(): boolean {
    return this.isNamed && this.states.size >= this.options.choices
  }

  get finishReasons(): string[] {
    return [...this.states.values()].flatMap(({ finish }) => (finish === undefined ? [] : [finish]))
  }

  /** Indexes of the choices that have begun. */
  get indexes(): number[] {
    return [...this.states.keys()].toSorted((one, other) => one - other)
  }

  finishOf(choice: number): string | undefined {
    return this.states.get(choice)?.finish
  }

  callsOf(choice: number): ToolCall[] {
    return this.states.get(choice)?.calls.list() ?? []
  }

  /** Returns the chunks to send, or only `value` itself if nothing needs to change. @throws BackendFailure */
  take(value: unknown): readonly Fields[] {
    const sent = asChunk(value)
    const { choices, usage, ...head } = sent
    if (isJsonObject(usage)) this.usage = toUsage(usage)
    else if (usage !== undefined) head.usage = usage
    if (choices.length === 0) return []
    // Limits the choices, because each becomes a separate chunk with a copy of the other fields.
    assertChoiceCount(choices.length, this.options.choices)
    this.nameChunk(head)
    const normalized = choices
      .flatMap((choice) => this.takeChoice(choice))
      .map((choice) => ({ ...head, choices: [choice] }))
    return normalized.length === 1 && isDeepStrictEqual(normalized[0], value) ? [value as Fields] : normalized
  }

  /** Ends all choices that have not finished, and returns the chunks to send. */
  endChoices(finish: string): readonly Fields[] {
    const chunks: Fields[] = []
    for (let index = 0; index < this.options.choices; index++) {
      const state = this.stateOf(index)
      if (state.finish !== undefined) continue
      state.finish = finish
      this.finishedChoices += 1
      if (this.options.withholdsCalls) continue
      const head: Fields = {}
      this.nameChunk(head)
      const delta = state.hasRole ? {} : { role: 'assistant' }
      state.hasRole = true
      const names = { object: 'chat.completion.chunk', ...this.names }
      chunks.push({ ...names, choices: [{ index, delta, finish_reason: finish }] })
    }
    return chunks
  }

  private takeChoice(sent: unknown): Fields[] {
    if (!isJsonObject(sent)) throw new BackendFailure('protocol', 'a choice is not an object')
    const index = toCount(sent.index, 0) ?? 0
    const state = this.stateOf(index)
    const delta = this.takeDelta(state, isJsonObject(sent.delta) ? sent.delta : {})
    const added = { ...sent, index, delta, finish_reason: null }
    const finish = sent.finish_reason
    if (typeof finish !== 'string' || finish === '') return isEmpty(added) ? [] : [added]
    const isRepeated = state.finish !== undefined
    if (!isRepeated) this.finishedChoices += 1
    state.finish ??= finish
    const pieces: Fields[] = isEmpty(delta) ? [] : [added]
    if (this.options.withholdsCalls || isRepeated) return pieces
    const missing = state.calls.takeMissingArguments()
    if (missing.length > 0) pieces.push({ index, delta: { tool_calls: missing }, finish_reason: null })
    const end = { index, delta: {}, finish_reason: finish }
    return [...pieces, pieces.length > 0 ? end : { ...sent, ...end }]
  }

  private takeDelta(state: ChoiceState, sent: Fields): Fields {
    const { role: _, tool_calls: sentCalls, ...rest } = sent
    const delta: Fields = state.hasRole ? rest : { role: 'assistant', ...rest }
    state.hasRole = true
    const calls = state.calls.take(sentCalls ?? [])
    if (calls.length > 0 && !this.options.withholdsCalls) delta.tool_calls = calls
    return delta
  }

  private nameChunk(head: Fields): void {
    const { continued, newNames } = this.options
    const isNamed = continued === undefined && head.object === 'chat.completion.chunk' && hasNames(head)
    this.names ??=
      continued ?? (isNamed ? { id: head.id, created: head.created, model: head.model } : newNames())
    if (isNamed) return
    this.isNamed = false
    Object.assign(head, { object: 'chat.completion.chunk', ...this.names })
  }

  private stateOf(index: number): ChoiceState {
    let state = this.states.get(index)
    if (state === undefined) {
      assertChoiceCount(this.states.size + 1, this.options.choices)
      state = {
        hasRole: this.options.continued !== undefined,
        finish: undefined,
        calls: new ToolCallAssembler(this.options.newCallId),
      }
      this.states.set(index, state)
    }
    return state
  }
}

function asChunk(value: unknown): Chunk {
  if (!isJsonObject(value)) throw new BackendFailure('protocol', 'an event is not an object')
  if (value.error !== undefined && value.error !== null) {
    const message = 'the provider reported a failure in its stream'
    throw new BackendFailure('status', message, { status: 502, isInAnswer: true })
  }
  const choices = value.choices ?? (isJsonObject(value.usage) ? [] : undefined)
  if (!Array.isArray(choices)) throw new BackendFailure('protocol', 'an event has no choices')
  return { ...value, choices }
}

/** Returns whether a choice or delta has no content besides its index. */
function isEmpty({ index: _, ...fields }: Fields): boolean {
  return Object.values(fields).every(
    (value) =>
      value === null || value === undefined || value === '' || (isJsonObject(value) && isEmpty(value)),
  )
}

interface CallDelta {
  [field: string]: unknown
  index?: number | null
  id?: string | null
  type?: string | null
  function?: { name?: string | null; arguments?: unknown } | null
}

interface FirstDelta extends ToolCall {
  readonly index: number
}

interface PartialCall {
  readonly first: FirstDelta
  arguments: string
}

class ToolCallAssembler {
  private readonly calls: PartialCall[] = []
  private readonly callsByIndex = new Map<number, readonly PartialCall[]>()
  private readonly newId: () => string

  constructor(newId: () => string) {
    this.newId = newId
  }

  /**
   * Adds missing indexes and ids, and emits each call's id, type and name only once.
   * @throws BackendFailure `protocol`
   */
  take(sent: unknown): (FirstDelta | CallDelta)[] {
    if (!Array.isArray(sent)) throw new BackendFailure('protocol', 'tool_calls is not a list')
    return sent.map((delta) => this.takeOne(delta)).filter((delta) => delta !== undefined)
  }

  /** Returns deltas that add the arguments `"{}"` to function calls without arguments. */
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
    assertCallCount(this.calls.length + 1)
    const { type, function: called, ...rest } = delta
    const text = argumentsText(called?.arguments)
    const first: FirstDelta = {
      ...rest,
      index: this.calls.length,
      id: delta.id || this.newId(),
      type: type ?? 'function',
      ...(called ? { function: { ...called, name: called.name ?? '', arguments: text } } : {}),
    }
    const call: PartialCall = { first, arguments: text }
    this.calls.push(call)
    if (typeof delta.index === 'number')
      this.callsByIndex.set(delta.index, [...this.callsAt(delta.index), call])
    return first
  }

  /**
   * Returns the call that a delta continues; undefined for a new call. Without an index, a new name starts a
   * new call.
   */
  private find({ index, id, function: called }: CallDelta): PartialCall | undefined {
    const isPlaced = typeof index === 'number'
    const candidates = isPlaced ? this.callsAt(index) : this.calls
    if (id) return candidates.find(({ first }) => first.id === id)
    const last = candidates.at(-1)
    const isRenamed = !isPlaced && called?.name && called.name !== last?.first.function?.name
    return isRenamed ? undefined : last
  }

  /** Returns the calls with this provider index. The indexes need not start at 0. */
  private callsAt(index: number): readonly PartialCall[] {
    return this.callsByIndex.get(index) ?? []
  }
}

function asDelta(sent: unknown): CallDelta {
  const called = (sent as CallDelta | null)?.function ?? {}
  if (typeof sent !== 'object' || sent === null || typeof called !== 'object') {
    throw new BackendFailure('protocol', 'a tool call is not an object')
  }
  return sent as CallDelta
}

function continueCall(known: PartialCall, delta: CallDelta): CallDelta | undefined {
  const { id: _id, type: _type, function: called, ...rest } = delta
  const text = argumentsText(called?.arguments)
  known.arguments += text
  const continued: CallDelta = { ...rest, index: known.first.index }
  if (text !== '') continued.function = { arguments: text }
  return Object.keys(continued).length > 1 ? continued : undefined
}
