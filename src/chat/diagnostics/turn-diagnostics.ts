/** Records how a stored turn ran: its route, attempts, policy, tools and budget. */
import { TurnStopped } from '../../conversations/conversations.ts'
import type { History } from '../../conversations/reader.ts'
import type { Clock } from '../../lib/clock.ts'
import { ServiceError } from '../../lib/errors.ts'
import type { RouteReasons } from '../../models/policy.ts'
import type { ChatRequest } from '../../providers/chat-api.ts'
import { nameFailure, toCallerError, toInterruption } from '../../providers/failures.ts'
import { BackendFailure, type ModelRoute } from '../../providers/provider.ts'
import { pageToolPrefix } from '../../tools/tools.ts'
import type { CalledTool, OnToolCall } from '../tool-loop.ts'

/** Maximum number of entries in each list. */
const MAX_ENTRIES = 64

interface Attempt {
  /** Number of the model call in the turn, from 1. */
  readonly round: number
  readonly provider: string
  readonly model: string
  /** `ok`, an error code, or `stopped`. */
  outcome: string
  /**
   * Kind of the provider's failure, such as `status_5xx`, `error_event` or `timeout`; null if it did not fail.
   */
  cause: string | null
  http_status: number | null
  /** Milliseconds since the start of the turn. */
  readonly started_ms: number
  ended_ms: number
}

interface RanTool extends CalledTool {
  /** Number of the model call that called the tool, from 1. */
  readonly round: number
  /** Milliseconds since the start of the turn. */
  readonly started_ms: number
  readonly outcome: Parameters<ReturnType<OnToolCall>>[0]
  readonly duration_ms: number
  /** Null, because server tools run without asking a person for approval. */
  readonly approval: null
}

/** A rule of the agent or of its policy that changed the request. */
export interface PolicyEffect {
  readonly kind: 'tool_withheld' | 'page_tool_blocked' | 'tokens_capped'
  readonly name: string
}

/** Why a turn used its route, and the rules that changed its request. */
export interface TurnReasons {
  readonly route: RouteReasons
  readonly policy: readonly PolicyEffect[]
}

interface ExplainedTurn {
  readonly agentId: string | undefined
  readonly agentVersion: number | undefined
  readonly explain: () => TurnReasons
  readonly history?: History
}

/** Collects the diagnostics of one turn. They contain no message text, keys, headers or addresses. */
export class TurnDiagnostics {
  private readonly clock: Pick<Clock, 'monotonic'>
  private readonly turn: ExplainedTurn
  private readonly beganAtMs: number
  private readonly attempts: Attempt[] = []
  private readonly opened: ModelRoute[] = []
  private readonly tools: RanTool[] = []
  private round = 0

  constructor(clock: Pick<Clock, 'monotonic'>, turn: ExplainedTurn) {
    this.clock = clock
    this.turn = turn
    this.beganAtMs = clock.monotonic()
  }

  beginRound(): void {
    this.round += 1
  }

  /** Records a model that was skipped because its circuit breaker is open. */
  skipped(route: ModelRoute): void {
    if (this.opened.length < MAX_ENTRIES) this.opened.push(route)
  }

  /**
   * Records a request to a model. The caller must call the returned function when the model begins to answer
   * or fails.
   */
  beginAttempt({ backend, model }: ModelRoute): (thrown?: unknown) => void {
    const startedMs = this.nowMs()
    return (thrown) => {
      if (this.attempts.length === MAX_ENTRIES) return
      const failed = thrown === undefined ? success : describe(thrown, toCallerError(thrown))
      this.attempts.push({
        ...{ round: this.round, provider: backend.name, model, ...failed },
        ...{ started_ms: startedMs, ended_ms: this.nowMs() },
      })
    }
  }

  /** Records that the last request failed in the middle of its answer. */
  interrupted(thrown: unknown): void {
    const last = this.attempts.at(-1)
    if (last === undefined) return
    Object.assign(last, describe(thrown, toInterruption(thrown)), { ended_ms: this.nowMs() })
  }

  answered(): void {
    const last = this.attempts.at(-1)
    if (last !== undefined) last.ended_ms = this.nowMs()
  }

  beginTool({ name, ...tool }: CalledTool): ReturnType<OnToolCall> {
    const { round } = this
    const startedMs = this.nowMs()
    return (outcome) => {
      if (this.tools.length === MAX_ENTRIES) return
      this.tools.push({
        ...{ ...tool, name: name.slice(0, 100), round, outcome, approval: null },
        ...{ started_ms: startedMs, duration_ms: this.nowMs() - startedMs },
      })
    }
  }

  /** Renders the diagnostics at the end of the turn. `chosen` is the model that answered last. */
  render(chosen: ModelRoute, isFallback: boolean, budget: { reserved: number; settled: number } | undefined) {
    const { agentId, agentVersion, explain, history } = this.turn
    const { route, policy } = explain()
    const skipped = [
      ...route.skipped,
      ...this.opened.map((one) => ({ ...nameOf(one), why: 'breaker_open' as const })),
    ]
    return {
      agent: agentId === undefined ? null : { id: agentId, version: agentVersion ?? null },
      route: { ...route, chosen: nameOf(chosen), skipped: skipped.slice(0, MAX_ENTRIES) },
      attempts: this.attempts,
      fallback: isFallback,
      policy: policy.slice(0, MAX_ENTRIES),
      history: history === undefined ? null : { sent: history.items.length, left_out: history.leftOut },
      tools: this.tools,
      budget: budget ?? null,
    }
  }

  private nowMs(): number {
    return Math.round(this.clock.monotonic() - this.beganAtMs)
  }
}

const success = { outcome: 'ok', cause: null, http_status: null }

function describe(thrown: unknown, reported: unknown): Pick<Attempt, 'outcome' | 'cause' | 'http_status'> {
  if (thrown instanceof TurnStopped) return { outcome: 'stopped', cause: null, http_status: null }
  // The provider may choose the code, so its length is limited.
  const outcome = reported instanceof ServiceError ? reported.code.slice(0, 100) : 'stopped'
  if (!(thrown instanceof BackendFailure)) return { outcome, cause: null, http_status: null }
  if (thrown.isInAnswer) return { outcome, cause: 'error_event', http_status: null }
  return { outcome, cause: nameFailure(thrown), http_status: thrown.status ?? null }
}

function nameOf({ backend, model }: ModelRoute): { provider: string; model: string } {
  return { provider: backend.name, model }
}

/** Lists the tools that were removed from a request, and its token limits that were lowered. */
export function listPolicyEffects(sent: ChatRequest, received: ChatRequest): PolicyEffect[] {
  const kept = new Set(received.tools?.map((tool) => tool.function?.name))
  const withheld = (sent.tools ?? []).flatMap(({ function: given }) =>
    given === undefined || kept.has(given.name) ? [] : [given.name],
  )
  const effects = withheld.map((name): PolicyEffect => {
    const kind = name.startsWith(pageToolPrefix) ? 'page_tool_blocked' : 'tool_withheld'
    return { kind, name: name.slice(0, 100) }
  })
  const limits = ['max_tokens', 'max_completion_tokens'] as const
  const cut = limits.filter((limit) => typeof sent[limit] === 'number' && sent[limit] !== received[limit])
  return [...effects, ...cut.map((name): PolicyEffect => ({ kind: 'tokens_capped', name }))]
}
