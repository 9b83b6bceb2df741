/** The tools of the `tools` option: whoever calls one has the page's callback and listeners called. Contract: Events, onToolCall. */
import type { CallToolResult, Tool } from '@modelcontextprotocol/sdk/types.js'
import type { PageTool } from '../../options.ts'
import { isRecord, isWithinLimit, toPlain } from '../../values.ts'
import type { WidgetEvents } from '../events.ts'

/** A tool by the page's own name for it. */
export interface HostedTool {
  readonly tool: Omit<Tool, 'name'>
  /** The answer, also of a tool that failed. */
  call(args: Record<string, unknown>): Promise<CallToolResult>
}

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

/** A value as a result: a string as it is, MCP's own form as it is, everything else as JSON. */
export function toResult(value: unknown): CallToolResult {
  try {
    const isMcp = isRecord(value) && Array.isArray(value.content)
    const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
    const result = isMcp ? toPlain(value) : { content: [{ type: 'text', text }] }
    return isWithinLimit(JSON.stringify(result))
      ? (result as CallToolResult)
      : toErrorResult('More than 64 KiB')
  } catch (error) {
    return toErrorResult(error)
  }
}

/** A failure as a result the model reads. */
export function toErrorResult(error: unknown): CallToolResult {
  const text = error instanceof Error ? error.message : String(error)
  return { content: [{ type: 'text', text: text.slice(0, 2_000) }], isError: true }
}
