/** What is known of a tool that an agent names: its definition says it, or whoever runs the tool does. */
import type { ServerTool } from '../tools/tool.ts'
import { type AgentTool, toolName } from './definition.ts'
import type { JsonSchema } from './schema-places.ts'

/** A tool, as far as it is known here; a caller may know more of one that nobody here runs. */
export interface DescribedTool {
  readonly name: string
  readonly description: string | undefined
  readonly inputSchema: JsonSchema | undefined
}

/** The agent's definition wins, field by field. Decision: 7 (An agent turn). */
export function describeTool(tool: AgentTool, known: ServerTool | undefined): DescribedTool {
  const { description, inputSchema } = typeof tool === 'string' ? {} : tool
  return {
    name: toolName(tool),
    description: description ?? known?.description,
    inputSchema: inputSchema ?? known?.inputSchema,
  }
}
