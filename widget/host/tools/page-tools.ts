/** The tools of the `tools` option: whoever calls one has the page's callback and listeners called. Contract: Events, onToolCall. */
import type { Tool } from '@modelcontextprotocol/sdk/types.js'
import type { PageTool } from '../../options.ts'
import type { WidgetEvents } from '../events.ts'
import { toErrorResult, toPlain, toResult } from './tool-result.ts'
import type { HostedTool } from './tool-server.ts'

/** Tells the page of a call; answers what the callback returned. */
export type TellPage = (call: WidgetEvents['tool-call']) => unknown

export function hostPageTools(tools: readonly PageTool[], tellPage: TellPage): [name: string, HostedTool][] {
  return tools.map(({ function: { name, description, parameters, annotations } }) => [
    name,
    {
      tool: toTool(description, parameters, annotations),
      /** The first answer counts: what the page sends, or what its callback throws. */
      call: (args) =>
        new Promise((resolve) => {
          const sendResult = (result: unknown) => resolve(toResult(result))
          const fail = (error: unknown) => resolve(toErrorResult(error))
          new Promise((settle) => settle(tellPage({ tool: name, args, sendResult }))).catch(fail)
        }),
    },
  ])
}

/** A tool as MCP lists it, without its name. */
export function toTool(description: unknown, schema: unknown, annotations: unknown): Omit<Tool, 'name'> {
  const inputSchema = { type: 'object', ...(schema as object | undefined) }
  return toPlain({ description: `${description ?? ''}`, inputSchema, annotations } as Omit<Tool, 'name'>)
}
