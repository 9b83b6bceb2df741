/** Who answers the tool calls of an agent's turn: its caller, or the service, which runs the tool or tells the model off. */
import type { JsonSchema } from '../agents/schema-places.ts'
import type { ServerTool } from '../tools/tool.ts'
import type { ToolCall } from './tool-calls.ts'

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
