/** What the model is told of a call. */
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js'
import { isRecord } from '../check-message.ts'

/** Decision: 7, 11; in bytes of UTF-8. */
const MOST_RESULT_BYTES = 64 * 1024

export interface ToolOutcome {
  readonly isError: boolean
  readonly text: string
}

/** The result as text; one that is too large or none at all is an error. */
export function renderResult(result: CallToolResult): ToolOutcome {
  const text = textIn(result)
  if (text === undefined)
    return { isError: true, text: 'The page answered with something that is no result.' }
  if (new TextEncoder().encode(text).length > MOST_RESULT_BYTES) {
    return { isError: true, text: 'The result of the tool is larger than 64 KiB.' }
  }
  return { isError: result.isError === true, text }
}

/** The content of the tool message. */
export function renderToolMessage({ isError, text }: ToolOutcome): string {
  return isError ? `Error: ${text}` : text
}

function textIn({ content, structuredContent }: CallToolResult): string | undefined {
  const texts = Array.isArray(content)
    ? content.flatMap((part: unknown) => (isRecord(part) && typeof part.text === 'string' ? [part.text] : []))
    : []
  if (texts.length > 0) return texts.join('\n')
  if (isRecord(structuredContent)) return JSON.stringify(structuredContent)
  return Array.isArray(content) ? '' : undefined
}
