/** Connects to one MCP server in the background, and reconnects after failures. */
import type { Logger } from 'pino'
import type { McpServerConfig } from '../../config/config.ts'
import type { Clock } from '../../lib/clock.ts'
import { renderPath } from '../../lib/formats/json.ts'
import { findSchemaFault } from '../../lib/formats/json-schema.ts'
import type { Random } from '../../lib/ids.ts'
import { type ToolAnswer, type ToolCallContext, ToolName } from '../tools.ts'
import type { McpConnection, McpTool } from './client.ts'
import { connectionErrorFields, messageErrorFields } from './messages.ts'
import type { Watchdog } from './watchdog.ts'

const FIRST_PAUSE_MS = 250
const LONGEST_PAUSE_MS = 30_000
/** If the connection lasted longer than this, the next connection attempt starts without a delay. */
const LASTED_MS = 10_000

export interface McpServerOptions {
  readonly clock: Pick<Clock, 'monotonic' | 'wait'>
  readonly random: Random
  readonly log: Logger
  readonly watchdog: Watchdog
  readonly callMs: number
  readonly onTools: () => void
}

export class McpServer {
  readonly name: string
  tools: readonly McpTool[] = []
  private readonly config: McpServerConfig
  private readonly options: McpServerOptions
  private readonly log: Logger
  private readonly ending = new AbortController()
  private readonly running: Promise<void>
  private connection: McpConnection | undefined
  private connecting = Promise.withResolvers<McpConnection>()
  private readonly closing = new Set<Promise<void>>()

  constructor(config: McpServerConfig, options: McpServerOptions) {
    this.name = config.name
    this.config = config
    this.options = options
    this.log = options.log.child({ mcp: config.name })
    this.running = this.run()
  }

  async call(
    name: string,
    args: Readonly<Record<string, unknown>>,
    { signal, requestId }: Pick<ToolCallContext, 'signal' | 'requestId'>,
  ): Promise<ToolAnswer> {
    const { connection } = this
    if (connection === undefined) return unavailable("this tool's server is currently unavailable")
    try {
      const answer = await connection.call(name, args, signal)
      if (answer !== 'forgotten') return answer
      // The current connection was dropped, so the call is repeated on the next one.
      const again = await (await this.connecting.promise).call(name, args, signal)
      return again === 'forgotten' ? unavailable("this tool's server keeps losing the session") : again
    } catch (error) {
      signal.throwIfAborted()
      const where = { tool: name, requestId }
      this.log.warn({ ...where, ...messageErrorFields(error) }, 'MCP server did not respond')
      return unavailable("this tool's server did not respond")
    }
  }

  get isConnected(): boolean {
    return this.connection !== undefined
  }

  async close(): Promise<void> {
    this.ending.abort()
    await this.running
    await Promise.all(this.closing)
  }

  private async run(): Promise<void> {
    const { clock } = this.options
    const { signal } = this.ending
    for (let failures = 0; !signal.aborted; ) {
      const startedAt = clock.monotonic()
      await this.connectOnce().catch((error) => {
        if (!signal.aborted) this.log.warn(connectionErrorFields(error), 'MCP server is not usable')
      })
      failures = clock.monotonic() - startedAt < LASTED_MS ? failures + 1 : 0
      if (failures > 0) await clock.wait(this.pauseMs(failures), signal).catch(() => {})
    }
  }

  private async connectOnce(): Promise<void> {
    const { watchdog, callMs } = this.options
    const { signal } = this.ending
    const lost = Promise.withResolvers<void>()
    const onLost = () => {
      this.drop(connection)
      lost.resolve()
    }
    let connection: McpConnection | undefined
    signal.addEventListener('abort', onLost)
    try {
      const { connect } = await import('./client.ts')
      const onTools = (tools: readonly McpTool[]) => this.setTools(tools)
      connection = await connect(this.config, {
        log: this.log,
        watchdog,
        callMs,
        signal,
        onTools,
        onLost,
      })
      this.setTools(connection.tools)
      this.connection = connection
      this.connecting.resolve(connection)
      this.log.info({ tools: this.tools.length }, 'MCP server connected')
      await lost.promise
      if (!signal.aborted) this.log.warn('lost the connection to an MCP server')
    } finally {
      signal.removeEventListener('abort', onLost)
      this.drop(connection)
      if (connection !== undefined) this.closeLater(connection)
    }
  }

  private closeLater(connection: McpConnection): void {
    const closing = connection
      .close()
      .catch((error) => this.log.debug(connectionErrorFields(error), 'failed to close an MCP connection'))
      .finally(() => this.closing.delete(closing))
    this.closing.add(closing)
  }

  private drop(connection: McpConnection | undefined): void {
    if (connection === undefined || this.connection !== connection) return
    this.connection = undefined
    this.connecting = Promise.withResolvers()
  }

  /** Omits tools whose name or schema a model would reject. */
  private setTools(tools: readonly McpTool[]): void {
    this.tools = tools.filter((tool) => {
      const problem = findProblem(this.name, tool)
      if (problem !== undefined) this.log.warn({ tool: tool.name }, `tool omitted: ${problem}`)
      return problem === undefined
    })
    this.options.onTools()
  }

  private pauseMs(failures: number): number {
    const ceilingMs = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (failures - 1))
    return ceilingMs * (0.5 + (this.options.random(1)[0] ?? 0) / 512)
  }
}

function findProblem(server: string, { name, inputSchema }: McpTool): string | undefined {
  const longName = toLongName(server, name)
  if (!isToolName(longName)) return `'${longName}' is not a valid tool name`
  const fault = findSchemaFault(inputSchema)
  return fault === undefined ? undefined : `${renderPath(['inputSchema', ...fault.path])} ${fault.problem}`
}

/**
 * Returns the tool's permanent name: the server's name, two underscores, and the tool's name with other
 * characters replaced by underscores.
 */
export function toLongName(server: string, tool: string): string {
  return `${server}__${tool.replaceAll(/[^A-Za-z0-9_-]/g, '_')}`
}

export function isToolName(name: string): boolean {
  return ToolName.safeParse(name).success
}

function unavailable(problem: string): ToolAnswer {
  return { problem, isUnavailable: true }
}
