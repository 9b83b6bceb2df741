/** Implements the retry policy: attempts, back-off, fallbacks, circuit breakers and deadlines. */
import { LRUCache } from 'lru-cache'
import type { Config } from '../config/config.ts'
import type { Clock } from '../lib/clock.ts'
import { type Reason, ServiceError } from '../lib/errors.ts'
import type { Random } from '../lib/ids.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { TraceSpan } from '../telemetry/tracing.ts'
import { type BeginCall, failCall } from './call-span.ts'
import { isCallersMistake, isRetryable, nameFailure } from './failures.ts'
import { BackendFailure, type ModelRoute } from './provider.ts'

const FIRST_PAUSE_MS = 250
const LONGEST_PAUSE_MS = 4_000
/** Without a fallback, calls are not retried if the provider's `Retry-After` is longer. */
const LONGEST_RETRY_AFTER_MS = 20_000

interface AttemptDeps {
  readonly config: Pick<Config, 'limits'>
  readonly clock: Pick<Clock, 'wait'>
  readonly random: Random
  readonly breakers: Breakers
  readonly metrics: Metrics
}

export type Routes = readonly [ModelRoute, ...ModelRoute[]]

type Ask<T> = (route: ModelRoute, span: TraceSpan | undefined, signal: AbortSignal) => Promise<T>

/** Makes a turn's model calls, which share one retry limit. */
export class Attempts {
  count = 0
  private readonly deps: AttemptDeps
  private readonly routes: Routes
  private readonly beginCall: BeginCall
  private position = 0
  private isCommitted = false
  private retriesLeft: number
  private readonly onSkipped: ((route: ModelRoute) => void) | undefined

  /** `onSkipped` is called for each model that gets no request because its circuit breaker is open. */
  constructor(
    deps: AttemptDeps,
    routes: Routes,
    beginCall: BeginCall,
    onSkipped?: (route: ModelRoute) => void,
  ) {
    this.deps = deps
    this.routes = routes
    this.beginCall = beginCall
    this.onSkipped = onSkipped
    this.retriesLeft = deps.config.limits.backendAttempts - 1
  }

  get route(): ModelRoute {
    return this.routes[this.position] as ModelRoute
  }

  get isFallback(): boolean {
    return this.position > 0
  }

  /**
   * Tries the models in order until one responds. Moves to the next after a provider failure, or if a budget
   * does not cover a model; skips fallbacks without a price. @throws the last attempt's BackendFailure;
   * rethrows any other error of `ask` immediately.
   */
  async run<T>(deadline: Deadline, ask: Ask<T>): Promise<T> {
    let failure: { readonly thrown: unknown } | undefined
    for (;;) {
      const breaker = this.deps.breakers.of(this.route)
      const state = breaker.enter()
      if (state !== 'open' || !this.hasFallback) {
        const share = this.hasFallback ? deadline.halve() : undefined
        try {
          const answer = await this.ask(ask, share?.signal ?? deadline.signal, state === 'closed')
          breaker.settle(state, 'answered')
          return answer
        } catch (thrown) {
          breaker.settle(state, outcomeOf(thrown))
          const isRefused = isRefusedByBudget(thrown, this.isFallback)
          if (isRefused) this.count -= 1
          if (failure === undefined || !isRefused) failure = { thrown }
          const isFinal = isRefused ? false : !(thrown instanceof BackendFailure) || isCallersMistake(thrown)
          if (deadline.signal.aborted || isFinal || !this.hasFallback) throw failure.thrown
        } finally {
          share?.release()
        }
      } else this.onSkipped?.(this.route)
      this.meter.fallbacks.inc()
      this.position += 1
    }
  }

  commit(): void {
    this.isCommitted = true
  }

  recordInterruption(thrown: unknown): void {
    this.countFailure(thrown)
    if (outcomeOf(thrown) === 'failed') this.deps.breakers.of(this.route).recordInterruption()
  }

  private get meter() {
    const { backend, model } = this.route
    return this.deps.metrics.models.of(backend.name, model)
  }

  private get hasFallback(): boolean {
    return !this.isCommitted && this.position + 1 < this.routes.length
  }

  private countFailure(thrown: unknown): void {
    if (!(thrown instanceof BackendFailure)) return
    this.deps.metrics.backendFailed(this.route.backend.name, nameFailure(thrown))
  }

  /** Calls one model; retries if `mayRetry` is true. */
  private async ask<T>(ask: Ask<T>, signal: AbortSignal, mayRetry: boolean): Promise<T> {
    for (let retries = 0; ; retries++) {
      this.count += 1
      this.meter.attempts.inc()
      const span = this.beginCall(this.route, this.count)
      try {
        return await ask(this.route, span, signal)
      } catch (thrown) {
        failCall(span, thrown)
        span?.end()
        this.countFailure(thrown)
        const isOver = !mayRetry || signal.aborted || this.retriesLeft === 0
        if (isOver || !(thrown instanceof BackendFailure)) throw thrown
        const pauseMs = this.pauseBefore(thrown, retries)
        if (pauseMs === undefined) throw thrown
        this.retriesLeft -= 1
        await this.deps.clock.wait(pauseMs, signal).catch(() => {})
        signal.throwIfAborted()
      }
    }
  }

  private pauseBefore(failure: BackendFailure, retries: number): number | undefined {
    if (!isRetryable(failure)) return undefined
    // Uses the fallback instead of retrying after a timeout, because a retry would use up the fallback's
    // time.
    if (failure.kind === 'timeout' && this.hasFallback) return undefined
    const { retryAfterSeconds } = failure
    if (retryAfterSeconds !== undefined) {
      const longestMs = this.hasFallback ? LONGEST_PAUSE_MS : LONGEST_RETRY_AFTER_MS
      return retryAfterSeconds * 1000 <= longestMs ? retryAfterSeconds * 1000 : undefined
    }
    const ceilingMs = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** retries)
    return ceilingMs * ((this.deps.random(1)[0] as number) / 256)
  }
}

/** Combines the client's signal with two timeouts; callers must call `release` when done. */
export class Deadline {
  private readonly controller = new AbortController()
  private readonly client: AbortSignal
  private readonly totalMs: number
  private timer: NodeJS.Timeout
  private readonly clock: Pick<Clock, 'monotonic'>
  private readonly firstEventEndsAtMs: number
  private readonly onDisconnect = () => this.controller.abort(this.client.reason)

  /** `firstEventMs` covers all attempts; `totalMs` starts at the first event. */
  constructor(
    clock: Pick<Clock, 'monotonic'>,
    client: AbortSignal,
    { firstEventMs, totalMs }: { readonly firstEventMs: number; readonly totalMs: number },
  ) {
    this.clock = clock
    this.client = client
    this.totalMs = totalMs
    this.firstEventEndsAtMs = clock.monotonic() + firstEventMs
    this.timer = startTimer(this.controller, firstEventMs)
    if (client.aborted) this.onDisconnect()
    else client.addEventListener('abort', this.onDisconnect)
  }

  get signal(): AbortSignal {
    return this.controller.signal
  }

  begin(): void {
    clearTimeout(this.timer)
    this.timer = startTimer(this.controller, this.totalMs)
  }

  /**
   * Limits a model to half of the time left for the first event, so that its fallback has time to respond.
   */
  halve(): TimeShare {
    const controller = new AbortController()
    const leftMs = Math.max(0, this.firstEventEndsAtMs - this.clock.monotonic())
    const timer = startTimer(controller, leftMs / 2)
    return {
      signal: AbortSignal.any([this.signal, controller.signal]),
      release: () => clearTimeout(timer),
    }
  }

  release(): void {
    clearTimeout(this.timer)
    this.client.removeEventListener('abort', this.onDisconnect)
  }
}

/** Limits how long one model may take to respond, or to send a stream's first event, within the deadline. */
interface TimeShare {
  readonly signal: AbortSignal
  /** Removes the time limit; the signal still follows the deadline. */
  release(): void
}

const notPriced: ReadonlySet<Reason> = new Set(['model_not_priced', 'content_not_priced'])

/** Returns true if a budget rejected the call and a fallback may still respond. */
function isRefusedByBudget(thrown: unknown, isFallback: boolean): boolean {
  if (!(thrown instanceof ServiceError)) return false
  return thrown.reason === 'insufficient_quota' || (isFallback && notPriced.has(thrown.reason))
}

function startTimer(controller: AbortController, afterMs: number): NodeJS.Timeout {
  const expire = () => controller.abort(new BackendFailure('timeout', `no response within ${afterMs} ms`))
  return setTimeout(expire, afterMs)
}

/** A half-open breaker allows one call. An open breaker allows none, unless no other model can respond. */
type BreakerState = 'closed' | 'half-open' | 'open'

/** Invalid requests, 429 responses and disconnected clients are inconclusive. */
type Outcome = 'answered' | 'failed' | 'inconclusive'

function outcomeOf(thrown: unknown): Outcome {
  if (!(thrown instanceof BackendFailure)) return 'inconclusive'
  return isCallersMistake(thrown) || thrown.status === 429 ? 'inconclusive' : 'failed'
}

/** Limits the number of breakers, because clients may send any model id. */
const MOST_MODELS = 1_000

/** Keeps one breaker per provider and model; it opens when at least half of the recent calls have failed. */
export class Breakers {
  private readonly known = new LRUCache<string, Breaker>({ max: MOST_MODELS })
  private readonly limits: Config['breaker']
  private readonly clock: Pick<Clock, 'monotonic'>

  constructor(limits: Config['breaker'], clock: Pick<Clock, 'monotonic'>) {
    this.limits = limits
    this.clock = clock
  }

  list(): Breaker[] {
    return [...this.known.values()]
  }

  of({ backend, model }: ModelRoute): Breaker {
    const key = `${backend.name}/${model}`
    let breaker = this.known.get(key)
    if (breaker === undefined) {
      breaker = new Breaker(backend.name, model, this.limits, this.clock)
      this.known.set(key, breaker)
    }
    return breaker
  }
}

const WINDOW_STEPS = 10

class Breaker {
  readonly provider: string
  readonly model: string
  private readonly limits: Config['breaker']
  private readonly clock: Pick<Clock, 'monotonic'>
  private readonly window = Array.from({ length: WINDOW_STEPS }, () => ({ step: -1, calls: 0, failures: 0 }))
  private halfOpensAtMs: number | undefined
  private isProbing = false

  constructor(provider: string, model: string, limits: Config['breaker'], clock: Pick<Clock, 'monotonic'>) {
    this.provider = provider
    this.model = model
    this.limits = limits
    this.clock = clock
  }

  get isOpen(): boolean {
    return this.halfOpensAtMs !== undefined
  }

  /** Returns the state for the next call; callers must pass the call's outcome to `settle`. */
  enter(): BreakerState {
    if (this.halfOpensAtMs === undefined) return 'closed'
    if (this.isProbing || this.clock.monotonic() < this.halfOpensAtMs) return 'open'
    this.isProbing = true
    return 'half-open'
  }

  /** Records the outcome of a call; call it once for each `enter`. */
  settle(state: BreakerState, outcome: Outcome): void {
    if (state === 'closed' && outcome !== 'inconclusive') this.count(1, outcome === 'failed' ? 1 : 0)
    if (state !== 'half-open') return
    this.isProbing = false
    if (outcome === 'failed') this.open()
    else if (outcome === 'answered') this.halfOpensAtMs = undefined
  }

  /** Records that a call failed after it was counted as answered. */
  recordInterruption(): void {
    if (!this.isOpen) this.count(0, 1)
  }

  private count(calls: number, failures: number): void {
    const step = Math.floor((this.clock.monotonic() * WINDOW_STEPS) / this.limits.windowMs)
    const current = this.window[step % WINDOW_STEPS] as (typeof this.window)[number]
    if (current.step !== step) Object.assign(current, { step, calls: 0, failures: 0 })
    current.calls += calls
    current.failures += failures
    if (failures > 0 && this.isFailing(step)) this.open()
  }

  private isFailing(step: number): boolean {
    const recent = this.window.filter((each) => each.step > step - WINDOW_STEPS)
    const calls = recent.reduce((sum, each) => sum + each.calls, 0)
    const failures = recent.reduce((sum, each) => sum + each.failures, 0)
    return this.limits.calls > 0 && calls >= this.limits.calls && failures * 2 >= calls
  }

  /** Clears the window, because earlier calls do not predict how the model behaves after the pause. */
  private open(): void {
    this.halfOpensAtMs = this.clock.monotonic() + this.limits.restMs
    for (const each of this.window) each.step = -1
  }
}
