/** Checks which of the page's tools can be offered to the model. */
import type { Tool } from '@modelcontextprotocol/sdk/types.js'
import { isRecord } from '../../values.ts'

/** Prefix that the page adds to the names of its tools. */
const PAGE_TOOL_PREFIX = 'postMessage_'
const MAX_TOOLS = 128
const MAX_SCHEMAS_LENGTH = 64 * 1024
const MAX_DESCRIPTION_LENGTH = 4096
const name = /^postMessage_[A-Za-z0-9_.-]{1,100}$/

/** Returns the valid tools with unique names, up to the limits. */
export function listValidTools(offered: readonly unknown[]): readonly Tool[] {
  const valid = new Map<string, Tool>()
  let schemasLength = 0
  for (const tool of offered) {
    if (!isTool(tool) || valid.has(tool.name) || valid.size === MAX_TOOLS) continue
    schemasLength += JSON.stringify(tool.inputSchema).length
    if (schemasLength > MAX_SCHEMAS_LENGTH) break
    valid.set(tool.name, tool)
  }
  return [...valid.values()]
}

/** Renders a tool in the chat API's format. */
export function renderTool({ name, description, inputSchema }: Tool): object {
  const described = description === undefined ? {} : { description }
  return { type: 'function', function: { name, ...described, parameters: inputSchema } }
}

/** Returns whether the visitor must approve each call. */
export function needsApproval({ annotations }: Tool): boolean {
  const { destructiveHint, requiresApproval } = (annotations ?? {}) as Record<string, unknown>
  return destructiveHint === true || requiresApproval === true
}

/** Returns the name that the visitor sees. */
export function titleOf(tool: Tool | undefined, called: string): string {
  const title = tool?.annotations?.title ?? tool?.title
  if (typeof title === 'string' && title.trim() !== '') return title.slice(0, 80)
  return called.startsWith(PAGE_TOOL_PREFIX) ? called.slice(PAGE_TOOL_PREFIX.length) : called
}

function isTool(tool: unknown): tool is Tool {
  if (!isRecord(tool) || typeof tool.name !== 'string' || !name.test(tool.name)) return false
  const { description, inputSchema, annotations } = tool
  const isDescribed =
    description === undefined ||
    (typeof description === 'string' && description.length <= MAX_DESCRIPTION_LENGTH)
  return isDescribed && isRecord(inputSchema) && (annotations === undefined || isRecord(annotations))
}
