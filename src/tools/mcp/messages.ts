/** Makes text of what MCP tools answer. */
import type { CallToolResult, ContentBlock } from '@modelcontextprotocol/client'
import type { ToolAnswer } from '../tools.ts'

/** The text of a result; what is no text is named, and data stands where there is nothing else. Protocol: MCP (Tool Result). */
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

/** One message: far more than a model reads, enough for an image among the text. */
export const MOST_MESSAGE_BYTES = 4 * 1024 * 1024

/** For starting a program and shaking hands with it; package runners download what they run first. */
export const CONNECT_MS = 60_000

/** For saying goodbye. */
export const GRACE_MS = 1_000

const LONGEST = 200

/** An error of a connection; a server may have its say in it, but not at length. */
export function describeTrouble(error: unknown): object {
  if (!(error instanceof Error)) return {}
  const { name, message, cause } = error
  return { error: name, code: codeOf(error) ?? codeOf(cause), problem: message.slice(0, LONGEST) }
}

/** An error of a message: the library's sentences quote it after a colon, and parsers before. */
export function describeMessageTrouble(error: unknown): object {
  if (!(error instanceof Error)) return {}
  const [problem = ''] = error.message.split(':', 1)
  return { ...describeTrouble(error), problem: /^[\w '/-]+$/.test(problem) ? problem : undefined }
}

function codeOf(error: unknown): unknown {
  return (error as NodeJS.ErrnoException | undefined)?.code
}
