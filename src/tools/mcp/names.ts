/** What agents call the tools of MCP servers. */
import { ToolName } from '../../agents/definition.ts'
import type { ServerTool } from '../tool.ts'
import type { McpTool } from './connect.ts'
import type { McpServer } from './server.ts'

/** The tools by all their names, and each once by the shortest. */
export interface NamedTools {
  readonly all: readonly ServerTool[]
  readonly byName: ReadonlyMap<string, ServerTool>
}

/** The name a tool always has: its server's, two underscores, its own; what may not stand in a name is an underscore. */
export function toLongName(server: string, tool: string): string {
  return `${server}__${tool.replaceAll(/[^A-Za-z0-9_-]/g, '_')}`
}

export function isToolName(name: string): boolean {
  return ToolName.safeParse(name).success
}

/** Tools go by their own names too, as long as only one of them would. Decision: 7 (Tools). */
export function nameTools(servers: readonly McpServer[]): NamedTools {
  const found = servers.flatMap((server) => server.tools.map((tool) => ({ server, tool })))
  const uses = countUses(found.flatMap(({ server, tool }) => [tool.name, toLongName(server.name, tool.name)]))
  const all: ServerTool[] = []
  const byName = new Map<string, ServerTool>()
  for (const { server, tool } of found) {
    const names = [tool.name, toLongName(server.name, tool.name)]
    const [first, ...others] = names
      .filter((name) => uses.get(name) === 1 && isToolName(name))
      .map((name) => toServerTool(name, server, tool))
    if (first === undefined) continue
    all.push(first)
    for (const named of [first, ...others]) byName.set(named.name, named)
  }
  return { all, byName }
}

/** What stands for a tool of which its server has not told; undefined where the name is of no server. */
export function findUnlisted(servers: readonly McpServer[], name: string): ServerTool | undefined {
  const server = servers.find((each) => name.startsWith(toLongName(each.name, '')))
  if (server === undefined) return undefined
  const why = () => (server.isConnected ? 'does not exist' : 'cannot be reached at the moment')
  return {
    name,
    description: undefined,
    inputSchema: undefined,
    origin: 'mcp',
    run: async () => ({ problem: `the tool '${name}' ${why()}` }),
  }
}

function toServerTool(name: string, server: McpServer, tool: McpTool): ServerTool {
  return {
    name,
    description: tool.description,
    inputSchema: tool.inputSchema,
    origin: 'mcp',
    run: (args, context) => server.call(tool.name, args, context),
  }
}

function countUses(names: readonly string[]): ReadonlyMap<string, number> {
  const uses = new Map<string, number>()
  for (const name of names) uses.set(name, (uses.get(name) ?? 0) + 1)
  return uses
}
