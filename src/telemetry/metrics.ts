/**
 * Defines the metrics that a service updates. Each service has a separate registry, so that one process can
 * run several services.
 */
import { Counter, Gauge, Histogram, Registry } from 'prom-client'
import type { Reason } from '../lib/errors.ts'
import { ConversationMetrics } from './conversation-metrics.ts'
import { type Distribution, LabelledHistogram } from './histogram.ts'

const methods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])

/** Bucket bounds in seconds, from cached responses to one-hour uploads. */
const requestBuckets = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600,
]
const jobBuckets = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800]

export type Limit = 'requests' | 'authentication' | 'streams'

/** `stopped`: another process has taken over the job, its upload was deleted, or the server is stopping. */
export type JobResult = 'done' | 'failed' | 'stopped'

type BudgetRefusal = Extract<Reason, 'insufficient_quota' | 'model_not_priced' | 'content_not_priced'>

export class Metrics {
  readonly registry = new Registry()
  readonly models: ModelMetrics
  readonly conversations: ConversationMetrics
  private readonly registers = [this.registry]
  private readonly requestDuration = new LabelledHistogram({
    name: 'parley_http_request_duration_seconds',
    help: 'Time from the request headers to the end of the response, in seconds.',
    labelNames: ['operation', 'method', 'status'],
    buckets: requestBuckets,
    registers: this.registers,
  })
  /**
   * Durations by operation, method and first digit of the status; the digit is 0 if there was no response.
   */
  private readonly requestDurations = new Map<string, Map<string, Distribution[]>>()
  private readonly failures = new Counter({
    name: 'parley_request_failures_total',
    help: 'Rejected or failed calls by error code.',
    labelNames: ['reason'],
    registers: this.registers,
  })
  private readonly limited = new Counter({
    name: 'parley_limited_total',
    help: 'Calls rejected by a limit.',
    labelNames: ['limit'],
    registers: this.registers,
  })
  private readonly budgetRefusals = new Counter({
    name: 'parley_budget_refused_total',
    help: 'Calls rejected by a budget, by its scope.',
    labelNames: ['scope', 'reason'],
    registers: this.registers,
  })
  private readonly boundViolations = new Counter({
    name: 'parley_budget_bound_violations_total',
    help: 'Answers of models that exceeded the bound of a budget, by the kind of bound.',
    labelNames: ['provider', 'model', 'kind'],
    registers: this.registers,
  })
  readonly budgetWait = new Histogram({
    name: 'parley_budget_wait_seconds',
    help: 'Time that calls spent waiting for the budget check, in seconds.',
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
    registers: this.registers,
  })
  readonly openStreams = new Gauge({
    name: 'parley_streams_open',
    help: 'Open event streams: model responses and artifact events.',
    registers: this.registers,
  })
  private readonly backendErrors = new Counter({
    name: 'parley_backend_errors_total',
    help: 'Failed provider calls, counted per attempt.',
    labelNames: ['provider', 'reason'],
    registers: this.registers,
  })
  readonly uploads = {
    created: new Counter({
      name: 'parley_uploads_created_total',
      help: 'Uploads created.',
      registers: this.registers,
    }),
    completed: new Counter({
      name: 'parley_uploads_completed_total',
      help: 'Uploads whose last byte was received.',
      registers: this.registers,
    }),
    receivedBytes: new Counter({
      name: 'parley_upload_received_bytes_total',
      help: 'Upload bytes written to storage.',
      registers: this.registers,
    }),
  }
  private readonly failedUploads = new Counter({
    name: 'parley_uploads_failed_total',
    help: 'Uploads that failed because of a checksum mismatch, dangerous content or expiry.',
    labelNames: ['reason'],
    registers: this.registers,
  })
  private readonly runningJobs = new Gauge({
    name: 'parley_jobs_running',
    help: 'Jobs running in this process.',
    labelNames: ['kind'],
    registers: this.registers,
  })
  private readonly jobDuration = new Histogram({
    name: 'parley_job_duration_seconds',
    help: 'Duration of one attempt at a job, in seconds.',
    labelNames: ['kind', 'result'],
    buckets: jobBuckets,
    registers: this.registers,
  })
  private readonly hooks = new Counter({
    name: 'parley_hooks_total',
    help: 'Completed calls to onUploadComplete and onConversionEnd.',
    labelNames: ['result'],
    registers: this.registers,
  })

  constructor(isListed: IsListed) {
    this.models = new ModelMetrics(this.registry, isListed)
    this.conversations = new ConversationMetrics(this.registry)
  }

  /**
   * `operation` is a name from the list of operations; `status` is undefined if the client disconnected
   * before the response.
   */
  requestEnded(operation: string, method: string, status: number | undefined, durationMs: number): void {
    const knownMethod = methods.has(method) ? method : OTHER
    const byMethod = getOrCreate(this.requestDurations, operation, () => new Map())
    const byStatus = getOrCreate(byMethod, knownMethod, () => [])
    const statusClass = status === undefined ? 0 : Math.min(Math.floor(status / 100), 5)
    byStatus[statusClass] ??= this.requestDuration.add({
      operation,
      method: knownMethod,
      status: statusClass === 0 ? 'left' : `${statusClass}xx`,
    })
    byStatus[statusClass].observe(durationMs / 1000)
  }

  callFailed(reason: Reason): void {
    this.failures.inc({ reason })
  }

  budgetRefused(scope: string, reason: BudgetRefusal | 'budget_reserved'): void {
    this.budgetRefusals.inc({ scope, reason })
  }

  /** `kind` must come from a fixed set, because each distinct value creates a time series. */
  boundViolated(provider: string, model: string, kind: string): void {
    this.boundViolations.inc({ provider, model: this.models.nameOf(provider, model), kind })
  }

  callLimited(limit: Limit): void {
    this.limited.inc({ limit })
  }

  /** `reason` must come from a fixed set, because each distinct value creates a time series. */
  backendFailed(provider: string, reason: string): void {
    this.backendErrors.inc({ provider, reason })
  }

  uploadFailed(reason: 'checksum' | 'dangerous' | 'expired', count = 1): void {
    this.failedUploads.inc({ reason }, count)
  }

  /** Counts a job attempt as running until the returned function is called. */
  jobBegins(kind: 'convert' | 'hook' | 'converted', nowMs: () => number): (result: JobResult) => void {
    const startedMs = nowMs()
    this.runningJobs.inc({ kind })
    return (result) => {
      this.runningJobs.dec({ kind })
      this.jobDuration.observe({ kind, result }, (nowMs() - startedMs) / 1000)
      if (kind !== 'convert' && result !== 'stopped')
        this.hooks.inc({ result: result === 'done' ? 'delivered' : 'failed' })
    }
  }
}

export const OTHER = 'other'

export interface EndedCall {
  readonly operation: 'chat' | 'embeddings'
  /** `left`: the client disconnected, which is not an error. */
  readonly outcome: 'ok' | 'left' | 'failed'
  readonly durationMs: number
  /** Undefined if nothing was streamed. */
  readonly firstByteMs: number | undefined
  readonly inputTokens: number
  readonly outputTokens: number
  readonly costUsd: number
  /** Whether the call used tokens without a price. */
  readonly isUnpriced: boolean
}

export type IsListed = (provider: string, model: string) => boolean

const labelNames = ['provider', 'model']
/** Bucket bounds in seconds, for complete responses and for the first token. */
const buckets = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 80, 160, 320, 640]

export interface ModelMeter {
  readonly attempts: PendingCount
  readonly fallbacks: PendingCount
  ended(call: EndedCall): void
}

/** Sums increments in memory until the counter is read, because prom-client's label lookup is slow. */
class PendingCount {
  private readonly counter: Counter.Internal
  private pending = 0

  constructor(counter: Counter.Internal, pending: PendingCount[]) {
    this.counter = counter
    // Starts at 0, because `rate()` would otherwise miss the first increment.
    counter.inc(0)
    pending.push(this)
  }

  inc(by = 1): void {
    this.pending += by
  }

  flush(): void {
    if (this.pending === 0) return
    this.counter.inc(this.pending)
    this.pending = 0
  }
}

/**
 * Metrics for each model. Models that no provider lists share one label value, which limits the number of
 * time series.
 */
export class ModelMetrics {
  private readonly isListed: IsListed
  private readonly instruments: ReturnType<typeof createInstruments>
  private readonly known = new Map<string, Map<string, ModelMeter>>()

  constructor(registry: Registry, isListed: IsListed) {
    this.isListed = isListed
    this.instruments = createInstruments(registry)
  }

  /** Returns the metrics of a provider's model; all models that the provider does not list share one. */
  of(provider: string, model: string): ModelMeter {
    return this.known.get(provider)?.get(model) ?? this.find(provider, this.nameOf(provider, model))
  }

  nameOf(provider: string, model: string): string {
    return this.isListed(provider, model) ? model : OTHER
  }

  private find(provider: string, name: string): ModelMeter {
    const ofProvider = this.known.get(provider) ?? new Map<string, ModelMeter>()
    this.known.set(provider, ofProvider)
    const meter = ofProvider.get(name) ?? this.create(provider, name)
    ofProvider.set(name, meter)
    return meter
  }

  private create(provider: string, model: string): ModelMeter {
    const { attempts, fallbacks, tokens, cost, unpriced, firstToken, duration, pending } = this.instruments
    const usd = new PendingCount(cost.labels(provider, model), pending.cost)
    const unpricedCalls = new PendingCount(unpriced.labels(provider, model), pending.unpriced)
    const input = new PendingCount(tokens.labels(provider, model, 'input'), pending.tokens)
    const output = new PendingCount(tokens.labels(provider, model, 'output'), pending.tokens)
    const durations: Record<EndedCall['operation'], Partial<Record<EndedCall['outcome'], Distribution>>> = {
      chat: {},
      embeddings: {},
    }
    let firstTokens: Distribution | undefined
    const meter = {
      attempts: new PendingCount(attempts.labels(provider, model), pending.attempts),
      fallbacks: new PendingCount(fallbacks.labels(provider, model), pending.fallbacks),
      ended(call: EndedCall) {
        const { operation, outcome, durationMs, firstByteMs } = call
        input.inc(call.inputTokens)
        output.inc(call.outputTokens)
        usd.inc(call.costUsd)
        if (call.isUnpriced) unpricedCalls.inc()
        const byOutcome = durations[operation]
        byOutcome[outcome] ??= duration[operation].add({ provider, model, outcome })
        byOutcome[outcome].observe(durationMs / 1000)
        if (firstByteMs === undefined) return
        firstTokens ??= firstToken.add({ provider, model })
        firstTokens.observe(firstByteMs / 1000)
      },
    }
    return meter
  }
}

function createInstruments(registry: Registry) {
  const registers = [registry]
  const pending = { tokens: [], attempts: [], fallbacks: [], cost: [], unpriced: [] } as Record<
    'tokens' | 'attempts' | 'fallbacks' | 'cost' | 'unpriced',
    PendingCount[]
  >
  const flushing = (name: keyof typeof pending) => () => {
    for (const count of pending[name]) count.flush()
  }
  return {
    pending,
    duration: {
      chat: new LabelledHistogram({
        name: 'parley_chat_duration_seconds',
        help: 'Time from accepting a chat to its end, including all model calls and attempts, in seconds.',
        labelNames: [...labelNames, 'outcome'],
        buckets,
        registers,
      }),
      embeddings: new LabelledHistogram({
        name: 'parley_embeddings_duration_seconds',
        help: 'Time from accepting an embeddings request to its end, in seconds.',
        labelNames: [...labelNames, 'outcome'],
        buckets,
        registers,
      }),
    },
    firstToken: new LabelledHistogram({
      name: 'parley_chat_first_token_seconds',
      help: 'Time from accepting a streamed chat to the first bytes of its response, in seconds.',
      labelNames,
      buckets,
      registers,
    }),
    tokens: new Counter({
      name: 'parley_tokens_total',
      help: 'Tokens read (input) and written (output) by models; estimated if the provider does not report them.',
      labelNames: [...labelNames, 'direction'],
      registers,
      collect: flushing('tokens'),
    }),
    cost: new Counter({
      name: 'parley_cost_usd_total',
      help: 'Cost of model calls with a price, in US dollars.',
      labelNames,
      registers,
      collect: flushing('cost'),
    }),
    unpriced: new Counter({
      name: 'parley_unpriced_calls_total',
      help: 'Calls that used tokens from a model without a price.',
      labelNames,
      registers,
      collect: flushing('unpriced'),
    }),
    attempts: new Counter({
      name: 'parley_backend_attempts_total',
      help: 'Provider calls, including retries and fallbacks.',
      labelNames,
      registers,
      collect: flushing('attempts'),
    }),
    fallbacks: new Counter({
      name: 'parley_backend_fallbacks_total',
      help: 'Calls that fell back to another model because this model failed or its breaker was open.',
      labelNames,
      registers,
      collect: flushing('fallbacks'),
    }),
  }
}

function getOrCreate<V>(map: Map<string, V>, key: string, create: () => V): V {
  let value = map.get(key)
  if (value === undefined) {
    value = create()
    map.set(key, value)
  }
  return value
}
