/** Offers all MCP servers' tools under the names that agents use. */
import { pino } from 'pino'
import type { McpServerConfig } from '../config/config.ts'
import type { McpTool } from './mcp/client.ts'
import { isToolName, McpServer, type McpServerOptions, toLongName } from './mcp/server.ts'
import { Watchdog } from './mcp/watchdog.ts'
import type { ServerTool, Toolbox } from './tools.ts'

type McpOptions = Omit<McpServerOptions, 'watchdog' | 'onTools'>

export function startMcpServers(configs: readonly McpServerConfig[], options: McpOptions): Toolbox {
  const watchdog = new Watchdog()
  let names: NamedTools | undefined
  const onTools = () => {
    names = undefined
  }
  const servers = configs.map((config) => new McpServer(config, { ...options, watchdog, onTools }))
  const current = () => {
    names ??= nameTools(servers)
    return names
  }
  return {
    find: (name) => current().byName.get(name) ?? findUnlisted(servers, name),
    list: () => current().all,
    health: () =>
      Object.fromEntries(servers.map(({ name, isConnected }) => [name, isConnected ? 'up' : 'down'])),
    async close() {
      await Promise.all(servers.map((server) => server.close()))
      watchdog.close()
    },
  }
}

interface NamedTools {
  readonly all: readonly ServerTool[]
  readonly byName: ReadonlyMap<string, ServerTool>
}

/**
 * Returns the tools, keyed by name. Each tool has its long name, and also its short name if no other tool
 * uses it. `all` contains each tool once, under its shortest name.
 */
function nameTools(servers: readonly McpServer[]): NamedTools {
  const found = servers.flatMap((server) => server.tools.map((tool) => ({ server, tool })))
  const names = found.flatMap(({ server, tool }) => [tool.name, toLongName(server.name, tool.name)])
  const uses = Map.groupBy(names, (name) => name)
  const all: ServerTool[] = []
  const byName = new Map<string, ServerTool>()
  for (const { server, tool } of found) {
    const [first, ...others] = [tool.name, toLongName(server.name, tool.name)]
      .filter((name) => uses.get(name)?.length === 1 && isToolName(name))
      .map((name) => toServerTool(name, server, tool))
    if (first === undefined) continue
    all.push(first)
    for (const named of [first, ...others]) byName.set(named.name, named)
  }
  return { all, byName }
}

/**
 * Returns a placeholder for a tool that its server does not list, or undefined if the name does not start
 * with a server's name.
 */
function findUnlisted(servers: readonly McpServer[], name: string): ServerTool | undefined {
  const server = servers.find((each) => name.startsWith(toLongName(each.name, '')))
  if (server === undefined) return undefined
  return {
    name,
    description: undefined,
    inputSchema: undefined,
    origin: 'mcp',
    run: async () =>
      server.isConnected
        ? { problem: `the tool '${name}' does not exist` }
        : { problem: `the tool '${name}' is currently unavailable`, isUnavailable: true },
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

const PROBE_MS = 10_000

/**
 * Connects to a server once for `parley doctor`, and returns the number of its tools. @throws Error if the
 * server does not respond as an MCP server.
 */
export async function probeMcpServer(config: McpServerConfig): Promise<number> {
  const { connect } = await import('./mcp/client.ts')
  const watchdog = new Watchdog()
  try {
    const connection = await connect(config, {
      log: pino({ level: 'silent' }),
      watchdog,
      signal: AbortSignal.timeout(PROBE_MS),
      callMs: PROBE_MS,
      onTools: () => {},
      onLost: () => {},
    })
    await connection.close()
    return connection.tools.length
  } finally {
    watchdog.close()
  }
}
