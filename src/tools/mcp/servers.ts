/** The tools of all MCP servers, under the names that agents use. */
import type { Logger } from 'pino'
import type { McpServerConfig } from '../../config-mcp.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Random } from '../../lib/random.ts'
import type { Toolbox } from '../tool.ts'
import { findUnlisted, type NamedTools, nameTools } from './names.ts'
import { McpServer } from './server.ts'
import { Watchdog } from './watchdog.ts'

export interface McpOptions {
  readonly clock: Pick<Clock, 'monotonic' | 'wait'>
  readonly random: Random
  readonly log: Logger
  /** The longest a call of a tool may take. */
  readonly callMs: number
}

/** Starts connecting to the servers, and waits for none. Decision: 7 (Tools). */
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
