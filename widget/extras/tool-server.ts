/** Implements the page's MCP server, which lists and calls the page's tools (MCP 2025-11-25, Tools). */
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js'
import { isRecord, isText, isWithinLimit, toPlain } from '../values.ts'
import type { HostedTool } from './page-tools.ts'

/** Prefix of page tools in the frame; removed before the page sees a name. */
const PREFIX = 'postMessage_'

/** See JSON-RPC 2.0, error object. */
const METHOD_NOT_FOUND = -32601
const INVALID_PARAMS = -32602

interface ToolServer {
  readonly receive: (message: Readonly<Record<string, unknown>>) => void
  /** Notifies the client that the list of tools has changed. */
  readonly publishTools: () => void
  /** Forgets the client and its running calls. */
  readonly reset: () => void
}

/** Creates a server; `listTools` returns the tools at the time of each request. */
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
      return { result: { tools: [...tools].map(renderTool) } }
    }
    if (method !== 'tools/call') return toError(METHOD_NOT_FOUND)
    const [, found] = [...tools].find(([name]) => PREFIX + name === params.name) ?? []
    if (found === undefined) return toError(INVALID_PARAMS)
    return { result: await runTool(found.call, isRecord(params.arguments) ? params.arguments : {}) }
  }

  return {
    receive({ id, method, params: given }) {
      const params = isRecord(given) ? given : {}
      if (id !== undefined) {
        running.set(id, params)
        void run(method, params).then((found) => {
          // Does not respond to cancelled requests (MCP, Cancellation).
          if (running.get(id) === params && running.delete(id)) send({ id, ...found })
        })
      } else if (method === 'notifications/initialized') isInitialized = true
      else if (method === 'notifications/cancelled') running.delete(params.requestId)
    },
    publishTools() {
      if (isInitialized) send({ method: 'notifications/tools/list_changed' })
    },
    reset() {
      isInitialized = false
      running.clear()
    },
  }
}

/** The response to `initialize` (MCP, Lifecycle). */
const description = {
  protocolVersion: '2025-11-25',
  capabilities: { tools: { listChanged: true } },
  serverInfo: { name: 'parley', version: '1' },
}

/**
 * Converts a tool to MCP's format. If JSON cannot represent the tool, returns only its name, so that the
 * frame reports it.
 */
export function renderTool([key, { tool }]: [name: string, HostedTool]) {
  const name = PREFIX + key
  const { description, inputSchema, annotations } = tool
  try {
    return toPlain({
      name,
      description: `${description ?? ''}`,
      inputSchema: { type: 'object', ...(inputSchema as object | undefined) },
      annotations,
    })
  } catch {
    return { name }
  }
}

/**
 * Runs the tool and returns a failure as a result, so that the model can read it. Needs no timeout, because
 * the frame sets one.
 */
function runTool(call: HostedTool['call'], args: Record<string, unknown>): Promise<CallToolResult> {
  return new Promise((resolve) => resolve(call(args))).then(toResult, toErrorResult)
}

/**
 * Converts a tool's return value to an MCP result. Strings and MCP results stay unchanged; any other value
 * becomes JSON.
 */
function toResult(value: unknown): CallToolResult {
  try {
    const isMcp =
      isRecord(value) && Array.isArray(value.content) && value.content[0] && value.content.every(isTextPart)
    const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
    const result = isMcp ? toPlain(value) : { content: [{ type: 'text', text }] }
    return isWithinLimit(result)
      ? (result as CallToolResult)
      : toErrorResult('The tool result is larger than 64 KiB.')
  } catch (error) {
    return toErrorResult(error)
  }
}

/**
 * Returns whether a content part is MCP text, the only kind that models receive (MCP, Tools, Tool Result).
 */
function isTextPart(part: unknown): boolean {
  return isRecord(part) && part.type === 'text' && isText(part.text)
}

function toErrorResult(error: unknown): CallToolResult {
  const text = error instanceof Error ? error.message : String(error)
  return { content: [{ type: 'text', text: text.slice(0, 2_000) }], isError: true }
}

function toError(code: number) {
  return { error: { code, message: 'Unknown' } }
}
