/** What the steps of a turn are traced under. */
import { toServiceError } from '../errors.ts'
import type { SpanAttributes, TraceSpan } from '../observability/tracing.ts'
import type { ServerTool } from '../tools/tool.ts'
import type { TurnAgent } from './agent-request.ts'

/** The span of an agent's turn, or where no agent answers that of the request; neither where nobody traces. */
export class TurnSpan {
  /** What calls and tools are part of. */
  readonly span: TraceSpan | undefined
  private readonly isOwn: boolean

  constructor(request: TraceSpan | undefined, agent: TurnAgent | undefined) {
    this.isOwn = agent !== undefined
    this.span = agent === undefined ? request : request && beginAgent(request, agent)
  }

  /** A tool that runs here. */
  beginTool({ name, origin }: ServerTool, callId: string): TraceSpan | undefined {
    return this.span?.begin(`execute_tool ${name}`, 'internal', {
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.tool.name': name,
      'gen_ai.tool.type': 'function',
      'gen_ai.tool.call.id': callId,
      'parley.tool.origin': origin,
    })
  }

  /** The turn is over; `thrown` is what ended it early. */
  end(thrown?: unknown): void {
    if (!this.isOwn || this.span === undefined) return
    if (thrown !== undefined) this.span.fail(toServiceError(thrown).reason)
    this.span.end()
  }
}

function beginAgent(request: TraceSpan, { row, definition }: TurnAgent): TraceSpan {
  const attributes: SpanAttributes = {
    'gen_ai.operation.name': 'invoke_agent',
    'gen_ai.provider.name': 'parley',
    'gen_ai.agent.id': row.id,
    'gen_ai.agent.name': definition.name,
  }
  return request.begin(`invoke_agent ${definition.name}`, 'internal', attributes)
}
