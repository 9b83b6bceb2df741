/** The rounds of a turn, which both ways of answering share: calls that are not the caller's are answered, and the model asked again. */
import { addUsage } from './answer-parts.ts'
import type { Attempts } from './attempts.ts'
import type { ChatMessage, ChatRequest, Usage } from './schema.ts'
import { type ToolCall, toReadableCall } from './tool-calls.ts'
import type { Turn } from './turn.ts'
import { nameOf } from './turn-tools.ts'

/** The most times one turn asks its model. Decision: 7 (Tools). */
const MAX_ROUNDS = 8

/** Told once, when a backend has begun to answer. */
export type OnAnswering = (attempts: Attempts) => void

/** What a caller is told of a choice's calls, and how the choice ends with them. */
export interface ChoiceEnd {
  readonly calls: readonly ToolCall[]
  readonly finish: string
}

/** What a model said in one round: its text, and what else it will want to see of it. */
export interface SaidMessage {
  readonly [field: string]: unknown
  readonly content: string | null
}

type ToolChoice = NonNullable<ChatRequest['tool_choice']>

/** How far one turn has come. */
export class Rounds {
  /** What the model is asked in the round under way. */
  request: ChatRequest
  /** The tokens of all rounds that are over. */
  usage: Usage | undefined
  /** What the model said before it called tools. */
  textBefore = ''
  private count = 1
  private readonly turn: Turn

  constructor(turn: Turn) {
    this.turn = turn
    this.request = turn.request
  }

  get isFirst(): boolean {
    return this.count === 1
  }

  /** Counts what a round took. */
  used(usage: Usage | undefined): void {
    this.usage = addUsage(this.usage, usage)
  }

  /** Whether a round with these calls is the last; several choices cannot be gone on with as one conversation. */
  isLast(calls: readonly ToolCall[]): boolean {
    const { tools, request } = this.turn
    if (tools === undefined || calls.every((call) => tools.isCallers(call))) return true
    return this.count === MAX_ROUNDS || (request.n ?? 1) > 1
  }

  /**
   * Begins the next round: the calls that are not the caller's are answered, all at once, and the model is told what it said and what
   * came of them. Its other calls are left out: it repeats what it still wants. Decision: 7 (Tools).
   * @throws the signal's reason
   */
  async goOn(said: SaidMessage, calls: readonly ToolCall[], signal: AbortSignal): Promise<void> {
    const { tools } = this.turn
    if (tools === undefined) return
    const answered = calls.filter((call) => !tools.isCallers(call))
    const results = await Promise.all(answered.map((call) => tools.answer(call, signal)))
    const ran = answered.filter((call) => tools.isOwn(call))
    const { messages, tool_choice: choice } = this.request
    this.count += 1
    this.textBefore += said.content ?? ''
    this.request = {
      ...this.request,
      ...(choice == null ? {} : { tool_choice: withoutMetDemand(choice, ran.map(nameOf)) }),
      messages: [
        ...messages,
        {
          ...said,
          role: 'assistant',
          content: said.content || null,
          tool_calls: answered.map(toReadableCall),
        },
        ...answered.map((call, index) => toToolMessage(call, results[index] ?? '')),
      ],
    }
  }

  /** The end of a choice once the calls its caller must not see are gone. */
  endOf(calls: readonly ToolCall[], finish: string): ChoiceEnd {
    const { tools } = this.turn
    const callers = calls.filter((call) => tools?.isCallers(call) ?? true)
    if (callers.length > 0) return { calls: callers, finish: 'tool_calls' }
    return { calls: [], finish: calls.length > 0 || finish === 'tool_calls' ? 'stop' : finish }
  }
}

function toToolMessage(call: ToolCall, content: string): ChatMessage {
  return { role: 'tool', tool_call_id: call.id, content }
}

/** A choice that demands a call would demand it of every round, so once its tool has run the model is free. */
function withoutMetDemand(choice: ToolChoice, ran: readonly string[]): ToolChoice {
  if (ran.length === 0 || choice === 'none') return choice
  if (typeof choice === 'string') return 'auto'
  const { function: demanded, allowed_tools: allowed } = choice
  if (demanded !== undefined) return ran.includes(demanded.name) ? 'auto' : choice
  return allowed === undefined ? choice : { ...choice, allowed_tools: { ...allowed, mode: 'auto' } }
}
