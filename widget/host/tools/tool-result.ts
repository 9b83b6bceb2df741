/** What a tool of the page answers, as MCP says it. */
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js'
import { isRecord } from '../values.ts'

/** Of a result and of a context, as UTF-8. Security: 2.5. */
const MOST_BYTES = 64 * 1024

/** Whether JSON takes no more than that. */
export function isSmall(value: unknown): boolean {
  return new TextEncoder().encode(JSON.stringify(value)).length <= MOST_BYTES
}

/** A value as it crosses to another window: without functions and whatever else JSON lacks. */
export function toPlain<T>(value: T): T {
  return JSON.parse(JSON.stringify(value))
}

/** A value as a result: a string as it is, MCP's own form as it is, everything else as JSON. */
export function toResult(value: unknown): CallToolResult {
  try {
    const isMcp = isRecord(value) && Array.isArray(value.content)
    const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
    const result = isMcp ? toPlain(value) : { content: [{ type: 'text', text }] }
    return isSmall(result) ? (result as CallToolResult) : toErrorResult('More than 64 KiB')
  } catch (error) {
    return toErrorResult(error)
  }
}

/** A failure as a result the model reads. */
export function toErrorResult(error: unknown): CallToolResult {
  const text = error instanceof Error ? error.message : String(error)
  return { content: [{ type: 'text', text: text.slice(0, 2_000) }], isError: true }
}
