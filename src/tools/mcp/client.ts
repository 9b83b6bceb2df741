/** Speaks MCP with one server: the only file that loads the protocol's library, which takes a third of a second. */

import {
  Client,
  type JsonSchemaValidator,
  ProtocolError,
  SdkHttpError,
  StreamableHTTPClientTransport,
  type Tool,
  type Transport,
} from '@modelcontextprotocol/client'
import type { Logger } from 'pino'
import packageJson from '../../../package.json' with { type: 'json' }
import type { McpServerConfig } from '../../config/config.ts'
import type { JsonSchema } from '../../lib/formats/json-schema.ts'
import { within } from '../../lib/timeout.ts'
import type { ToolAnswer } from '../tools.ts'
import { createMcpHttp, isForgotten } from './http.ts'
import { CONNECT_MS, describeMessageTrouble, GRACE_MS, renderResult } from './messages.ts'
import { StdioTransport } from './stdio.ts'
import type { Watchdog } from './watchdog.ts'

/** A tool as its server describes it. */
export interface McpTool {
  readonly name: string
  readonly description: string | undefined
  readonly inputSchema: JsonSchema
}

/** A server that has been spoken with. */
export interface McpConnection {
  readonly tools: readonly McpTool[]
  /**
   * Calls a tool; `forgotten` when the server did not even look at it, because it has been started anew.
   * @throws Error when there is no answer, and the signal's reason.
   */
  call(
    name: string,
    args: Readonly<Record<string, unknown>>,
    signal: AbortSignal,
  ): Promise<ToolAnswer | 'forgotten'>
  /** Lets calls under way come to their end first. */
  close(): Promise<void>
}

export interface ConnectOptions {
  readonly log: Logger
  readonly watchdog: Watchdog
  readonly signal: AbortSignal
  /** The longest a call may take. */
  readonly callMs: number
  readonly onTools: (tools: readonly McpTool[]) => void
  /** The connection is of no use any more. */
  readonly onLost: () => void
}

/** @throws Error when the server cannot be reached or does not speak MCP. */
export async function connect(config: McpServerConfig, options: ConnectOptions): Promise<McpConnection> {
  const { log, signal, callMs, onTools, onLost } = options
  const client = new Client(
    { name: packageJson.name, version: packageJson.version },
    {
      listChanged: {
        tools: { onChanged: (_error, tools) => void (tools && onTools(tools.map(toMcpTool))) },
      },
      // Programs are asked in the older revision, which all of them speak: some end at a question they do not know.
      versionNegotiation: { mode: config.kind === 'http' ? 'auto' : 'legacy' },
      inputRequired: { autoFulfill: false },
      jsonSchemaValidator: { getValidator: acceptAll },
    },
  )
  client.onerror = (error) => log.debug(describeMessageTrouble(error), 'an MCP connection has trouble')
  client.onclose = onLost
  const link = createLink(config, options)
  const underWay = new Set<Promise<unknown>>()
  try {
    await client.connect(link.transport, { signal, timeout: CONNECT_MS })
    const { tools } = await client.listTools(undefined, { signal, timeout: CONNECT_MS })
    return {
      tools: tools.map(toMcpTool),
      async call(name, args, callSignal) {
        const request = { name, arguments: { ...args } }
        const calling = link.call(() =>
          client.callTool(request, { signal: callSignal, timeout: callMs + GRACE_MS }),
        )
        underWay.add(calling)
        return calling
          .finally(() => underWay.delete(calling))
          .then(renderResult, (error) => toAnswerOrThrow(error, link))
      },
      async close() {
        client.onclose = undefined
        await Promise.allSettled(underWay)
        await link.leave()
        await client.close()
        await link.close()
      },
    }
  } catch (error) {
    client.onclose = undefined
    await client.close()
    await link.close()
    throw error
  }
}

/** How messages reach a server. */
interface Link {
  readonly transport: Transport
  /** Makes a call that fails as soon as its answer cannot come any more. */
  call<T>(start: () => Promise<T>): Promise<T>
  /** Says goodbye, where that is a message. */
  leave(): Promise<void>
  close(): Promise<void>
}

function createLink(config: McpServerConfig, options: ConnectOptions): Link {
  if (config.kind === 'http') return createHttpLink(config, options)
  return {
    transport: new StdioTransport(config, options.watchdog, options.log),
    call: (start) => start(),
    leave: async () => {},
    close: async () => {},
  }
}

function createHttpLink(
  { url, headers }: Extract<McpServerConfig, { kind: 'http' }>,
  { callMs, onLost }: ConnectOptions,
): Link {
  const http = createMcpHttp(callMs, onLost)
  const transport = new StreamableHTTPClientTransport(new URL(url), {
    fetch: http.fetch,
    requestInit: { headers: { ...headers } },
  })
  return {
    transport,
    call: http.call,
    leave: () => within(GRACE_MS, transport.terminateSession()).catch(() => {}),
    close: () => http.close(),
  }
}

/** Results are told to a model, which can judge them; the schemas of somebody else's server are not run for that. */
function acceptAll<T>(): JsonSchemaValidator<T> {
  return (input) => ({ valid: true, data: input as T, errorMessage: undefined })
}

function toMcpTool({ name, title, description, inputSchema }: Tool): McpTool {
  return { name, description: description ?? title, inputSchema }
}

/** What a server says about a call is for the model; that it says nothing is not. */
function toAnswerOrThrow(error: unknown, { transport }: Link): ToolAnswer | 'forgotten' {
  if (error instanceof ProtocolError) return { problem: error.message }
  if (!(error instanceof SdkHttpError)) throw error
  const isInSession = transport.sessionId !== undefined
  if (isInSession && isForgotten(error.status)) return 'forgotten'
  return { problem: `the tool's server answered with status ${error.status}` }
}
