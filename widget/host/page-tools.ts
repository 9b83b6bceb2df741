/** The tools of the `tools` option: whoever calls one has the page's callback and listeners called. Contract: Events, onToolCall. */
import type { CallToolResult, Tool } from '@modelcontextprotocol/sdk/types.js'
import type { PageTool } from '../options.ts'
import type { WidgetEvents } from './events.ts'
import { toErrorResult, toResult } from './tool-result.ts'
import type { HostedTool } from './tool-server.ts'

/** Tells the page of a call; answers what the callback returned. */
export type TellPage = (call: WidgetEvents['tool-call']) => unknown

export function hostPageTools(tools: readonly PageTool[], tellPage: TellPage): [name: string, HostedTool][] {
  return tools.map(({ function: { name, description, parameters, annotations } }) => [
    name,
    {
      tool: toTool(description, parameters, annotations),
      call: (args, signal) => askPage({ tool: name, args }, tellPage, signal),
    },
  ])
}

/** A tool as MCP lists it, without its name. */
export function toTool(description: unknown, schema: unknown, annotations: unknown): Omit<Tool, 'name'> {
  return {
    description: typeof description === 'string' ? description : '',
    // What is listed crosses to another window, which takes no functions.
    inputSchema: toPlain({ type: 'object', ...(schema as object | undefined) }) as Tool['inputSchema'],
    ...(annotations === undefined ? {} : { annotations: toPlain(annotations) as Tool['annotations'] }),
  }
}

function toPlain(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value))
}

/** Resolves with the first answer: what the page sends, or what its callback throws. */
function askPage(
  call: Pick<WidgetEvents['tool-call'], 'tool' | 'args'>,
  tellPage: TellPage,
  signal: AbortSignal,
): Promise<CallToolResult> {
  return new Promise((resolve) => {
    const fail = (error: unknown) => resolve(toErrorResult(error))
    signal.addEventListener('abort', () => fail('cancelled'))
    try {
      const returned = tellPage({ ...call, sendResult: (result) => resolve(toResult(result)) })
      Promise.resolve(returned).catch(fail)
    } catch (error) {
      fail(error)
    }
  })
}
