/** Hosts the tools in the `tools` option; a call runs the page's listeners and its `onToolCall`. */
import type { PageTool } from '../../options.ts'
import type { WidgetEvents } from '../events.ts'

/** A tool with its handler. */
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
