/** The rounds of a turn, which both ways of answering share: calls that are not the caller's are answered, and the model asked again. */

import { unixSeconds } from '../lib/clock.ts'
import type { JsonSchema } from '../lib/formats/json-schema.ts'
import { newId } from '../lib/ids.ts'
import type { AnswerNames, ChatMessage, ChatRequest, Usage } from '../providers/chat-api.ts'
import type { BackendRequest, ChatBackend } from '../providers/provider.ts'
import type { Attempts } from '../providers/retry.ts'
import type { TraceSpan } from '../telemetry/tracing.ts'
import type { ServerTool } from '../tools/tools.ts'
import type { Dependencies } from './dependencies.ts'
import { type ToolCall, toReadableCall } from './tool-calls.ts'

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

/** What the loop needs of a turn. */
export interface LoopTurn {
  readonly request: ChatRequest
  /** The tools the model may call in an agent's turn; undefined when nobody restricts it. */
  readonly tools: TurnTools | undefined
}

/** How far one turn has come. */
export class Rounds {
  /** What the model is asked in the round under way. */
  request: ChatRequest
  /** The tokens of all rounds that are over. */
  usage: Usage | undefined
  /** What the model said before it called tools. */
  textBefore = ''
  private count = 1
  private readonly turn: LoopTurn

  constructor(turn: LoopTurn) {
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

/** A tool of the turn that runs here. */
export interface OwnTool {
  readonly tool: ServerTool
  /** What the agent's definition says the arguments must be. */
  readonly agentSchema: JsonSchema | undefined
}

/** The tools of a turn, by who answers their calls. */
export interface ToolNames {
  readonly callers: ReadonlySet<string>
  readonly own: ReadonlyMap<string, OwnTool>
}

/** Runs a tool; rejects only when the signal is aborted. */
export type RunTool = (own: OwnTool, call: ToolCall, signal: AbortSignal) => Promise<string>

/** Told of every call that is answered here, before and after. */
export type OnCall = (call: ToolCall, result: string | undefined) => void

/** The tools of one turn, ready to be called. */
export class TurnTools {
  private readonly names: ToolNames
  private readonly run: RunTool
  private readonly onCall: OnCall | undefined

  constructor(names: ToolNames, run: RunTool, onCall?: OnCall) {
    this.names = names
    this.run = run
    this.onCall = onCall
  }

  /** Whether the caller answers the call. */
  isCallers(call: ToolCall): boolean {
    return this.names.callers.has(nameOf(call))
  }

  /** Whether the call runs a tool here. */
  isOwn(call: ToolCall): boolean {
    return this.names.own.has(nameOf(call))
  }

  /** What the model is told of a call that is not for the caller. @throws the signal's reason */
  async answer(call: ToolCall, signal: AbortSignal): Promise<string> {
    this.onCall?.(call, undefined)
    const result = await this.findAnswer(call, signal)
    this.onCall?.(call, result)
    return result
  }

  private async findAnswer(call: ToolCall, signal: AbortSignal): Promise<string> {
    const own = this.names.own.get(nameOf(call))
    if (own === undefined) return `Error: there is no tool '${nameOf(call)}' here. Answer without it.`
    return this.run(own, call, signal)
  }
}

/** Calls of other kinds than functions have no name an agent could allow. */
export function nameOf(call: ToolCall): string {
  return call.function?.name ?? ''
}

export interface MenderOptions {
  /** How many choices were asked for. */
  readonly choices: number
  /** Keep tool calls and the finish back: whoever runs the turn decides what becomes of them. */
  readonly holdsCalls: boolean
  /** An earlier stream of the turn has begun the answer: it has said the role, and all chunks go by its names. */
  readonly continued: AnswerNames | undefined
  /** Names for the answer, for backends that give none. */
  readonly newNames: () => AnswerNames
  /** A new tool call id, for backends that give none. */
  readonly newCallId: () => string
}

export interface ModelAnswer extends AsyncDisposable {
  /** What came for the client with the answer's beginning; undefined when nothing did. */
  readonly first: Uint8Array | undefined
  /** What the client gets next while the model is still writing; undefined when there is no more. */
  next(): Promise<Uint8Array | undefined>
  /** What the client gets once the turn is over. */
  finish(turn: LoopTurn, rounds: Rounds, names: AnswerNames | undefined): Iterable<Uint8Array>
  readonly names: AnswerNames | undefined
  readonly usage: Usage | undefined
  /** The text, where it is at hand: an estimate of its tokens is made from it, else from the events sent. */
  readonly text: string | null | undefined
  callsOf(choice: number): readonly ToolCall[]
  /** The message for the next request to the model. */
  message(): SaidMessage
  fail(thrown: unknown): void
  /** Lets the provider go. Safe to call twice. */
  close(): Promise<void>
}

export type Ask = (
  backend: ChatBackend,
  request: BackendRequest,
  span: TraceSpan | undefined,
  options: MenderOptions,
) => Promise<ModelAnswer>

/** Names for an answer whose backend gives it none. */
export function newNames(
  { clock, random }: Pick<Dependencies, 'clock' | 'random'>,
  model: string,
): AnswerNames {
  return { id: newId('chatcmpl-', 24, random), created: unixSeconds(clock), model }
}

/** Whether an answer, or a chunk of one, has all its names. */
export function hasNames(
  answer: Readonly<Record<string, unknown>>,
): answer is Readonly<Record<string, unknown>> & AnswerNames {
  const { id, created, model } = answer
  return typeof id === 'string' && typeof created === 'number' && typeof model === 'string'
}

/** What is answered for a backend that counts nothing: the contract has numbers there. Contract: Chat completion (response). */
export const noUsage: Usage = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 }

/** A backend's count, whatever it left out. */
export function toUsage(sent: Readonly<Record<string, unknown>>): Usage {
  const count = (field: string) => (Number.isSafeInteger(sent[field]) ? (sent[field] as number) : 0)
  const [prompt_tokens, completion_tokens] = [count('prompt_tokens'), count('completion_tokens')]
  const total_tokens = count('total_tokens') || prompt_tokens + completion_tokens
  return { ...sent, prompt_tokens, completion_tokens, total_tokens }
}

/** The tokens of all rounds; details only one round gave stay as they were. */
export function addUsage(sum: Usage | undefined, usage: Usage | undefined): Usage | undefined {
  if (sum === undefined || usage === undefined) return sum ?? usage
  return {
    ...sum,
    ...usage,
    prompt_tokens: sum.prompt_tokens + usage.prompt_tokens,
    completion_tokens: sum.completion_tokens + usage.completion_tokens,
    total_tokens: sum.total_tokens + usage.total_tokens,
  }
}
