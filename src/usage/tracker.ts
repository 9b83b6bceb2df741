/**
 * Tracks model calls' usage: reserves tokens before a call, records the used tokens, and writes the records
 * in batches.
 */
import type { Clock } from '../lib/clock.ts'
import { ServiceError, toServiceError } from '../lib/errors.ts'
import { newId } from '../lib/ids.ts'
import { within } from '../lib/timeout.ts'
import type { Usage } from '../providers/chat-api.ts'
import type { EndedCall, Metrics } from '../telemetry/metrics.ts'
import { createBudgetEnforcer } from './budget-enforcer.ts'
import type { Dependencies } from './dependencies.ts'
import { estimateCallTokens, estimatePromptTokens, estimateTokens, type Promptlike } from './estimate.ts'
import { addDay, createCallWriter, sumByDay, type UsageCallRow } from './store.ts'

/** Milliseconds that the service waits at shutdown for aborted calls to record their usage. */
const LAST_RECORDS_MS = 1_000
/** Length of the time in call ids, in digits; sufficient until the year 33658. */
const TIME_DIGITS = 15

export interface UsageTracker {
  /**
   * Starts recording a call. @throws ServiceError `insufficient_quota` if one of the caller's budgets is used
   * up.
   */
  begin(call: CallStart): Promise<UsageRecord>
  /** Resolves when every call that has ended so far is in the database. */
  flush(): Promise<void>
  /** Drops cached budgets; call this after every change to budgets. */
  invalidate(): void
  /** Waits for calls that are ending, then flushes. */
  close(): Promise<void>
}

export function createUsageTracker(
  deps: Pick<Dependencies, 'config' | 'db' | 'clock' | 'random' | 'log' | 'metrics'>,
): UsageTracker {
  const { clock, log, metrics } = deps
  const recorder = createUsageRecorder(deps)
  const enforcer = createBudgetEnforcer(deps)
  const nextId = createCallIds(newId('', 6, deps.random))
  let open = 0
  let onLastEnd: (() => void) | undefined

  async function begin(call: CallStart): Promise<UsageRecord> {
    const reservation = await enforcer.reserve(call, () => estimateCallTokens(call.request))
    open += 1

    function save(row: UsageCallRow): Promise<void> | void {
      recorder.record(row)
      open -= 1
      if (open === 0) onLastEnd?.()
      // Logs the error instead of failing the call, because the reservation expires anyway.
      return reservation
        ?.settle(row.prompt_tokens + row.completion_tokens)
        .catch((error) =>
          log.warn({ err: error, requestId: row.request_id }, 'could not settle token budget'),
        )
    }
    return new UsageRecord(call, { clock, metrics, newId: nextId, save })
  }

  return {
    begin,
    flush: () => recorder.flush(),
    invalidate: () => enforcer.invalidate(),
    async close() {
      if (open > 0) {
        const lastEnd = Promise.withResolvers<void>()
        onLastEnd = lastEnd.resolve
        await within(LAST_RECORDS_MS, lastEnd.promise, () => {})
      }
      await recorder.flush().catch((error) => log.error({ err: error }, 'could not write usage at shutdown'))
    },
  }
}

/** Creates ids that sort by the call's start; they are unique if each process has a different name. */
export function createCallIds(processName: string): (startedAtMs: number) => string {
  let last = 0
  return (startedAtMs) => {
    last += 1
    return `${firstCallIdAt(startedAtMs)}-${processName}-${last.toString(36)}`
  }
}

/** Returns an id that sorts before all calls that begin at `ms` or later. */
export function firstCallIdAt(ms: number): string {
  return String(Math.floor(ms)).padStart(TIME_DIGITS, '0')
}

const LF = 0x0a

export interface CallStart {
  readonly operation: EndedCall['operation']
  readonly requestId: string
  readonly tenantId: string
  /** Undefined for a call without an agent. */
  readonly agentId: string | undefined
  readonly provider: string
  /** The provider's own model id. */
  readonly model: string
  readonly isStreamed: boolean
  /** The request's content, used only to estimate tokens. */
  readonly request: Promptlike
}

interface RecordOptions {
  readonly clock: Pick<Clock, 'now' | 'monotonic'>
  readonly metrics: Metrics
  readonly newId: (startedAtMs: number) => string
  /** Records the row; resolves when the call's reservation is settled. */
  readonly save: (row: UsageCallRow) => Promise<void> | void
}

/** Records a call's usage. Disposing it before `end` records a client disconnect. */
export class UsageRecord implements AsyncDisposable {
  isEnded = false
  private readonly start: CallStart
  private readonly options: RecordOptions
  private readonly startedAtMs: number
  private readonly startedTick: number
  private provider: string
  private model: string
  private firstByteTick: number | undefined
  private promptTokens = 0
  private completionTokens = 0
  private isEstimated = false
  private modelCalls = 0
  /** Number of events forwarded since the last counted model call. */
  private events = 0

  constructor(start: CallStart, options: RecordOptions) {
    this.start = start
    this.options = options
    this.provider = start.provider
    this.model = start.model
    this.startedAtMs = options.clock.now()
    this.startedTick = options.clock.monotonic()
  }

  /** Sets the provider and model that responded; they differ from the first choice after a fallback. */
  answering(provider: string, model = this.model): void {
    this.provider = provider
    this.model = model
  }

  /**
   * Adds a model call. If the provider reports no `usage`, estimates tokens from the response text, or else
   * from the events sent.
   */
  used(usage: Usage | undefined, text?: string | null): void {
    this.modelCalls += 1
    if (isCount(usage?.prompt_tokens) && isCount(usage?.completion_tokens)) {
      this.promptTokens += usage.prompt_tokens
      this.completionTokens += usage.completion_tokens
    } else {
      this.isEstimated = true
      this.promptTokens += estimatePromptTokens(this.start.request)
      this.completionTokens += text === undefined ? this.events : estimateTokens(text?.length ?? 0)
    }
    this.events = 0
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
    // The model has read the prompt even if the client disconnects during the first model call, so it is
    // counted.
    if (status === 'left' && this.modelCalls === 0) this.used(undefined)
    this.observe(status)
    await this.options.save(this.toRow(status))
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
    })
  }

  private toRow(status: string): UsageCallRow {
    const { start, options, startedAtMs, startedTick, firstByteTick } = this
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
    }
  }
}

function statusOf(thrown: unknown, signal: AbortSignal): string {
  if (!signal.aborted) return toServiceError(thrown).reason
  const { reason } = signal
  const isShutdown = reason instanceof ServiceError && reason.reason === 'service_unavailable'
  return isShutdown ? reason.reason : 'left'
}

/** Counts events, each of which is one line followed by an empty line. */
function countEvents(run: Uint8Array): number {
  let events = 0
  for (let at = run.indexOf(LF); at !== -1; at = run.indexOf(LF, at + 2)) events += 1
  return events
}

/** Validates a token count, because a provider may send any value. */
function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}

/** Maximum time between flushes; `FLUSH_AT` waiting calls trigger an earlier one. */
const FLUSH_EVERY_MS = 1_000
const FLUSH_AT = 500
/** Maximum number of calls per transaction. */
const BATCH = 1_000
/**
 * Maximum number of calls held in memory while the database is not writable. Further calls are lost, and
 * their number is logged.
 */
const MOST_WAITING = 100_000

/** Writes calls in batches, usually within a second, independently of requests. */
function createUsageRecorder({ db, log }: Pick<Dependencies, 'db' | 'log'>) {
  const insertCalls = createCallWriter(db)
  let waiting: UsageCallRow[] = []
  let lost = 0
  let timer: NodeJS.Timeout | undefined
  let flushing: Promise<void> | undefined

  async function write(calls: readonly UsageCallRow[]): Promise<void> {
    await db.transaction().execute(async (trx) => {
      await insertCalls(trx, calls)
      for (const sums of sumByDay(calls)) await addDay(trx, sums)
    })
  }

  async function writeAll(): Promise<void> {
    clearTimeout(timer)
    timer = undefined
    while (waiting.length > 0) {
      const batch = waiting.slice(0, BATCH)
      waiting = waiting.slice(BATCH)
      try {
        await write(batch)
      } catch (error) {
        waiting = [...batch, ...waiting]
        throw error
      }
    }
    if (lost > 0) log.error({ calls: lost }, 'usage records lost: too many waiting calls')
    lost = 0
  }

  /** Writes every call recorded so far. @throws the database's error; the calls are kept and written later. */
  async function flush(): Promise<void> {
    flushing ??= writeAll().finally(() => {
      flushing = undefined
    })
    return flushing
  }

  async function flushOrRetry(): Promise<void> {
    await flush().catch((error) => {
      log.warn({ err: error, waiting: waiting.length }, 'could not write usage; will retry')
      timer ??= startTimer()
    })
  }

  function startTimer(): NodeJS.Timeout {
    return setTimeout(() => void flushOrRetry(), FLUSH_EVERY_MS).unref()
  }

  return {
    record(call: UsageCallRow): void {
      if (waiting.length >= MOST_WAITING) {
        lost += 1
        return
      }
      waiting.push(call)
      timer ??= startTimer()
      if (waiting.length === FLUSH_AT) void flushOrRetry()
    },
    flush,
  }
}
