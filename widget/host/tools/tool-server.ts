/** The page as an MCP server: it lists the page's tools and has them called. Decision: 11; Protocol: MCP 2025-11-25, Tools. */
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js'
import { isRecord } from '../../values.ts'
import type { HostedTool } from './page-tools.ts'
import { toErrorResult } from './page-tools.ts'

/** What the frame knows page tools by; the page itself never sees it. Contract: Agent, `pageTools`. */
const PREFIX = 'postMessage_'

const CALL_WITHIN_MS = 29_000

/** Protocol: JSON-RPC 2.0, error object. */
const METHOD_NOT_FOUND = -32601
const INVALID_PARAMS = -32602

interface ToolServer {
  /** Takes what the client sent. */
  readonly receive: (message: Readonly<Record<string, unknown>>) => void
  /** Tells the client that there are other tools now. */
  readonly announceTools: () => void
  /** The client is gone: nobody waits for what is running. */
  readonly reset: () => void
}

/** A server of whatever tools there are when it is asked. */
export function createToolServer(
  listTools: () => ReadonlyMap<string, HostedTool>,
  post: (message: Readonly<Record<string, unknown>>) => void,
): ToolServer {
  const running = new Map<unknown, object>()
  let isInitialized = false
  const send = (fields: Readonly<Record<string, unknown>>) => post({ jsonrpc: '2.0', ...fields })

  async function run(method: unknown, params: Record<string, unknown>): Promise<Record<string, unknown>> {
    if (method === 'initialize') return { result: description }
    if (method === 'ping') return { result: {} }
    const tools = listTools()
    if (method === 'tools/list') {
      return { result: { tools: [...tools].map(([name, { tool }]) => ({ ...tool, name: PREFIX + name })) } }
    }
    if (method !== 'tools/call') return { error: { code: METHOD_NOT_FOUND, message: 'Unknown' } }
    const [, name = ''] = String(params.name).split(PREFIX)
    const call = tools.get(name)?.call
    if (call === undefined) return { error: { code: INVALID_PARAMS, message: 'Unknown' } }
    return { result: await withinTime(call(isRecord(params.arguments) ? params.arguments : {})) }
  }

  return {
    receive({ id, method, params: given }) {
      const params = isRecord(given) ? given : {}
      if (id !== undefined) {
        running.set(id, params)
        void run(method, params).then((found) => {
          // Protocol: MCP, Cancellation: "Not send a response for the cancelled request".
          if (running.get(id) === params && running.delete(id)) send({ id, ...found })
        })
      } else if (method === 'notifications/initialized') isInitialized = true
      else if (method === 'notifications/cancelled') running.delete(params.requestId)
    },
    announceTools() {
      if (isInitialized) send({ method: 'notifications/tools/list_changed' })
    },
    reset() {
      isInitialized = false
      running.clear()
    },
  }
}

/** Protocol: MCP, Lifecycle. */
const description = {
  protocolVersion: '2025-11-25',
  capabilities: { tools: { listChanged: true } },
  serverInfo: { name: 'parley', version: '1' },
}

/** The result, or one that says there was none in time. Decision: 11. */
function withinTime(result: Promise<CallToolResult>): Promise<CallToolResult> {
  return new Promise((resolve) => {
    setTimeout(() => resolve(toErrorResult('Timed out')), CALL_WITHIN_MS)
    void result.then(resolve)
  })
}
