/**
 * Runs the model's tool calls. Validates them, asks the visitor for approval if needed, and calls the page.
 */
import type { Tool } from '@modelcontextprotocol/sdk/types.js'
import { isRecord } from '../../values.ts'
import type { ToolCall } from '../conversation.ts'
import { labelsOf, needsApproval, purposeOf, renderTool, titleOf } from './check-tools.ts'
import type { PageToolClient } from './mcp-client.ts'
import { renderToolMessage, type ToolOutcome } from './mcp-client.ts'

export type ChangeCall = (callId: string, change: Partial<Omit<ToolCall, 'id'>>) => void

export interface ToolRunner {
  /** Resolves to the tools in the chat API's format. */
  readonly list: () => Promise<readonly object[]>
  /**
   * Runs all calls in parallel; resolves when each has a result, or immediately when `signal` aborts. Never
   * rejects.
   */
  readonly answer: (calls: readonly ToolCall[], change: ChangeCall, signal: AbortSignal) => Promise<void>
  /** Records the visitor's decision about a call that needs approval. */
  readonly decide: (callId: string, decision: ToolDecision) => void
  /** Forgets the visitor's approvals; must be called when another conversation is shown. */
  readonly forgetDecisions: () => void
}

/** `always` applies to all calls of the tool in the conversation. */
export type ToolDecision = 'deny' | 'once' | 'always'

interface Asking {
  readonly name: string
  readonly settle: (isAllowed: boolean) => void
}

export function createToolRunner(client: PageToolClient): ToolRunner {
  /** Calls that wait for the visitor's approval. They have no timeout, because the tool has not started. */
  const asking = new Map<string, Asking>()
  /** The names of the tools that the visitor has allowed for the whole conversation. */
  const alwaysAllowed = new Set<string>()

  function ask({ id, name }: ToolCall, signal: AbortSignal): Promise<boolean> {
    return new Promise((resolve) => {
      function settle(isAllowed: boolean): void {
        asking.delete(id)
        signal.removeEventListener('abort', onAbort)
        resolve(isAllowed)
      }
      const onAbort = () => settle(false)
      signal.addEventListener('abort', onAbort)
      asking.set(id, { name, settle })
    })
  }

  function decide(callId: string, decision: ToolDecision): void {
    const asked = asking.get(callId)
    if (asked === undefined) return
    if (decision !== 'always') {
      asked.settle(decision === 'once')
      return
    }
    alwaysAllowed.add(asked.name)
    // Other calls of the same tool may be waiting too.
    for (const { name, settle } of [...asking.values()]) if (name === asked.name) settle(true)
  }

  async function answerOne(call: ToolCall, change: ChangeCall, signal: AbortSignal): Promise<void> {
    const tool = client.find(call.name)
    const args = parseArguments(call.argumentsText)
    const title = titleOf(tool, call.name)
    if (tool === undefined) return end('failed', 'This page has no tool with this name.')
    if (args === undefined) return end('failed', 'The arguments are not a JSON object.')
    const purpose = purposeOf(tool)
    change(call.id, { title, labels: labelsOf(tool), ...(purpose !== undefined && { purpose }) })
    if (needsApproval(tool) && !alwaysAllowed.has(call.name)) {
      change(call.id, { status: 'asking' })
      const isAllowed = await ask(call, signal)
      if (signal.aborted) return
      if (!isAllowed) return end('denied', 'The visitor did not allow this call.')
    }
    change(call.id, { status: 'running', title })
    const outcome = await client.call(call.name, args, signal)
    if (!signal.aborted) end(outcome.isError ? 'failed' : 'done', outcome.text)

    function end(status: 'done' | 'failed' | 'denied', text: string): void {
      const outcome: ToolOutcome = { isError: status !== 'done', text }
      change(call.id, { status, title, result: renderToolMessage(outcome) })
    }
  }

  return {
    list: async () => (await client.list()).map((tool: Tool) => renderTool(tool)),
    async answer(calls, change, signal) {
      await Promise.all(calls.map((call) => answerOne(call, change, signal)))
    },
    decide,
    forgetDecisions: () => alwaysAllowed.clear(),
  }
}

function parseArguments(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = text.trim() === '' ? {} : JSON.parse(text)
    return isRecord(value) ? value : undefined
  } catch {
    return undefined
  }
}
