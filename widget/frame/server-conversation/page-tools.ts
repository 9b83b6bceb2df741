/** Runs the page tools that a turn of this tab calls, and times out the calls of other tabs. */
import type { ToolCall } from '../conversation.ts'
import type { ToolRunner } from '../tools/tool-runner.ts'
import type { ShownView } from './shown-view.ts'
import { listOpenCalls } from './view.ts'

/**
 * Maximum time for a page tool to return its result, in milliseconds; `mcp-client.ts` enforces the same
 * limit.
 */
const CALL_MS = 29_000

export interface CallResult {
  readonly call_id: string
  readonly output: string
}

export interface PageTools {
  /** Resolves to the results, or to undefined if the visitor stops the calls or leaves the conversation. */
  readonly run: (turnId: string, calls: readonly ToolCall[]) => Promise<readonly CallResult[] | undefined>
  /**
   * Marks the calls of other tabs as `unknown` when their time is up. `isOwn` returns whether this tab
   * started the turn.
   */
  readonly expire: (isOwn: (turnId: string) => boolean) => void
  readonly stop: () => void
  /** Ends the running calls, because the model no longer waits for their results. */
  readonly cancel: () => void
  /** Ends the running calls and all timers, and forgets the visitor's approvals. */
  readonly leave: () => void
}

export function createPageTools(getView: () => ShownView, toolRunner: ToolRunner): PageTools {
  const timers = new Map<string, ReturnType<typeof setTimeout>>()
  let running: AbortController | undefined

  function stop(): void {
    running?.abort()
    running = undefined
  }

  function change(callId: string, changes: Partial<ToolCall>): void {
    getView().apply({ type: 'call-changed', callId, change: changes })
  }

  return {
    stop,
    cancel() {
      stop()
      const view = getView().get()
      for (const { call_id: callId = '' } of listOpenCalls(view)) {
        const status = view.calls.get(callId)?.status ?? 'asking'
        if (status === 'asking') change(callId, { status: 'cancelled' })
        else if (status === 'running') change(callId, { status: 'unknown' })
      }
      getView().apply({ type: 'tools', tools: undefined })
    },
    async run(turnId, calls) {
      const own = new AbortController()
      running = own
      const results = new Map<string, string>()
      getView().apply({ type: 'tools', tools: { turnId, state: 'running' } })
      await toolRunner.answer(
        calls,
        (callId, changes) => {
          if (own.signal.aborted) return
          if (changes.result !== undefined) results.set(callId, changes.result)
          change(callId, changes)
        },
        own.signal,
      )
      if (own.signal.aborted) return undefined
      running = undefined
      return [...results].map(([call_id, output]) => ({ call_id, output }))
    },
    expire(isOwn) {
      const nowMs = Date.now()
      for (const line of listOpenCalls(getView().get())) {
        const { call_id: callId = '', turn_id: turnId, created_at } = line
        const isOwnCall = () => turnId !== null && isOwn(turnId)
        if (timers.has(callId) || isOwnCall()) continue
        // The clocks of the visitor and the server may differ.
        const leftMs = Math.min(CALL_MS, Math.max(0, created_at * 1000 + CALL_MS - nowMs))
        // The response that starts a turn of this tab may arrive after its calls.
        const end = () => isOwnCall() || change(callId, { status: 'unknown' })
        timers.set(callId, setTimeout(end, leftMs))
      }
    },
    leave() {
      stop()
      toolRunner.forgetDecisions()
      for (const timer of timers.values()) clearTimeout(timer)
      timers.clear()
    },
  }
}
