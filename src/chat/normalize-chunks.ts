/** Makes the chunks of any backend what every client can read, and remembers what the turn needs to know of them. */
import { isDeepStrictEqual } from 'node:util'
import type { AnswerNames, Usage } from '../providers/chat-api.ts'
import { BackendFailure } from '../providers/provider.ts'
import { type ToolCall, ToolCallAssembler } from './tool-calls.ts'
import { hasNames, type MenderOptions, toUsage } from './tool-loop.ts'

type Fields = Record<string, unknown>

interface Chunk extends Fields {
  choices: unknown[]
}

/** What a stream has said of one choice so far. */
interface ChoiceState {
  hasRole: boolean
  finish: string | undefined
  readonly calls: ToolCallAssembler
}

/**
 * One backend stream's chunks, in order. Decision: 12: the role once and first, one choice a chunk, with its index, the end an empty
 * delta of its own and said once; usage is taken out and kept.
 */
export class ChunkMender {
  usage: Usage | undefined
  /** The answer's names, as the first chunk with a choice gave them. */
  names: AnswerNames | undefined
  private isNamed = true
  private readonly states = new Map<number, ChoiceState>()
  private readonly options: MenderOptions

  constructor(options: MenderOptions) {
    this.options = options
  }

  /** Whether every choice asked for has begun, and the chunks name their answer: only then can text pass unread. */
  get isUnderWay(): boolean {
    return this.isNamed && this.states.size >= this.options.choices
  }

  /** How many choices have come to their end. */
  get finishedChoices(): number {
    return this.finishReasons.length
  }

  /** How the choices that came to their end did. */
  get finishReasons(): string[] {
    return [...this.states.values()].flatMap(({ finish }) => (finish === undefined ? [] : [finish]))
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
    const { choices, usage, ...head } = sent
    if (isFields(usage)) this.usage = toUsage(usage)
    else if (usage !== undefined) head.usage = usage
    if (choices.length === 0) return []
    this.nameChunk(head)
    const mended = choices
      .flatMap((choice) => this.takeChoice(choice))
      .map((choice) => ({ ...head, choices: [choice] }))
    return mended.length === 1 && isDeepStrictEqual(mended[0], value) ? [value as Fields] : mended
  }

  /** The choice's news and its end, as choices of their own. */
  private takeChoice(sent: unknown): Fields[] {
    if (!isFields(sent)) throw new BackendFailure('protocol', 'a choice is no object')
    const index = typeof sent.index === 'number' ? sent.index : 0
    const state = this.stateOf(index)
    const delta = this.takeDelta(state, isFields(sent.delta) ? sent.delta : {})
    const news = { ...sent, index, delta, finish_reason: null }
    const finish = sent.finish_reason
    if (typeof finish !== 'string' || finish === '') return isSilent(news) ? [] : [news]
    const isRepeated = state.finish !== undefined
    state.finish ??= finish
    const pieces: Fields[] = isSilent(delta) ? [] : [news]
    if (this.options.holdsCalls || isRepeated) return pieces
    const owed = state.calls.takeMissingArguments()
    if (owed.length > 0) pieces.push({ index, delta: { tool_calls: owed }, finish_reason: null })
    const end = { index, delta: {}, finish_reason: finish }
    return [...pieces, pieces.length > 0 ? end : { ...sent, ...end }]
  }

  private takeDelta(state: ChoiceState, sent: Fields): Fields {
    const { role: _, tool_calls: sentCalls, ...rest } = sent
    const delta: Fields = state.hasRole ? rest : { role: 'assistant', ...rest }
    state.hasRole = true
    const calls = state.calls.take(sentCalls ?? [])
    if (calls.length > 0 && !this.options.holdsCalls) delta.tool_calls = calls
    return delta
  }

  /** Gives a chunk its answer's names, unless it has them. */
  private nameChunk(head: Fields): void {
    const { continued, newNames } = this.options
    const isNamed = continued === undefined && head.object !== undefined && hasNames(head)
    this.names ??=
      continued ?? (isNamed ? { id: head.id, created: head.created, model: head.model } : newNames())
    if (isNamed) return
    this.isNamed = false
    Object.assign(head, { object: 'chat.completion.chunk', ...this.names })
  }

  private stateOf(index: number): ChoiceState {
    let state = this.states.get(index)
    if (state === undefined) {
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
  if (!isFields(value)) throw new BackendFailure('protocol', 'an event is no object')
  if (value.error !== undefined && value.error !== null) {
    throw new BackendFailure('status', 'the backend reported a failure in its stream', { status: 502 })
  }
  const choices = value.choices ?? (isFields(value.usage) ? [] : undefined)
  if (!Array.isArray(choices)) throw new BackendFailure('protocol', 'an event has no choices')
  return { ...value, choices }
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Whether all of a choice or delta but its place is empty: such pieces are left out. */
function isSilent({ index: _, ...fields }: Fields): boolean {
  return Object.values(fields).every(
    (value) => value === null || value === undefined || value === '' || (isFields(value) && isSilent(value)),
  )
}
