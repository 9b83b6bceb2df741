/** Implements an MCP client for the page's tools (MCP 2025-11-25). */
import type { CallToolResult, Tool } from '@modelcontextprotocol/sdk/types.js'
import { NO_TOOL_HANDLER } from '../../messages.ts'
import { isRecord, isWithinLimit, newId } from '../../values.ts'
import { checkTools } from './check-tools.ts'

const PROTOCOL_VERSION = '2025-11-25'
const CALL_MS = 29_000
/**
 * Maximum time in milliseconds for the page's response to `initialize` and `tools/list`. After a timeout, the
 * tools that are already known stay in use.
 */
const LIST_MS = 3000
const MAX_PAGES = 8
const noHandler = 'tools: the page has no `onToolCall` and no listener for `parley-chat-tool-call`.'

export interface PageToolClient {
  /** Lists the page's tools, now and after every `list_changed`. */
  readonly start: () => void
  /** Handles a message from the page; ignores responses without a pending request. */
  readonly receive: (message: Readonly<Record<string, unknown>>) => void
  /** Resolves to the page's tools, after its response or the timeout. */
  readonly list: () => Promise<readonly Tool[]>
  readonly find: (name: string) => Tool | undefined
  /** Never rejects; a failure is part of the outcome. */
  readonly call: (name: string, args: Record<string, unknown>, signal: AbortSignal) => Promise<ToolOutcome>
}

interface Waiting {
  readonly settle: (answer: Answer) => void
  readonly timer: ReturnType<typeof setTimeout>
}

type Answer = { readonly result: Record<string, unknown> } | { readonly problem: string }

/**
 * Creates a client that sends messages with `post`, and calls `reportMistake` for each tool that cannot be
 * offered.
 */
export function createPageToolClient(
  post: (message: Record<string, unknown>) => void,
  reportMistake: (problem: string) => void,
): PageToolClient {
  const waiting = new Map<string, Waiting>()
  let tools: readonly Tool[] = []
  let listing: Promise<void> = Promise.resolve()

  function request(method: string, params: object, timeoutMs: number, signal?: AbortSignal): Promise<Answer> {
    const id = newId()
    return new Promise((resolve) => {
      function settle(answer: Answer): void {
        clearTimeout(timer)
        signal?.removeEventListener('abort', onAbort)
        waiting.delete(id)
        resolve(answer)
      }
      function giveUp(reason: string): void {
        post({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: id, reason } })
        settle({ problem: reason })
      }
      const onAbort = () => giveUp('The visitor stopped the answer.')
      const timer = setTimeout(
        () => giveUp(`The page did not respond within ${timeoutMs / 1000} seconds.`),
        timeoutMs,
      )
      signal?.addEventListener('abort', onAbort)
      waiting.set(id, { settle, timer })
      post({ jsonrpc: '2.0', id, method, params })
    })
  }

  async function begin(): Promise<void> {
    const clientInfo = { name: 'parley-frame', version: '1' }
    const params = { protocolVersion: PROTOCOL_VERSION, capabilities: {}, clientInfo }
    const answer = await request('initialize', params, LIST_MS)
    if ('problem' in answer) return
    post({ jsonrpc: '2.0', method: 'notifications/initialized' })
    await readList()
  }

  async function readList(): Promise<void> {
    const found: unknown[] = []
    let cursor: unknown
    for (let page = 0; page < MAX_PAGES; page++) {
      const answer = await request('tools/list', cursor === undefined ? {} : { cursor }, LIST_MS)
      if ('problem' in answer) return
      if (Array.isArray(answer.result.tools)) found.push(...answer.result.tools)
      cursor = answer.result.nextCursor
      if (typeof cursor !== 'string') break
    }
    const checked = checkTools(found)
    tools = checked.tools
    for (const problem of checked.problems) reportMistake(problem)
  }

  return {
    start() {
      listing = begin()
    },
    receive(message) {
      if (message.jsonrpc !== '2.0') return
      if (message.method === 'notifications/tools/list_changed' && message.id === undefined) {
        listing = listing.then(readList)
        return
      }
      if (typeof message.id !== 'string' || message.method !== undefined) return
      waiting.get(message.id)?.settle(toAnswer(message))
    },
    async list() {
      await listing
      return tools
    },
    find: (name) => tools.find((tool) => tool.name === name),
    async call(name, args, signal) {
      const outcome = toOutcome(await request('tools/call', { name, arguments: args }, CALL_MS, signal))
      if (outcome.text === NO_TOOL_HANDLER) reportMistake(noHandler)
      return outcome
    },
  }
}

function toAnswer({ result, error }: Readonly<Record<string, unknown>>): Answer {
  if (isRecord(result)) return { result }
  const words = isRecord(error) && typeof error.message === 'string' ? error.message.slice(0, 2000) : ''
  return { problem: words === '' ? 'The page returned an invalid result.' : words }
}

export interface ToolOutcome {
  readonly isError: boolean
  readonly text: string
}

function toOutcome(answer: Answer): ToolOutcome {
  if ('problem' in answer) return { isError: true, text: answer.problem }
  return renderResult(answer.result as CallToolResult)
}

/** Renders the result as text; a missing or oversized result is an error. */
function renderResult(result: CallToolResult): ToolOutcome {
  const text = textIn(result)
  if (text === undefined) return { isError: true, text: 'The page returned an invalid result.' }
  if (!isWithinLimit(text)) {
    return { isError: true, text: 'The result of the tool is larger than 64 KiB.' }
  }
  return { isError: result.isError === true, text }
}

export function renderToolMessage({ isError, text }: ToolOutcome): string {
  return isError ? `Error: ${text}` : text
}

function textIn({ content, structuredContent }: CallToolResult): string | undefined {
  const texts = Array.isArray(content)
    ? content.flatMap((part: unknown) => (isRecord(part) && typeof part.text === 'string' ? [part.text] : []))
    : []
  if (texts.length > 0) return texts.join('\n')
  if (isRecord(structuredContent)) return JSON.stringify(structuredContent)
  return Array.isArray(content) ? '' : undefined
}
