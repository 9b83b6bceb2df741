/** What a tool of the page answers, as MCP says it. */
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js'
import { isRecord } from './read-options.ts'

/** As UTF-8. Security: 2.5. */
const MOST_RESULT_BYTES = 64 * 1024

/** A value as a result: a string as it is, MCP's own form as it is, everything else as JSON. */
export function toResult(value: unknown): CallToolResult {
  try {
    const result = isResult(value) ? (JSON.parse(JSON.stringify(value)) as CallToolResult) : toText(value)
    const { length } = new TextEncoder().encode(JSON.stringify(result))
    if (length <= MOST_RESULT_BYTES) return result
    return toErrorResult('The result of the page is larger than 64 KiB.')
  } catch {
    return toErrorResult('The result of the page cannot be written as JSON.')
  }
}

/** A failure as a result the model reads. */
export function toErrorResult(error: unknown): CallToolResult {
  const text = error instanceof Error ? error.message : String(error)
  return { content: [{ type: 'text', text: text.slice(0, 2_000) }], isError: true }
}

function toText(value: unknown): CallToolResult {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
  return { content: [{ type: 'text', text }] }
}

function isResult(value: unknown): boolean {
  return (
    isRecord(value) &&
    Array.isArray(value.content) &&
    value.content.every((part) => isRecord(part) && 'type' in part)
  )
}
