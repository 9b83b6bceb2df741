/** The page as an MCP server: it lists the page's tools and has them called. Decision: 11; Protocol: MCP 2025-11-25, Tools. */
import type {
  CallToolResult,
  JSONRPCErrorResponse,
  JSONRPCResultResponse,
  Tool,
} from '@modelcontextprotocol/sdk/types.js'
import { isRecord } from './read-options.ts'
import { toErrorResult } from './tool-result.ts'

/** What the frame knows page tools by; the page itself never sees it. Contract: Agent, `pageTools`. */
const PREFIX = 'postMessage_'

const CALL_WITHIN_MS = 29_000

const latestVersion = '2025-11-25'
const versions = [latestVersion, '2025-06-18', '2025-03-26']

/** Protocol: JSON-RPC 2.0, error object. */
const METHOD_NOT_FOUND = -32601
const INVALID_PARAMS = -32602

/** A tool by the page's own name for it. */
export interface HostedTool {
  readonly tool: Omit<Tool, 'name'>
  /** The answer, also of a tool that failed; the signal says that nobody waits for it any more. */
  call(args: Record<string, unknown>, signal: AbortSignal): Promise<CallToolResult>
}

export interface ToolServer {
  /** Takes what the client sent. */
  readonly receive: (message: Readonly<Record<string, unknown>>) => void
  /** Tells the client that there are other tools now. */
  readonly announceTools: () => void
  /** The client is gone: nobody waits for what is running. */
  readonly reset: () => void
}

type Answer = Pick<JSONRPCResultResponse, 'result'> | Pick<JSONRPCErrorResponse, 'error'>

/** A server of whatever tools there are when it is asked. */
export function createToolServer(
  listTools: () => Promise<ReadonlyMap<string, HostedTool>>,
  post: (message: Readonly<Record<string, unknown>>) => void,
): ToolServer {
  const running = new Map<unknown, AbortController>()
  let isInitialized = false

  async function callTool(params: Record<string, unknown>, ended: AbortController): Promise<Answer> {
    const name = String(params.name)
    const hosted = (await listTools()).get(name.slice(PREFIX.length))
    if (!name.startsWith(PREFIX) || hosted === undefined) {
      return refuse(INVALID_PARAMS, `Unknown tool: ${name}`)
    }
    const args = isRecord(params.arguments) ? params.arguments : {}
    return { result: await withinTime(hosted.call(args, ended.signal), ended) }
  }

  async function renderTools(): Promise<Answer> {
    const tools = [...(await listTools())].map(([name, { tool }]) => ({ ...tool, name: PREFIX + name }))
    return { result: { tools } }
  }

  async function answer(
    method: unknown,
    params: Record<string, unknown>,
    ended: AbortController,
  ): Promise<Answer> {
    if (method === 'initialize') return { result: renderServer(params.protocolVersion) }
    if (method === 'ping') return { result: {} }
    if (method === 'tools/list') return renderTools()
    if (method === 'tools/call') return callTool(params, ended)
    return refuse(METHOD_NOT_FOUND, 'Method not found')
  }

  function cancel(id: unknown): void {
    running.get(id)?.abort()
    running.delete(id)
  }

  function reset(): void {
    isInitialized = false
    for (const id of [...running.keys()]) cancel(id)
  }

  return {
    reset,
    receive({ id, method, params: given }) {
      const params = isRecord(given) ? given : {}
      if (id === undefined) {
        if (method === 'notifications/initialized') isInitialized = true
        if (method === 'notifications/cancelled') cancel(params.requestId)
        return
      }
      const ended = new AbortController()
      running.set(id, ended)
      void answer(method, params, ended).then((found) => {
        // Protocol: MCP, Cancellation: "Not send a response for the cancelled request".
        if (running.get(id) !== ended) return
        running.delete(id)
        post({ jsonrpc: '2.0', id, ...found })
      })
    },
    announceTools() {
      if (isInitialized) post({ jsonrpc: '2.0', method: 'notifications/tools/list_changed' })
    },
  }
}

function renderServer(asked: unknown): Readonly<Record<string, unknown>> {
  return {
    protocolVersion: versions.find((version) => version === asked) ?? latestVersion,
    capabilities: { tools: { listChanged: true } },
    serverInfo: { name: 'parley-page', version: '1' },
  }
}

function refuse(code: number, message: string): Answer {
  return { error: { code, message } }
}

/** The result, or one that says there was none in time. Decision: 11. */
function withinTime(result: Promise<CallToolResult>, ended: AbortController): Promise<CallToolResult> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => {
      resolve(toErrorResult('The page did not answer within 29 seconds.'))
      ended.abort()
    }, CALL_WITHIN_MS)
    result.then(resolve, (error) => resolve(toErrorResult(error))).finally(() => clearTimeout(timer))
  })
}
