/** Renders MCP results and errors as text, and defines a connection's limits. */
import type { CallToolResult, ContentBlock } from '@modelcontextprotocol/client'
import type { ToolAnswer } from '../tools.ts'

/** Renders a result's text. Describes other content, and uses structured content if there is nothing else. */
export function renderResult({ content, structuredContent, isError }: CallToolResult): ToolAnswer {
  const parts = content.map(renderPart)
  const text =
    parts.length === 0 && structuredContent !== undefined
      ? JSON.stringify(structuredContent)
      : parts.join('\n')
  return isError ? { problem: text || 'the tool failed' } : { text }
}

function renderPart(part: ContentBlock): string {
  switch (part.type) {
    case 'text':
      return part.text
    case 'image':
    case 'audio':
      return `[${part.type}, ${part.mimeType}, not shown]`
    case 'resource_link':
      return `[resource ${part.uri}]`
    case 'resource':
      return 'text' in part.resource ? part.resource.text : `[resource ${part.resource.uri}, not shown]`
  }
}

/** Maximum message size: enough for text with an image, and far more than a model reads. */
export const MAX_MESSAGE_BYTES = 4 * 1024 * 1024

/** Timeout for connecting; long enough for package runners, which download a program before they start it. */
export const CONNECT_MS = 60_000

export const GRACE_MS = 1_000

const MAX_LENGTH = 200

/** Returns a connection error's log fields; truncates text from the server. */
export function connectionErrorFields(error: unknown): object {
  if (!(error instanceof Error)) return {}
  const { name, message, cause } = error
  return { error: name, code: codeOf(error) ?? codeOf(cause), problem: message.slice(0, MAX_LENGTH) }
}

/**
 * Returns an error's log fields without its message, because the library and parsers quote their input in it.
 */
export function messageErrorFields(error: unknown): object {
  if (!(error instanceof Error)) return {}
  const [problem = ''] = error.message.split(':', 1)
  return { ...connectionErrorFields(error), problem: /^[\w '/-]+$/.test(problem) ? problem : undefined }
}

function codeOf(error: unknown): unknown {
  return (error as NodeJS.ErrnoException | undefined)?.code
}
