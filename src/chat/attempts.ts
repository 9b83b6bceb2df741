/** Asks the models of one call in turn: again where that may help, the next where it does not, within one budget. */
import type { Config } from '../config.ts'
import type { Clock } from '../lib/clock.ts'
import type { Random } from '../lib/random.ts'
import type { ModelRoute } from '../models/catalogue.ts'
import type { Metrics } from '../observability/metrics.ts'
import type { ModelMeter } from '../observability/model-meters.ts'
import type { TraceSpan } from '../observability/tracing.ts'
import { BackendFailure } from './backend.ts'
import type { Breaker, Breakers, Pass, Verdict } from './breaker.ts'
import { type BeginCall, failCall } from './call-span.ts'
import { isCallersMistake, isRetryable, nameFailure } from './failures.ts'

/** Pauses grow from the first to the last, in milliseconds. Security: 2.5 (retries). */
const FIRST_PAUSE_MS = 250
const LONGEST_PAUSE_MS = 4_000
/** A backend that wants to rest longer is not asked again. */
const LONGEST_RETRY_AFTER_SECONDS = 20
/** Where another model can answer, nobody waits for long. */
const LONGEST_RETRY_AFTER_WITH_FALLBACK_SECONDS = LONGEST_PAUSE_MS / 1000

export interface AttemptDeps {
  readonly config: Pick<Config, 'limits'>
  readonly clock: Pick<Clock, 'wait'>
  readonly random: Random
  readonly breakers: Breakers
  readonly metrics: Metrics
}

/** The models one call may be answered by: the first, then its fallbacks. */
export type Routes = readonly [ModelRoute, ...ModelRoute[]]

/** Asks a model once; whoever gets an answer ends the span when the answer is whole. */
type Ask<T> = (route: ModelRoute, span: TraceSpan | undefined) => Promise<T>

/** One call of a caller on its way to an answer; all its rounds share the budget. Decision: 7 (Retry). */
export class Attempts {
  /** Calls of backends so far. */
  count = 0
  private readonly deps: AttemptDeps
  private readonly routes: Routes
  private readonly beginCall: BeginCall
  private position = 0
  private isCommitted = false
  private retriesLeft: number

  constructor(deps: AttemptDeps, routes: Routes, beginCall: BeginCall = () => undefined) {
    this.deps = deps
    this.routes = routes
    this.beginCall = beginCall
    this.retriesLeft = deps.config.limits.backendAttempts - 1
  }

  /** Who is asked now, or has answered. */
  get route(): ModelRoute {
    return this.routes[this.position] as ModelRoute
  }

  /** Whether that is another than the one the call was for. */
  get isFallback(): boolean {
    return this.position > 0
  }

  /**
   * Asks until somebody has answered.
   * @throws BackendFailure the last one, when nobody has; whatever else `ask` throws, at once.
   */
  async run<T>(signal: AbortSignal, ask: Ask<T>): Promise<T> {
    for (;;) {
      const breaker = this.deps.breakers.of(this.route)
      const pass = breaker.enter()
      if (pass !== 'resting' || !this.hasFallback) {
        try {
          return await this.askRoute(breaker, pass, signal, ask)
        } catch (thrown) {
          if (signal.aborted || !this.hasFallback || !canAnotherAnswer(thrown)) throw thrown
        }
      }
      this.meter.fallbacks.add()
      this.position += 1
    }
  }

  /** The caller has been sent something: from here on nobody else can answer. Decision: 7 (Streams). */
  commit(): void {
    this.isCommitted = true
  }

  /** The answer that had begun has failed. */
  breakOff(thrown: unknown): void {
    this.countFailure(thrown)
    if (verdictOn(thrown) === 'failed') this.deps.breakers.of(this.route).breakOff()
  }

  private get meter(): ModelMeter {
    const { backend, model } = this.route
    return this.deps.metrics.models.of(backend.name, model)
  }

  private countFailure(thrown: unknown): void {
    if (!(thrown instanceof BackendFailure)) return
    this.deps.metrics.backendFailed(this.route.backend.name, nameFailure(thrown))
  }

  private get hasFallback(): boolean {
    return !this.isCommitted && this.position + 1 < this.routes.length
  }

  /** A failure counts once, however often the model was asked. */
  private async askRoute<T>(breaker: Breaker, pass: Pass, signal: AbortSignal, ask: Ask<T>): Promise<T> {
    try {
      const answer = pass === 'free' ? await this.askAgain(signal, ask) : await this.askOnce(ask)
      breaker.settle(pass, 'answered')
      return answer
    } catch (thrown) {
      breaker.settle(pass, verdictOn(thrown))
      throw thrown
    }
  }

  private async askOnce<T>(ask: Ask<T>): Promise<T> {
    this.count += 1
    this.meter.attempts.add()
    const span = this.beginCall(this.route, this.count)
    try {
      return await ask(this.route, span)
    } catch (thrown) {
      failCall(span, thrown)
      span?.end()
      this.countFailure(thrown)
      throw thrown
    }
  }

  private async askAgain<T>(signal: AbortSignal, ask: Ask<T>): Promise<T> {
    const { clock, random } = this.deps
    for (let retries = 0; ; retries++) {
      try {
        return await this.askOnce(ask)
      } catch (thrown) {
        if (signal.aborted || this.retriesLeft === 0 || !(thrown instanceof BackendFailure)) throw thrown
        const pauseMs = pauseBeforeRetry(thrown, retries, random, this.hasFallback)
        if (pauseMs === undefined) throw thrown
        this.retriesLeft -= 1
        await clock.wait(pauseMs, signal).catch(() => {})
        signal.throwIfAborted()
      }
    }
  }
}

/** Milliseconds to wait after so many retries; undefined when another makes no sense. */
function pauseBeforeRetry(
  failure: BackendFailure,
  retries: number,
  random: Random,
  hasFallback: boolean,
): number | undefined {
  if (!isRetryable(failure)) return undefined
  const { retryAfterSeconds } = failure
  if (retryAfterSeconds !== undefined) {
    const longestSeconds = hasFallback
      ? LONGEST_RETRY_AFTER_WITH_FALLBACK_SECONDS
      : LONGEST_RETRY_AFTER_SECONDS
    return retryAfterSeconds <= longestSeconds ? retryAfterSeconds * 1000 : undefined
  }
  const ceilingMs = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** retries)
  return ceilingMs * ((random(1)[0] as number) / 256)
}

/** What the caller got wrong would be wrong everywhere. */
function canAnotherAnswer(thrown: unknown): boolean {
  return thrown instanceof BackendFailure && !isCallersMistake(thrown)
}

/** Callers' mistakes, 429s and callers who leave say nothing of a model. Decision: 7 (Breaker). */
function verdictOn(thrown: unknown): Verdict {
  if (!(thrown instanceof BackendFailure)) return 'nothing'
  return isCallersMistake(thrown) || thrown.status === 429 ? 'nothing' : 'failed'
}
