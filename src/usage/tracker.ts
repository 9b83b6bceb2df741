/** The books of a running service: opens a booking for every call, holds back its tokens, and keeps what it came to. */

import type { Clock } from '../lib/clock.ts'
import { ServiceError, toServiceError } from '../lib/errors.ts'
import { newId } from '../lib/ids.ts'
import { within } from '../lib/timeout.ts'
import type { Usage } from '../providers/chat-api.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { EndedCall } from '../telemetry/model-metrics.ts'
import { createBudgetKeeper } from './budget-enforcer.ts'
import type { Dependencies } from './dependencies.ts'
import { estimateCallTokens, estimatePromptTokens, estimateTokens, type Promptlike } from './estimate.ts'
import { createUsageRecorder } from './recorder.ts'
import type { UsageCallRow } from './store.ts'

/** Calls cut off at the end of the service get so long to say what they used. */
const LAST_BOOKINGS_MS = 1_000
/** Until the year 33658. */
const TIME_DIGITS = 15

export interface UsageBooks {
  /**
   * Opens the booking of a call.
   * @throws ServiceError `insufficient_quota` when a budget that bounds the caller is spent.
   */
  begin(call: CallStart): Promise<Booking>
  /** Resolves when every call booked so far is in the database. */
  flush(): Promise<void>
  /** Forgets which budgets there are: called after every change to them. */
  forget(): void
  /** Waits for the calls that are ending, and writes everything down. */
  close(): Promise<void>
}

type BooksDeps = Pick<Dependencies, 'config' | 'db' | 'clock' | 'random' | 'log' | 'metrics'>

/** Books over one database. */
export function createUsageBooks(deps: BooksDeps): UsageBooks {
  const { clock, log, metrics } = deps
  const recorder = createUsageRecorder(deps)
  const keeper = createBudgetKeeper(deps)
  const nextId = createCallIds(newId('', 6, deps.random))
  let open = 0
  let onLastEnd: (() => void) | undefined

  async function begin(call: CallStart): Promise<Booking> {
    const reservation = await keeper.reserve(call, () => estimateCallTokens(call.request))
    open += 1

    function book(row: UsageCallRow): Promise<void> | void {
      recorder.record(row)
      open -= 1
      if (open === 0) onLastEnd?.()
      // What is not settled expires; the answer must not fail for it.
      return reservation
        ?.settle(row.prompt_tokens + row.completion_tokens)
        .catch((error) =>
          log.warn({ err: error, requestId: row.request_id }, 'a budget could not be settled'),
        )
    }
    return new Booking(call, { clock, metrics, newId: nextId, book })
  }

  async function openCallsEnd(): Promise<void> {
    if (open === 0) return
    const lastEnd = new Promise<void>((resolve) => {
      onLastEnd = resolve
    })
    await within(LAST_BOOKINGS_MS, lastEnd, () => {})
  }

  return {
    begin,
    flush: () => recorder.flush(),
    forget: () => keeper.forget(),
    async close() {
      await openCallsEnd()
      await recorder.flush().catch((error) => log.error({ err: error }, 'the last usage was not written'))
    },
  }
}

/** Ids that sort by when their call began, and never repeat, also between processes of different names. */
export function createCallIds(processName: string): (startedAtMs: number) => string {
  let last = 0
  return (startedAtMs) => {
    last += 1
    return `${callIdsFrom(startedAtMs)}-${processName}-${last.toString(36)}`
  }
}

/** Sorts before the ids of all calls that begin at that moment or later. */
export function callIdsFrom(ms: number): string {
  return String(Math.floor(ms)).padStart(TIME_DIGITS, '0')
}

const LF = 0x0a

/** What is known of a call before it is made. */
export interface CallStart {
  readonly operation: EndedCall['operation']
  readonly requestId: string
  readonly tenantId: string
  /** Undefined when no agent makes the call. */
  readonly agentId: string | undefined
  readonly provider: string
  /** The backend's own id. */
  readonly model: string
  readonly isStreamed: boolean
  /** Looked at only where tokens have to be estimated. */
  readonly request: Promptlike
}

/** How a booking reaches the books. */
export interface BookingOptions {
  readonly clock: Pick<Clock, 'now' | 'monotonic'>
  readonly metrics: Metrics
  /** A new row id for a call that began at that moment. */
  readonly newId: (startedAtMs: number) => string
  /** Takes the finished row; resolves when what had been reserved for the call is given back. */
  readonly book: (row: UsageCallRow) => Promise<void> | void
}

/** One call under way. */
export class Booking implements AsyncDisposable {
  private readonly start: CallStart
  private readonly options: BookingOptions
  private readonly startedAtMs: number
  private readonly startedTick: number
  private provider: string
  private model: string
  private firstByteTick: number | undefined
  private promptTokens = 0
  private completionTokens = 0
  private isEstimated = false
  private rounds = 0
  /** Events forwarded since the last round that was counted. */
  private events = 0
  private isEnded = false

  constructor(start: CallStart, options: BookingOptions) {
    this.start = start
    this.options = options
    this.provider = start.provider
    this.model = start.model
    this.startedAtMs = options.clock.now()
    this.startedTick = options.clock.monotonic()
  }

  /** Names who answers, where that is another than the one first asked. */
  answering(provider: string, model = this.model): void {
    this.provider = provider
    this.model = model
  }

  /**
   * One round of the turn is over, or was cut off: what the backend says it took, or an estimate from what it has said (a text, else
   * the events sent). Decision: 7 (what was used is booked).
   */
  used(usage: Usage | undefined, said?: string | null): void {
    this.rounds += 1
    if (isCount(usage?.prompt_tokens) && isCount(usage?.completion_tokens)) {
      this.promptTokens += usage.prompt_tokens
      this.completionTokens += usage.completion_tokens
    } else {
      this.isEstimated = true
      this.promptTokens += estimatePromptTokens(this.start.request)
      this.completionTokens += said === undefined ? this.events : estimateTokens(said?.length ?? 0)
    }
    this.events = 0
  }

  /** A run of whole events goes to the caller. */
  sent(run: Uint8Array): void {
    this.firstByteTick ??= this.options.clock.monotonic()
    this.events += countEvents(run)
  }

  /** Books a call that was cut off, by its caller (`signal`) or by what was thrown. */
  fail(thrown: unknown, signal: AbortSignal): Promise<void> {
    return this.end(statusOf(thrown, signal))
  }

  /** Books the call; only the first time counts. `status`: `ok`, `left`, or the reason of the failure. */
  async end(status: string): Promise<void> {
    if (this.isEnded) return
    this.isEnded = true
    // The backend was working on it when the caller left: it has read the prompt at least.
    if (status === 'left' && this.rounds === 0) this.used(undefined)
    this.count(status)
    await this.options.book(this.toRow(status))
  }

  /** A call that was neither answered nor failed was left by its caller. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.end('left')
  }

  private count(status: string): void {
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

/** Who ended a call that was cut off decides what it counts as. */
function statusOf(thrown: unknown, signal: AbortSignal): string {
  if (!signal.aborted) return toServiceError(thrown).reason
  const { reason } = signal
  const isShutdown = reason instanceof ServiceError && reason.reason === 'service_unavailable'
  return isShutdown ? reason.reason : 'left'
}

/** Each event is one line and an empty one. */
function countEvents(run: Uint8Array): number {
  let events = 0
  for (let at = run.indexOf(LF); at !== -1; at = run.indexOf(LF, at + 2)) events += 1
  return events
}

/** A backend may say anything. */
function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}
