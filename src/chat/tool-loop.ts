/** Runs a turn's server-side tool calls, and builds the next request to the model. */
import type { TurnReports } from '../conversations/conversations.ts'
import { isJsonObject, parseJson } from '../lib/formats/json.ts'
import type { JsonSchema } from '../lib/formats/json-schema.ts'
import type { ChatMessage, ChatRequest, Usage } from '../providers/chat-api.ts'
import { bindRequestPerson, requestPersonTool } from '../tools/request-person.ts'
import type { ToolOutcome } from '../tools/run.ts'
import type { ServerTool } from '../tools/tools.ts'
import type { TurnStep } from './schema.ts'

const MAX_MODEL_CALLS = 8

/** A complete tool call in a message, including fields that a provider adds. */
export interface ToolCall {
  readonly [field: string]: unknown
  readonly id: string
  readonly type: string
  readonly function?: { readonly name: string; readonly arguments: string }
}

export interface OwnTool {
  readonly tool: ServerTool
  readonly agentSchema: JsonSchema | undefined
}

export interface ToolNames {
  readonly callers: ReadonlySet<string>
  readonly own: ReadonlyMap<string, OwnTool>
}

export interface TurnTools extends ToolNames {
  /** Runs a tool; rejects only when the signal is aborted. */
  readonly run: (
    own: OwnTool,
    call: ToolCall,
    signal: AbortSignal,
    onOutcome: (outcome: ToolOutcome) => void,
  ) => Promise<string>
}

export interface CalledTool {
  readonly call_id: string
  readonly name: string
  /** The source that defines the tool; null for a tool that does not exist. */
  readonly origin: ServerTool['origin'] | null
}

/** Records the start of a call. The loop calls the returned function when the call has ended. */
export type OnToolCall = (tool: CalledTool) => (outcome: ToolOutcome | 'unknown_tool') => void

/** The model's answer as a message: its text, and provider fields that the next request must repeat. */
export interface SaidMessage {
  readonly [field: string]: unknown
  readonly content: string | null
}

type ToolChoice = NonNullable<ChatRequest['tool_choice']>

export class ToolLoop {
  request: ChatRequest
  usage: Usage | undefined
  /** Whether the client receives another usage than the provider sent. */
  isUsageChanged = false
  textBefore = ''
  /** The tools that the model may call; undefined without an agent, which allows all tools in the request. */
  readonly tools: TurnTools | undefined
  private modelCalls = 1
  private readonly onCall: OnToolCall | undefined

  constructor(request: ChatRequest, tools: TurnTools | undefined, onCall?: OnToolCall) {
    this.request = request
    this.tools = tools
    this.onCall = onCall
  }

  get isFirst(): boolean {
    return this.modelCalls === 1
  }

  addUsage(usage: Usage | undefined): void {
    const sum = this.usage
    this.usage =
      sum === undefined || usage === undefined
        ? (sum ?? usage)
        : {
            ...sum,
            ...usage,
            prompt_tokens: sum.prompt_tokens + usage.prompt_tokens,
            completion_tokens: sum.completion_tokens + usage.completion_tokens,
            total_tokens: sum.total_tokens + usage.total_tokens,
          }
  }

  /** Replaces the usage that the client receives. */
  replaceUsage(usage: Usage): void {
    this.usage = usage
    this.isUsageChanged = true
  }

  /**
   * Returns whether an answer with these calls is the turn's last one: it has no server-side calls, the
   * request asks for several choices, or the turn has reached `MAX_MODEL_CALLS`.
   */
  isLast(calls: readonly ToolCall[]): boolean {
    if (calls.every((call) => this.isClients(call))) return true
    return this.modelCalls === MAX_MODEL_CALLS || (this.request.n ?? 1) > 1
  }

  /**
   * Runs the server-side calls and adds their results to the next request. Drops client-side calls; the model
   * can repeat them. @throws the signal's reason if it aborts.
   */
  async *runTools(
    said: SaidMessage,
    calls: readonly ToolCall[],
    signal: AbortSignal,
  ): AsyncGenerator<TurnStep, void, void> {
    const answered = calls.filter((call) => !this.isClients(call))
    for (const call of answered) {
      const text = call.function?.arguments ?? ''
      yield { type: 'tool_call', call_id: call.id, name: nameOf(call), arguments: text }
    }
    const results = new Map<ToolCall, string>()
    const running = new Map(
      answered.map((call) => [call, this.answer(call, signal).then((content) => ({ call, content }))]),
    )
    while (running.size > 0) {
      const { call, content } = await Promise.race(running.values())
      running.delete(call)
      results.set(call, content)
      yield { type: 'tool_result', call_id: call.id, content }
    }
    this.addResults(
      said,
      answered.map((call) => ({ call, content: results.get(call) ?? '' })),
    )
  }

  endOf(calls: readonly ToolCall[], finish: string): { calls: readonly ToolCall[]; finish: string } {
    const clients = calls.filter((call) => this.isClients(call))
    if (clients.length > 0) return { calls: clients, finish: 'tool_calls' }
    return { calls: [], finish: calls.length > 0 || finish === 'tool_calls' ? 'stop' : finish }
  }

  private isClients(call: ToolCall): boolean {
    return this.tools?.callers.has(nameOf(call)) ?? true
  }

  private async answer(call: ToolCall, signal: AbortSignal): Promise<string> {
    const own = this.tools?.own.get(nameOf(call))
    const called = { call_id: call.id, name: nameOf(call), origin: own?.tool.origin ?? null }
    const end = this.onCall?.(called)
    if (this.tools === undefined || own === undefined) {
      end?.('unknown_tool')
      return `Error: there is no tool '${nameOf(call)}' here. Answer without it.`
    }
    return this.tools.run(own, call, signal, (outcome) => end?.(outcome))
  }

  private addResults(said: SaidMessage, results: readonly { call: ToolCall; content: string }[]): void {
    const names = results.map(({ call }) => nameOf(call)).filter((name) => this.tools?.own.has(name))
    const { messages, tool_choice: choice } = this.request
    const message = {
      ...said,
      role: 'assistant' as const,
      content: said.content || null,
      tool_calls: results.map(({ call }) => toReadableCall(call)),
    }
    this.modelCalls += 1
    this.textBefore += said.content ?? ''
    this.request = {
      ...this.request,
      ...(choice == null ? {} : { tool_choice: withoutMetDemand(choice, names) }),
      messages: [
        ...messages,
        message,
        ...results.map(
          ({ call, content }): ChatMessage => ({ role: 'tool', tool_call_id: call.id, content }),
        ),
      ],
    }
  }
}

/**
 * Relaxes a `tool_choice` that requires a tool once that tool has run; otherwise the model would call it
 * forever.
 */
function withoutMetDemand(choice: ToolChoice, ran: readonly string[]): ToolChoice {
  if (ran.length === 0 || choice === 'none') return choice
  if (typeof choice === 'string') return 'auto'
  const { function: demanded, allowed_tools: allowed } = choice
  if (demanded !== undefined) return ran.includes(demanded.name) ? 'auto' : choice
  return allowed === undefined ? choice : { ...choice, allowed_tools: { ...allowed, mode: 'auto' } }
}

/**
 * Replaces arguments that are not a JSON object, which providers reject; the tool result already reports the
 * error.
 */
function toReadableCall(call: ToolCall): ToolCall {
  const { function: called } = call
  if (called === undefined || isJsonObject(parseJson(called.arguments))) return call
  return { ...call, function: { ...called, arguments: '{}' } }
}

/** Returns the function's name; empty for a call that is not a function call. */
function nameOf(call: ToolCall): string {
  return call.function?.name ?? ''
}

/**
 * Lets the tools of a stored turn run only while no person answers its conversation, and connects
 * `request_person` to the turn.
 */
export function watchTools(
  tools: TurnTools | undefined,
  reports: TurnReports | undefined,
): TurnTools | undefined {
  if (tools === undefined || reports === undefined) return tools
  return {
    ...tools,
    async run(own, call, signal, onOutcome) {
      await reports.assertMayContinue()
      if (own.tool !== requestPersonTool) return tools.run(own, call, signal, onOutcome)
      const tool = bindRequestPerson((reason) => reports.requestPerson(reason))
      return tools.run({ ...own, tool }, call, signal, onOutcome)
    },
  }
}

/** Returns arguments as JSON text; some providers send an object or nothing instead. */
export function argumentsText(value: unknown): string {
  if (value === undefined || value === null) return ''
  return typeof value === 'string' ? value : JSON.stringify(value)
}
