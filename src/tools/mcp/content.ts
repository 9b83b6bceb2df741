/** Makes text of what MCP tools answer. */
import type { CallToolResult, ContentBlock } from '@modelcontextprotocol/client'
import type { ToolAnswer } from '../tool.ts'

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
