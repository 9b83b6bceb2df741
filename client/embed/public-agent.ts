/** What a page that embeds an agent can learn of it. */
import { readDefinition } from '../agents/definition-text.ts'
import { isRecord, valueAt } from '../agents/object-paths.ts'
import type { AgentDetail } from '../types.ts'

export interface PublicAgent {
  readonly origins: readonly string[]
  readonly title: string
  readonly greeting: string | undefined
  readonly starters: readonly string[]
  readonly tools: readonly string[]
  /** In words. */
  readonly pageTools: string
}

export function readPublicAgent({ yaml, format, definition }: AgentDetail): PublicAgent {
  const value = readDefinition(yaml, format) ?? {}
  const title = valueAt(value, ['embed', 'title'])
  const greeting = valueAt(value, ['embed', 'greeting'])
  return {
    origins: textsAt(value, ['embed', 'origins']),
    title: typeof title === 'string' ? title : definition.name,
    greeting: typeof greeting === 'string' ? greeting : undefined,
    starters: textsAt(value, ['embed', 'starters']),
    tools: definition.tools.map((tool) => (typeof tool === 'string' ? tool : tool.name)),
    pageTools: describePageTools(value.pageTools),
  }
}

function textsAt(value: unknown, path: readonly string[]): string[] {
  const held = valueAt(value, path)
  return Array.isArray(held) ? held.map(String) : []
}

function describePageTools(policy: unknown): string {
  if (!isRecord(policy)) return 'all'
  const restricted = textsAt(policy, ['restricted'])
  if (restricted.length > 0) return `only ${restricted.join(', ')}`
  const blocked = textsAt(policy, ['blocked'])
  if (blocked.length > 0) return `all but ${blocked.join(', ')}`
  return 'restricted' in policy ? 'none' : 'all'
}
