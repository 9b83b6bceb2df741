/**
 * Implements an MCP connection to one server. Imported on demand, because loading the MCP library takes a
 * third of a second.
 */
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
import { createMcpHttp, isForgotten, type McpHttp } from './http.ts'
import { CONNECT_MS, GRACE_MS, messageErrorFields, renderResult } from './messages.ts'
import { StdioTransport } from './stdio.ts'
import type { Watchdog } from './watchdog.ts'

export interface McpTool {
  readonly name: string
  readonly description: string | undefined
  readonly inputSchema: JsonSchema
}

export type McpConnection = Awaited<ReturnType<typeof connect>>

export interface ConnectOptions {
  readonly log: Logger
  readonly watchdog: Watchdog
  readonly signal: AbortSignal
  readonly callMs: number
  readonly onTools: (tools: readonly McpTool[]) => void
  readonly onLost: () => void
}

export async function connect(config: McpServerConfig, options: ConnectOptions) {
  const { log, signal, callMs, onTools, onLost } = options
  const client = new Client(
    { name: packageJson.name, version: packageJson.version },
    {
      listChanged: {
        tools: { onChanged: (_error, tools) => void (tools && onTools(tools.map(toMcpTool))) },
      },
      // Stdio programs support the older protocol revision, and some exit when they receive an unknown
      // request.
      versionNegotiation: { mode: config.kind === 'http' ? 'auto' : 'legacy' },
      inputRequired: { autoFulfill: false },
      jsonSchemaValidator: { getValidator: acceptAll },
    },
  )
  client.onerror = (error) => log.debug(messageErrorFields(error), 'error on an MCP connection')
  client.onclose = onLost
  const http = config.kind === 'http' ? createMcpHttp(callMs, onLost) : undefined
  const transport = createTransport(config, options, http)
  const active = new Set<Promise<unknown>>()
  try {
    await client.connect(transport, { signal, timeout: CONNECT_MS })
    const { tools } = await client.listTools(undefined, { signal, timeout: CONNECT_MS })
    return {
      tools: tools.map(toMcpTool),
      /**
       * Returns `forgotten` if the server has lost the session and did not run the tool. @throws Error, or
       * the signal's reason.
       */
      async call(
        name: string,
        args: Readonly<Record<string, unknown>>,
        callSignal: AbortSignal,
      ): Promise<ToolAnswer | 'forgotten'> {
        const request = { name, arguments: { ...args } }
        const start = () => client.callTool(request, { signal: callSignal, timeout: callMs + GRACE_MS })
        const calling = http === undefined ? start() : http.call(start)
        active.add(calling)
        return calling
          .finally(() => active.delete(calling))
          .then(renderResult, (error) => toAnswerOrThrow(error, transport))
      },
      async close() {
        client.onclose = undefined
        await Promise.allSettled(active)
        if (transport instanceof StreamableHTTPClientTransport)
          await within(GRACE_MS, transport.terminateSession()).catch(() => {})
        await client.close()
        await http?.close()
      },
    }
  } catch (error) {
    client.onclose = undefined
    await client.close()
    await http?.close()
    throw error
  }
}

function createTransport(
  config: McpServerConfig,
  { watchdog, log }: ConnectOptions,
  http: McpHttp | undefined,
): Transport {
  if (config.kind === 'stdio') return new StdioTransport(config, watchdog, log)
  const requestInit = { headers: { ...config.headers } }
  return new StreamableHTTPClientTransport(new URL(config.url), {
    ...(http && { fetch: http.fetch }),
    requestInit,
  })
}

/** Accepts every result, because the model can judge it and the schema comes from a different server. */
function acceptAll<T>(): JsonSchemaValidator<T> {
  return (input) => ({ valid: true, data: input as T, errorMessage: undefined })
}

function toMcpTool({ name, title, description, inputSchema }: Tool): McpTool {
  return { name, description: description ?? title, inputSchema }
}

/** Converts protocol errors and HTTP statuses to answers for the model, and rethrows other errors. */
function toAnswerOrThrow(error: unknown, transport: Transport): ToolAnswer | 'forgotten' {
  if (error instanceof ProtocolError) return { problem: error.message }
  if (!(error instanceof SdkHttpError)) throw error
  const isInSession = transport.sessionId !== undefined
  if (isInSession && isForgotten(error.status)) return 'forgotten'
  return { problem: `the tool's server returned status ${error.status}`, isUnavailable: true }
}
