/** Makes the chunks of any backend what every client can read, and remembers what the turn needs to know of them. */
import { BackendFailure } from './backend.ts'
import type { Usage } from './schema.ts'
import { type ToolCall, ToolCallAssembler } from './tool-calls.ts'

type Fields = Record<string, unknown>

interface Chunk extends Fields {
  choices: unknown[]
}

export interface MenderOptions {
  /** How many choices were asked for. */
  readonly choices: number
  /** Keep tool calls and the finish back: whoever runs the turn decides what becomes of them. */
  readonly holdsCalls: boolean
  /** What every chunk of the turn says of itself, once an earlier stream has begun the answer. */
  readonly base: Fields | undefined
  /** A new tool call id, for backends that give none. */
  readonly newCallId: () => string
}

/** What a stream has said of one choice so far. */
interface ChoiceState {
  hasRole: boolean
  finish: string | undefined
  readonly calls: ToolCallAssembler
}

/**
 * One backend stream's chunks, in order. Decision: 12: the role once and first, every choice with an index, the end an empty delta of
 * its own; usage is taken out and kept.
 */
export class ChunkMender {
  usage: Usage | undefined
  /** `id`, `created`, `model` and the like, as the first chunk had them. */
  base: Fields | undefined
  private readonly states = new Map<number, ChoiceState>()
  private readonly options: MenderOptions

  constructor(options: MenderOptions) {
    this.options = options
  }

  /** Whether every choice asked for has shown its role: only then can text pass unread. */
  get isUnderWay(): boolean {
    const states = [...this.states.values()]
    return states.length >= this.options.choices && states.every(({ hasRole }) => hasRole)
  }

  /** How many choices have come to their end. */
  get finishedChoices(): number {
    return [...this.states.values()].filter(({ finish }) => finish !== undefined).length
  }

  finishOf(choice: number): string | undefined {
    return this.states.get(choice)?.finish
  }

  callsOf(choice: number): ToolCall[] {
    return this.states.get(choice)?.calls.list() ?? []
  }

  /**
   * What should be sent instead of a chunk: just itself (`===`) when nothing needs mending, else other chunks, or none.
   * @throws BackendFailure `protocol` when it is no chunk, `status` when it tells of a failure.
   */
  take(value: unknown): readonly Fields[] {
    const sent = asChunk(value)
    const { choices, usage, ...base } = sent
    this.base ??= base
    if (isFields(usage)) this.usage = usage as Usage
    const mended = choices
      .flatMap((choice) => this.takeChoice(choice))
      .map((choice) => ({ ...sent, ...(isFields(usage) ? { usage: undefined } : {}), choices: [choice] }))
    return mended.length === 1 && JSON.stringify(mended[0]) === JSON.stringify(sent) ? [sent] : mended
  }

  /** The choice's news and its end, as choices of their own. */
  private takeChoice(sent: unknown): Fields[] {
    if (!isFields(sent)) throw new BackendFailure('protocol', 'a choice is no object')
    const index = typeof sent.index === 'number' ? sent.index : 0
    const state = this.stateOf(index)
    const delta = this.takeDelta(state, isFields(sent.delta) ? sent.delta : {})
    const news = { ...sent, index, delta, finish_reason: null }
    const finish = sent.finish_reason
    if (typeof finish !== 'string' || finish === '') return isEmpty(delta) ? [] : [news]
    state.finish = finish
    const pieces: Fields[] = isEmpty(delta) ? [] : [news]
    if (this.options.holdsCalls) return pieces
    const owed = state.calls.takeMissingArguments()
    if (owed.length > 0) pieces.push({ ...news, delta: { tool_calls: owed } })
    return [...pieces, { ...sent, index, delta: {} }]
  }

  private takeDelta(state: ChoiceState, sent: Fields): Fields {
    const delta = { ...sent }
    if (state.hasRole) delete delta.role
    else delta.role = 'assistant'
    state.hasRole = true
    if (Array.isArray(sent.tool_calls) || isFields(sent.tool_calls)) {
      const calls = state.calls.take(sent.tool_calls)
      if (this.options.holdsCalls || calls.length === 0) delete delta.tool_calls
      else delta.tool_calls = calls
    }
    // Text that says nothing is no news, unless it comes with the role.
    const isSilent = (value: unknown) => value === null || value === undefined || value === ''
    return Object.values(delta).every(isSilent) ? {} : delta
  }

  private stateOf(index: number): ChoiceState {
    let state = this.states.get(index)
    if (state === undefined) {
      state = {
        hasRole: this.options.base !== undefined,
        finish: undefined,
        calls: new ToolCallAssembler(this.options.newCallId),
      }
      this.states.set(index, state)
    }
    return state
  }
}

function asChunk(value: unknown): Chunk {
  if (!isFields(value)) throw new BackendFailure('protocol', 'an event is no object')
  if (value.error !== undefined && value.error !== null) {
    throw new BackendFailure('status', 'the backend reported a failure in its stream', { status: 502 })
  }
  if (!Array.isArray(value.choices)) throw new BackendFailure('protocol', 'an event has no choices')
  return value as Chunk
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isEmpty(fields: Fields): boolean {
  return Object.keys(fields).length === 0
}
