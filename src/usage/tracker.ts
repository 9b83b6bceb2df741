/**
 * Tracks model calls' usage: reserves tokens before each request to a provider, records the used tokens, and
 * writes the records in batches.
 */

import type { BoundViolations } from '../budgets/bound-violations.ts'
import type { SpentBefore } from '../budgets/dependencies.ts'
import type { BudgetEnforcer, Promptlike, Reservation, Spender } from '../budgets/enforcer.ts'
import {
  type AnswerBytes,
  type AnswerEnd,
  type AnswerLimit,
  countAnswer,
  countFailure,
  isCount,
  limitAnswer,
  listViolations,
  reservedTokens,
  type Spent,
  toSpent,
  type UsedTokens,
} from '../budgets/grants.ts'
import type { ModelMeters } from '../budgets/model-meters.ts'
import type { Clock } from '../lib/clock.ts'
import { ServiceError, toServiceError } from '../lib/errors.ts'
import { newId } from '../lib/ids.ts'
import { within } from '../lib/timeout.ts'
import { CallCost, toUsd } from '../prices/call-cost.ts'
import type { PriceBook } from '../prices/lookup.ts'
import type { PriceInForce } from '../prices/rates.ts'
import type { Usage } from '../providers/chat-api.ts'
import type { FailedCall } from '../providers/failures.ts'
import type { ChatBackend, Metering } from '../providers/provider.ts'
import type { EndedCall, Metrics } from '../telemetry/metrics.ts'
import { createCallIds } from './call-ids.ts'
import type { Dependencies } from './dependencies.ts'
import { countEvents, estimatePromptTokens, estimateTokens } from './estimate.ts'
import { MissingPrices } from './missing-prices.ts'
import { createUsageRecorder } from './recorder.ts'
import { type FailedAttempt, MAX_FAILED_ATTEMPTS } from './schema.ts'
import { sumSpent } from './spent-before.ts'
import type { UsageCallRow } from './store.ts'

/** Milliseconds that the server waits at shutdown for aborted calls to record their usage. */
const LAST_RECORDS_MS = 1_000

export interface UsageTracker extends SpentBefore {
  begin(call: CallStart): UsageRecord
  /** Resolves when every call that has ended so far is in the database. */
  flush(): Promise<void>
  /** Drops cached budgets; call this after every change to budgets. */
  invalidate(): void
  /** Waits for calls that are ending, then flushes. */
  close(): Promise<void>
}

export function createUsageTracker(
  deps: Pick<
    Dependencies,
    'db' | 'clock' | 'random' | 'log' | 'metrics' | 'budgets' | 'prices' | 'meters' | 'violations'
  >,
): UsageTracker {
  const { clock, log, metrics, budgets } = deps
  const recorder = createUsageRecorder(deps)
  const missing = new MissingPrices({ clock, log, outbox: budgets.outbox })
  const nextId = createCallIds(newId('', 6, deps.random))
  let open = 0
  let onLastEnd: (() => void) | undefined

  function begin(call: CallStart): UsageRecord {
    open += 1
    return new UsageRecord(call, {
      clock,
      metrics,
      newId: nextId,
      budgets,
      prices: deps.prices,
      meters: deps.meters,
      violations: deps.violations,
      reportMissingPrice: (provider, model) => missing.report(provider, model),
      save(row, price) {
        if (row !== undefined) recorder.record(row, price)
        open -= 1
        if (open === 0) onLastEnd?.()
      },
    })
  }

  return {
    begin,
    async flush() {
      await Promise.all([recorder.flush(), missing.flush()])
    },
    invalidate: () => budgets.invalidate(),
    sumSpent,
    async close() {
      if (open > 0) {
        const lastEnd = Promise.withResolvers<void>()
        onLastEnd = lastEnd.resolve
        await within(LAST_RECORDS_MS, lastEnd.promise, () => {})
      }
      await missing.flush()
      await recorder.flush().catch((error) => log.error({ err: error }, 'could not write usage at shutdown'))
    },
  }
}

interface CallStart extends Spender {
  readonly requestId: string
  readonly operation: EndedCall['operation']
  readonly provider: string
  /** The provider's own model id. */
  readonly model: string
  readonly isStreamed: boolean
  /** The client's request, used only to estimate tokens. */
  readonly request: Promptlike
}

type MeteredBackend = Pick<ChatBackend, 'name' | 'metering'>

interface Called {
  readonly provider: string
  readonly model: string
  /** The setting of the provider. */
  readonly metering: Metering | undefined
}

interface RecordOptions {
  readonly clock: Pick<Clock, 'now' | 'monotonic'>
  readonly metrics: Metrics
  readonly newId: (startedAtMs: number) => string
  readonly prices: PriceBook
  /** Called for each request to a model without a price. */
  readonly reportMissingPrice: (provider: string, model: string) => void
  readonly budgets: Pick<BudgetEnforcer, 'reserve' | 'book'>
  readonly meters: Pick<ModelMeters, 'find'>
  readonly violations: Pick<BoundViolations, 'report'>
  /** Records the row, which is undefined if no provider was called. */
  readonly save: (row: UsageCallRow | undefined, price?: PriceInForce) => void
}

/** The parts of a model's answer that are used to estimate its tokens. */
interface Said extends AnswerBytes {
  /** Undefined for a stream, whose events are counted instead. */
  readonly text: string | null | undefined
  /** Whether the model produced more after the provider had reported the usage. */
  readonly isUsageEarly: boolean
}

const nothingSaid: Said = { text: undefined, textBytes: 0, mediaBytes: 0, isUsageEarly: false }

/** Records a call's usage. Disposing it before `end` records a client disconnect. */
export class UsageRecord implements AsyncDisposable {
  isEnded = false
  readonly cost: CallCost
  private readonly start: CallStart
  private readonly options: RecordOptions
  private readonly startedAtMs: number
  private readonly startedTick: number
  private provider: string
  private model: string
  /** The model of the current request; differs from `model` until it answers. */
  private called: Called | undefined
  private firstByteTick: number | undefined
  private promptTokens = 0
  private completionTokens = 0
  private isEstimated = false
  private modelCalls = 0
  private attempts = 0
  private readonly failedAttempts: FailedAttempt[] = []
  /** Number of events forwarded since the last counted model call. */
  private events = 0
  /** The tokens reserved for the current request to a provider. */
  private reservation: Reservation | undefined
  private settling: Promise<void> = Promise.resolve()
  private isRejected = false
  /** Tokens reserved and used in all budgets; undefined if no budget applies. */
  budget: { reserved: number; settled: number } | undefined
  private hasBudget = false
  /** True if a budget can end an answer before it has the output tokens that the request asks for. */
  isLimited = false

  constructor(start: CallStart, options: RecordOptions) {
    this.start = start
    this.options = options
    this.provider = start.provider
    this.model = start.model
    this.cost = new CallCost(options.prices)
    this.startedAtMs = options.clock.now()
    this.startedTick = options.clock.monotonic()
  }

  /** Nano-dollars; undefined if no provider was called or a model has no price. */
  get spent(): number | undefined {
    return this.isRejected || this.cost.isUnpriced ? undefined : Number(this.cost.total)
  }

  /** Sets the provider and model that responded; they differ from the first choice after a fallback. */
  answering(provider: string, model = this.model): void {
    this.provider = provider
    this.model = model
  }

  /** Finds the price of the next request, which goes to this model. */
  calling({ name: provider, metering }: MeteredBackend, model: string, request: Promptlike): void {
    this.called = { provider, model, metering }
    this.cost.begin(provider, model, request, this.options.clock.now())
  }

  /**
   * Reserves the maximum that one request to the model passed to `calling` can use, and returns the limit of
   * its answer. Returns undefined if no budget applies. Call `used` or `failCall` afterwards.
   * @throws ServiceError if a budget does not admit the request.
   */
  async reserve(request: Promptlike, signal?: AbortSignal): Promise<AnswerLimit | undefined> {
    try {
      const model = { price: this.cost.price, metering: this.findMetering() }
      this.reservation = await this.options.budgets.reserve(this.start, request, model, signal)
      this.isRejected = false
    } catch (thrown) {
      this.isRejected = this.attempts === 0
      if (toServiceError(thrown).reason === 'model_not_priced') this.reportMissingPrice()
      throw thrown
    }
    this.attempts += 1
    this.hasBudget ||= this.reservation !== undefined
    if (this.reservation === undefined) return undefined
    const { grant, isLimited } = this.reservation
    this.budget ??= { reserved: 0, settled: 0 }
    this.budget.reserved += reservedTokens(grant)
    // A limit in bytes can end an answer before it has the tokens that the request asks for.
    this.isLimited ||= isLimited || grant.metering === 'bytes'
    return limitAnswer(grant)
  }

  private findMetering(): Metering {
    const { called } = this
    if (called === undefined) return 'reported'
    const isMetered = this.options.meters.find(called.provider, called.model) !== undefined
    return isMetered ? 'bytes' : (called.metering ?? 'reported')
  }

  addFailedAttempt(failed: FailedAttempt): void {
    if (this.failedAttempts.length < MAX_FAILED_ATTEMPTS) this.failedAttempts.push(failed)
  }

  /** Settles the tokens of a request to a provider that failed before the answer began. */
  failCall(failure: FailedCall): void {
    if (this.reservation === undefined) return
    const used = countFailure(this.reservation.grant, failure)
    if (failure !== 'unused') this.modelCalls += 1
    this.settle(this.reservation, used)
  }

  /**
   * Adds a model call. If the provider reports no `usage`, or reports it too early, estimates the tokens from
   * `said`.
   */
  used(usage: Usage | undefined, said = nothingSaid, end: AnswerEnd = 'whole'): void {
    this.modelCalls += 1
    this.cost.rounds += 1
    const { reservation } = this
    const reported = said.isUsageEarly ? undefined : usage
    if (reservation !== undefined) {
      for (const violation of listViolations(reservation.grant, reported, said))
        if (this.called !== undefined) this.options.violations.report({ ...this.called, ...violation })
      this.settle(reservation, countAnswer(reservation.grant, reported, said, end), reported)
    } else this.addUnreserved(toTokens(usage) ?? this.estimate(said.text), usage)
    this.events = 0
  }

  private addUnreserved(used: UsedTokens, usage: Usage | undefined): void {
    const spent = toSpent(used, this.add(used, usage), undefined)
    const booking = this.options.budgets.book(this.start, spent, this.startedAtMs)
    if (booking !== undefined) this.settleAfter(booking)
  }

  private estimate(text: string | null | undefined): UsedTokens {
    return {
      prompt: estimatePromptTokens(this.start.request),
      completion: text === undefined ? this.events : estimateTokens(text?.length ?? 0),
      isEstimated: true,
    }
  }

  /** Returns the cost of the request. */
  private add({ prompt, completion, isEstimated }: UsedTokens, usage?: Usage): bigint {
    const cost = this.cost.add({ prompt, completion }, isEstimated ? undefined : usage)
    if (this.cost.price === undefined && prompt + completion > 0) this.reportMissingPrice()
    this.promptTokens += prompt
    this.completionTokens += completion
    this.isEstimated ||= isEstimated
    return cost
  }

  private reportMissingPrice(): void {
    const { called } = this
    if (called !== undefined) this.options.reportMissingPrice(called.provider, called.model)
  }

  private settle(reservation: Reservation, used: UsedTokens, usage?: Usage): void {
    const spent: Spent = toSpent(used, this.add(used, usage), reservation.grant)
    if (this.budget !== undefined) this.budget.settled += used.prompt + used.completion
    this.reservation = undefined
    this.settleAfter(reservation.settle(spent))
  }

  private settleAfter(settled: Promise<void>): void {
    this.settling = Promise.all([this.settling, settled]).then(() => {})
  }

  /** Counts the events sent to the client. */
  sent(run: Uint8Array): void {
    this.firstByteTick ??= this.options.clock.monotonic()
    this.events += countEvents(run)
  }

  fail(thrown: unknown, signal: AbortSignal): Promise<void> {
    return this.end(statusOf(thrown, signal))
  }

  /** Ends the record; later calls have no effect. `status` is `ok`, `left` or the failure's reason. */
  async end(status: string): Promise<void> {
    if (this.isEnded) return
    this.isEnded = true
    if (this.isRejected) return this.options.save(undefined)
    this.failCall('unknown')
    // Counts the prompt, because the model has read it even if the client disconnects during the first model
    // call.
    if (status === 'left' && this.modelCalls === 0 && !this.hasBudget) this.used(undefined)
    this.observe(status)
    this.options.save(this.toRow(status), this.cost.price)
    await this.settling
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end('left')
  }

  private observe(status: string): void {
    const { start, options, startedTick, firstByteTick } = this
    options.metrics.models.of(this.provider, this.model).ended({
      operation: start.operation,
      outcome: status === 'ok' || status === 'left' ? status : 'failed',
      durationMs: options.clock.monotonic() - startedTick,
      firstByteMs: firstByteTick === undefined ? undefined : firstByteTick - startedTick,
      inputTokens: this.promptTokens,
      outputTokens: this.completionTokens,
      costUsd: toUsd(this.cost.total),
      isUnpriced: this.cost.isUnpriced,
    })
  }

  private toRow(status: string): UsageCallRow {
    const { start, options, startedAtMs, startedTick, firstByteTick, cost } = this
    const firstByteMs = firstByteTick === undefined ? null : Math.round(firstByteTick - startedTick)
    return {
      id: options.newId(startedAtMs),
      request_id: start.requestId,
      parent_key_id: start.tenantId,
      agent_id: start.agentId ?? '',
      model: this.model,
      provider: this.provider,
      status,
      prompt_tokens: this.promptTokens,
      completion_tokens: this.completionTokens,
      is_estimated: this.isEstimated ? 1 : 0,
      is_streamed: start.isStreamed ? 1 : 0,
      latency_ms: Math.round(options.clock.monotonic() - startedTick),
      first_byte_ms: firstByteMs,
      created_at: Math.floor(startedAtMs / 1000),
      attempts: this.attempts,
      failed_attempts: this.failedAttempts.length === 0 ? null : JSON.stringify(this.failedAttempts),
      cost: this.spent ?? null,
      price_id: cost.price?.id ?? null,
      rounds: cost.rounds,
      cached_tokens: cost.tokens.cached,
      cache_write_tokens: cost.tokens.cacheWrite,
      reasoning_tokens: cost.tokens.reasoning,
      audio_tokens: cost.tokens.audio,
      image_tokens: cost.tokens.image,
    }
  }
}

function statusOf(thrown: unknown, signal: AbortSignal): string {
  if (!signal.aborted) return toServiceError(thrown).reason
  const { reason } = signal
  const isShutdown = reason instanceof ServiceError && reason.reason === 'service_unavailable'
  return isShutdown ? reason.reason : 'left'
}

function toTokens(usage: Usage | undefined): UsedTokens | undefined {
  const { prompt_tokens: prompt, completion_tokens: completion } = usage ?? {}
  return isCount(prompt) && isCount(completion) ? { prompt, completion, isEstimated: false } : undefined
}
