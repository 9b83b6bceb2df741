/** Tries an MCP server out for `parley doctor`: what a start asks of it, once. */
import { pino } from 'pino'
import type { McpServerConfig } from '../config/config.ts'
import { Watchdog } from './mcp/watchdog.ts'

/** For everything together. */
const EXAMINE_WITHIN_MS = 10_000

/**
 * Connects, lets it list its tools, and ends what it started; answers how many tools there are.
 * @throws Error when it cannot be reached or does not speak MCP.
 */
export async function examineMcpServer(config: McpServerConfig): Promise<number> {
  const { connect } = await import('./mcp/client.ts')
  const watchdog = new Watchdog()
  try {
    const connection = await connect(config, {
      log: pino({ level: 'silent' }),
      watchdog,
      signal: AbortSignal.timeout(EXAMINE_WITHIN_MS),
      callMs: EXAMINE_WITHIN_MS,
      onTools: () => {},
      onLost: () => {},
    })
    await connection.close()
    return connection.tools.length
  } finally {
    watchdog.close()
  }
}
