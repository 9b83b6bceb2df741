/** Records the steps of a turn for the console's playground, with their times. */
import type { Clock } from '../../lib/clock.ts'
import { ServiceError } from '../../lib/errors.ts'
import type { Usage } from '../../providers/chat-api.ts'
import { nameFailure, toCallerError } from '../../providers/failures.ts'
import { BackendFailure, type ModelRoute } from '../../providers/provider.ts'
import type { TraceStep, TurnStep } from '../schema.ts'
import { encodeEvent } from '../sse-reader.ts'

type NewStep = TraceStep extends infer Step ? (Step extends TraceStep ? Omit<Step, 'at_ms'> : never) : never

/** Collects the steps of one turn until the client receives them. */
export class TurnTrace {
  private readonly clock: Pick<Clock, 'monotonic'>
  private readonly beganAtMs: number
  private steps: TraceStep[] = []

  constructor(
    clock: Pick<Clock, 'monotonic'>,
    { routes, isDegraded }: { readonly routes: readonly ModelRoute[]; readonly isDegraded: boolean },
  ) {
    this.clock = clock
    this.beganAtMs = clock.monotonic()
    this.add({ type: 'route', models: routes.map(toReference), is_degraded: isDegraded })
  }

  /** Returns an event for each step since the last call. */
  take(): Uint8Array[] {
    const events = this.steps.map((step) =>
      encodeEvent({ id: '', object: 'chat.completion.chunk', created: 0, model: '', choices: [], step }),
    )
    this.steps = []
    return events
  }

  addToolStep(step: TurnStep): void {
    this.add(step)
  }

  answering(route: ModelRoute, attempts: number, isFallback: boolean): void {
    this.add({ type: 'answering', ...toReference(route), attempts, is_fallback: isFallback })
  }

  /**
   * Records the start of a request to a model. The caller must call the result when the model has responded
   * or failed.
   */
  beginAttempt(route: ModelRoute, isFallback: boolean): (thrown?: unknown) => void {
    const started = this.nowMs()
    return (thrown) =>
      this.add({
        type: 'attempt',
        ...toReference(route),
        started_ms: started,
        is_fallback: isFallback,
        failure: thrown === undefined ? null : toFailure(thrown),
      })
  }

  endOutput(route: ModelRoute, usage: Usage | undefined, toolCalls: number): void {
    this.add({
      type: 'model_output',
      ...toReference(route),
      prompt_tokens: usage?.prompt_tokens ?? null,
      completion_tokens: usage?.completion_tokens ?? null,
      tool_calls: toolCalls,
    })
  }

  private add(step: NewStep): void {
    this.steps.push({ ...step, at_ms: this.nowMs() } as TraceStep)
  }

  private nowMs(): number {
    return Math.round((this.clock.monotonic() - this.beganAtMs) * 10) / 10
  }
}

function toReference({ backend, model }: ModelRoute): { provider: string; model: string } {
  return { provider: backend.name, model }
}

function toFailure(thrown: unknown): { reason: string; message: string } {
  const reported = toCallerError(thrown)
  const message = reported instanceof ServiceError ? reported.message : 'The request was stopped.'
  return { reason: thrown instanceof BackendFailure ? nameFailure(thrown) : 'stopped', message }
}
