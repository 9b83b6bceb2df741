/** Asks the models of one call in turn: again where that may help, the next where it does not, within one budget. */

import { LRUCache } from 'lru-cache'
import type { Config } from '../config/config.ts'
import type { Clock } from '../lib/clock.ts'
import type { Random } from '../lib/ids.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { ModelMeter } from '../telemetry/model-metrics.ts'
import type { TraceSpan } from '../telemetry/tracing.ts'
import { type BeginCall, failCall } from './call-span.ts'
import { isCallersMistake, isRetryable, nameFailure } from './failures.ts'
import { BackendFailure, type ModelRoute } from './provider.ts'

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
      this.meter.fallbacks.inc()
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
    this.meter.attempts.inc()
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

/** Follows a caller's signal and adds two clocks of its own; `release` must be called at the end. */
export class Deadline implements Disposable {
  private readonly controller = new AbortController()
  private readonly caller: AbortSignal
  private readonly totalMs: number
  private timer: NodeJS.Timeout
  private readonly leave = () => this.controller.abort(this.caller.reason)

  /** `firstEventMs` is over all attempts; the total counts from the first event. Decision: 7 (Times). */
  constructor(caller: AbortSignal, firstEventMs: number, totalMs: number) {
    this.caller = caller
    this.totalMs = totalMs
    this.timer = this.startTimer(firstEventMs)
    if (caller.aborted) this.leave()
    else caller.addEventListener('abort', this.leave)
  }

  get signal(): AbortSignal {
    return this.controller.signal
  }

  /** The backend has begun to answer: from here on only the total counts. */
  begin(): void {
    clearTimeout(this.timer)
    this.timer = this.startTimer(this.totalMs)
  }

  release(): void {
    clearTimeout(this.timer)
    this.caller.removeEventListener('abort', this.leave)
  }

  [Symbol.dispose](): void {
    this.release()
  }

  private startTimer(afterMs: number): NodeJS.Timeout {
    const expire = () =>
      this.controller.abort(new BackendFailure('timeout', `no answer within ${afterMs} ms`))
    return setTimeout(expire, afterMs)
  }
}

/** How a call may go: as ever, as the one that tries whether the model is back, or not at all where there is another model. */
export type Pass = 'free' | 'probe' | 'resting'

/** What a call says of its model: a caller's mistake, a 429 and a caller who leaves say nothing. Decision: 7 (Breaker). */
export type Verdict = 'answered' | 'failed' | 'nothing'

/** More models than any installation has; ids that pass through unlisted could be without end. */
const MOST_MODELS = 1_000

/** The window moves on in this many steps. */
const SLOTS = 10

/** The breakers of a service, one for each provider and model. */
export class Breakers {
  private readonly known = new LRUCache<string, KnownBreaker>({ max: MOST_MODELS })
  private readonly limits: Config['breaker']
  private readonly clock: Pick<Clock, 'monotonic'>

  constructor(limits: Config['breaker'], clock: Pick<Clock, 'monotonic'>) {
    this.limits = limits
    this.clock = clock
  }

  /** The models that were asked so far, and whether each rests. */
  list(): { readonly provider: string; readonly model: string; readonly isResting: boolean }[] {
    return [...this.known.values()].map(({ provider, model, breaker }) => ({
      ...{ provider, model },
      isResting: breaker.isResting,
    }))
  }

  of({ backend, model }: ModelRoute): Breaker {
    const key = `${backend.name}/${model}`
    const known = this.known.get(key)
    if (known !== undefined) return known.breaker
    const breaker = new Breaker(this.limits, this.clock)
    this.known.set(key, { provider: backend.name, model, breaker })
    return breaker
  }
}

interface KnownBreaker {
  readonly provider: string
  readonly model: string
  readonly breaker: Breaker
}

/** Counts how the calls of one model end. Decision: 7 (Breaker). */
export class Breaker {
  private readonly limits: Config['breaker']
  private readonly clock: Pick<Clock, 'monotonic'>
  private readonly slots = Array.from({ length: SLOTS }, () => ({ step: -1, calls: 0, failures: 0 }))
  private restsUntilMs: number | undefined
  private isProbing = false

  constructor(limits: Config['breaker'], clock: Pick<Clock, 'monotonic'>) {
    this.limits = limits
    this.clock = clock
  }

  /** Whether the model rests, or has rested and was not found to be back. */
  get isResting(): boolean {
    return this.restsUntilMs !== undefined
  }

  /** How the next call may go; its end must be told to `settle`. */
  enter(): Pass {
    if (this.restsUntilMs === undefined) return 'free'
    if (this.isProbing || this.clock.monotonic() < this.restsUntilMs) return 'resting'
    this.isProbing = true
    return 'probe'
  }

  /** Counts a call that has begun to be answered, or has failed; once for each `enter`. */
  settle(pass: Pass, verdict: Verdict): void {
    if (pass === 'probe') this.endProbe(verdict)
    else if (pass === 'free' && verdict !== 'nothing') this.count(1, verdict === 'failed' ? 1 : 0)
  }

  /** A call that was counted as answered has failed after all. */
  breakOff(): void {
    if (this.restsUntilMs === undefined) this.count(0, 1)
  }

  private endProbe(verdict: Verdict): void {
    this.isProbing = false
    if (verdict === 'failed') this.rest()
    else if (verdict === 'answered') this.restsUntilMs = undefined
  }

  private count(calls: number, failures: number): void {
    const slot = this.currentSlot()
    slot.calls += calls
    slot.failures += failures
    if (failures > 0 && this.isFailing()) this.rest()
  }

  private currentSlot() {
    const step = this.currentStep()
    const slot = this.slots[step % SLOTS] as (typeof this.slots)[number]
    if (slot.step !== step) Object.assign(slot, { step, calls: 0, failures: 0 })
    return slot
  }

  private isFailing(): boolean {
    const oldest = this.currentStep() - SLOTS + 1
    const recent = this.slots.filter(({ step }) => step >= oldest)
    const calls = recent.reduce((sum, slot) => sum + slot.calls, 0)
    const failures = recent.reduce((sum, slot) => sum + slot.failures, 0)
    return this.limits.calls > 0 && calls >= this.limits.calls && failures * 2 >= calls
  }

  /** What was counted before says nothing of the model when it is back. */
  private rest(): void {
    this.restsUntilMs = this.clock.monotonic() + this.limits.restMs
    for (const slot of this.slots) slot.step = -1
  }

  private currentStep(): number {
    return Math.floor((this.clock.monotonic() * SLOTS) / this.limits.windowMs)
  }
}
