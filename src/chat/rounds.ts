/** The rounds of a turn, which both ways of answering share: the model is told of calls it may not make, and asked again. */
import { addUsage } from './answer-parts.ts'
import type { Attempts } from './attempts.ts'
import type { ChatMessage, ChatRequest, Usage } from './schema.ts'
import type { ToolCall } from './tool-calls.ts'
import type { Turn } from './turn.ts'

/** The most times one turn asks its model. Decision: 7 (Tools). */
const MAX_ROUNDS = 8

/** Told once, when a backend has begun to answer. */
export type OnAnswering = (attempts: Attempts) => void

/** What a caller is told of a choice's calls, and how the choice ends with them. */
export interface ChoiceEnd {
  readonly calls: readonly ToolCall[]
  readonly finish: string
}

/** How far one turn has come. */
export class Rounds {
  /** What the model is asked in the round under way. */
  request: ChatRequest
  /** The tokens of all rounds that are over. */
  usage: Usage | undefined
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
    if (this.turn.toolNames === undefined || calls.every((call) => this.isCallers(call))) return true
    return this.count === MAX_ROUNDS || (this.turn.request.n ?? 1) > 1
  }

  /**
   * Begins the next round: the model is told what it said, and of an error for each call it may not make. Its other calls are left out:
   * it repeats what it still wants. Decision: 7 (Tools).
   */
  goOn(said: string | null, calls: readonly ToolCall[]): void {
    const withheld = calls.filter((call) => !this.isCallers(call))
    this.count += 1
    this.request = {
      ...this.request,
      messages: [
        ...this.request.messages,
        { role: 'assistant', content: said || null, tool_calls: withheld },
        ...withheld.map(toRefusal),
      ],
    }
  }

  /** The end of a choice once the calls its caller must not see are gone. */
  endOf(calls: readonly ToolCall[], finish: string): ChoiceEnd {
    const callers = calls.filter((call) => this.isCallers(call))
    if (callers.length > 0) return { calls: callers, finish: 'tool_calls' }
    return { calls: [], finish: calls.length > 0 || finish === 'tool_calls' ? 'stop' : finish }
  }

  /** Whether the caller answers the call. */
  private isCallers(call: ToolCall): boolean {
    const { toolNames } = this.turn
    return toolNames === undefined || toolNames.has(call.function?.name ?? '')
  }
}

function toRefusal(call: ToolCall): ChatMessage {
  return {
    role: 'tool',
    tool_call_id: call.id,
    content: `Error: there is no tool '${call.function?.name ?? ''}' here. Answer without it.`,
  }
}
