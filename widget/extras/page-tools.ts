/** Hosts the page's tools: those in the `tools` option, and those that the page registered through WebMCP. */
import type { WidgetEvents } from '../host/events.ts'
import type { HostWidget } from '../host/extras.ts'
import type { WebMcpTools } from '../host/webmcp.ts'
import { NO_TOOL_HANDLER } from '../messages.ts'
import type { PageTool } from '../options.ts'

export interface HostedTool {
  readonly tool: {
    readonly description?: unknown
    readonly inputSchema?: unknown
    readonly annotations?: unknown
  }
  /** Returns the tool's result or a promise of it; throws or rejects on failure. */
  call(args: Record<string, unknown>): unknown
}

/** Publishes a call to the page, and returns the result of the page's callback. */
export type PublishCall = (call: WidgetEvents['tool-call']) => unknown

/** Hosts the tools of the `tools` option. A call runs the page's event listeners and its `onToolCall`. */
export function hostPageTools(
  tools: readonly PageTool[],
  publishCall: PublishCall,
): [name: string, HostedTool][] {
  return tools.map((tool) => {
    // Keeps tools without a valid name, because the frame reports them.
    const {
      name = '',
      description,
      parameters,
      annotations,
    }: Partial<PageTool['function']> = tool?.function ?? {}
    return [
      name,
      {
        tool: { description, inputSchema: parameters, annotations },
        // Settles when the page sends a result or its callback throws, whichever is first.
        call: (args) =>
          new Promise((sendResult, reject) => {
            Promise.resolve(publishCall({ tool: name, args, sendResult })).catch(reject)
          }),
      },
    ]
  })
}

export function listTools(widget: HostWidget): ReadonlyMap<string, HostedTool> {
  const own = hostPageTools(widget.options.tools, (call) => {
    const { onToolCall } = widget.options
    if (!widget.notify('tool-call', call) && !onToolCall) throw NO_TOOL_HANDLER
    return onToolCall?.(call.tool, call.args, call.sendResult)
  })
  return new Map([...hostWebMcpTools(widget.webMcpTools), ...own])
}

/** Returns the recorded tools without validating them; the frame does that. */
function hostWebMcpTools(tools: WebMcpTools): [name: string, HostedTool][] {
  return [...tools.values()].map((tool) => [tool.name, { tool, call: (args) => tool.execute(args) }])
}
