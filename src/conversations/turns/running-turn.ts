/** Runs one turn independently of its readers, which may connect and disconnect at any time. */
import { type Clock, unixSeconds } from '../../lib/clock.ts'
import { ServiceError, toServiceError } from '../../lib/errors.ts'
import type { Usage } from '../../providers/chat-api.ts'
import { splitEvents } from '../events.ts'
import { type LoggedStep, renderOutput, toEndEntry } from '../turn-output.ts'
import { TurnLog } from './log.ts'
import type { LogEntry, LogKind } from './segments.ts'
import { ToolDataFilter } from './tool-data.ts'

/** Receives a turn's progress. */
export interface TurnReports {
  /** Called when a model has begun to answer. */
  begun(route: { readonly provider: string; readonly model: string; readonly attempts: number }): void
  /** Called after each model call with the usage so far, which a stream may not contain. */
  used(usage: Usage | undefined): void
  /** Stores a step. A tool must start only after its call is stored. */
  step(step: LoggedStep): Promise<void>
}

/** Runs the model and its tools: yields runs of chat events, or the whole completion. */
export type RunModel = (signal: AbortSignal, reports: TurnReports) => AsyncGenerator<Uint8Array, void, void>

export interface RunningTurnOptions {
  readonly id: string
  readonly isStream: boolean
  /** Milliseconds that the turn continues without a reader; if undefined, it always runs to its end. */
  readonly lonelyMs: number | undefined
  /** Returns the time (Unix seconds) at which another replica last recorded that it reads the turn. */
  readonly findLastRead: () => Promise<number | undefined>
  /** Whether the arguments and results of tools are stored, or only their names. */
  readonly toolData: 'full' | 'names'
  readonly clock: Pick<Clock, 'now' | 'monotonic'>
  /** Whether no client waits for the answer, so that even a failure without any event must be in the log. */
  readonly isBackground: boolean
  /** Renders the event that ends a broken stream. */
  readonly renderFailure: (failure: ServiceError) => Uint8Array
  readonly onAppend: (isLarge: boolean) => void
}

/** Milliseconds for which a reader on another replica counts after it announces itself. */
const ANNOUNCED_MS = 5_000

/** Why a turn is stopped before the model has finished. */
export type StopReason = 'cancelled' | 'left' | 'lost' | 'shutdown'

const stopMessages: Readonly<Record<StopReason, string>> = {
  cancelled: 'The turn was cancelled.',
  left: 'The client disconnected.',
  lost: 'Another process has ended the turn.',
  shutdown: 'The server is shutting down.',
}

export interface TurnEnd {
  readonly failure: ServiceError | undefined
  readonly stopped: StopReason | undefined
  readonly route: { readonly provider: string; readonly model: string; readonly attempts: number } | undefined
  readonly usage: Usage | undefined
  readonly firstEventMs: number | undefined
  readonly durationMs: number
}

export class RunningTurn {
  readonly log: TurnLog
  /** Settles when the turn may show its first event: its row is stored, or the store has failed. */
  readonly accepted = Promise.withResolvers<boolean>()
  /** Resolves at the end of the turn; the last events may not be stored yet. */
  readonly ended: Promise<TurnEnd>
  /** The failure of a turn without events; its readers throw this error. */
  private failure: ServiceError | undefined
  private readonly options: RunningTurnOptions
  private readonly filter: ToolDataFilter | undefined
  private readonly controller = new AbortController()
  private readonly finished = Promise.withResolvers<TurnEnd>()
  private readers = 0
  private lonely: NodeJS.Timeout | undefined
  /** Monotonic time until which the last announced reader on another replica counts. */
  private announcedUntilMs = 0
  private stopped: StopReason | undefined
  private isOver = false

  constructor(options: RunningTurnOptions) {
    this.options = options
    this.log = new TurnLog(options.id, { onAppend: options.onAppend })
    this.ended = this.finished.promise
    this.filter = options.toolData === 'names' ? new ToolDataFilter() : undefined
    this.accepted.promise.catch(() => {})
  }

  get id(): string {
    return this.options.id
  }

  async run(model: RunModel): Promise<TurnEnd> {
    const { clock, isStream, isBackground, renderFailure } = this.options
    const startedMs = clock.monotonic()
    let firstEventMs: number | undefined
    let route: TurnEnd['route']
    let usage: Usage | undefined
    let failure: ServiceError | undefined
    try {
      const pieces = model(this.controller.signal, {
        begun: (chosen) => {
          route = chosen
        },
        used: (sum) => {
          usage = sum
        },
        step: async (step) => {
          this.add({ kind: 'step', bytes: Buffer.from(JSON.stringify(step)) })
          if (step.type === 'tool_call') await this.log.isDurable()
        },
      })
      for await (const piece of pieces) {
        firstEventMs ??= clock.monotonic() - startedMs
        this.append(isStream ? 'chat' : 'completion', piece)
        await this.log.hasRoom()
      }
    } catch (thrown) {
      failure = toServiceError(thrown)
      if (this.stopped === undefined && this.log.length === 0 && !isBackground) this.failure = failure
      else if (this.stopped === undefined)
        this.log.append({ kind: 'failure', bytes: Buffer.from(renderFailure(failure)) })
    }
    this.isOver = true
    clearTimeout(this.lonely)
    if (this.failure === undefined) this.log.append(this.toEnd(failure))
    const durationMs = clock.monotonic() - startedMs
    const end = { failure, stopped: this.stopped, route, usage, firstEventMs, durationMs }
    this.finished.resolve(end)
    return end
  }

  /**
   * Yields the entries so far, starting with number `from`, then follows the turn.
   * @throws ServiceError if the turn failed before its first event.
   */
  async *read(from: number, signal?: AbortSignal): AsyncGenerator<LogEntry, void, void> {
    this.readers += 1
    clearTimeout(this.lonely)
    try {
      await this.accepted.promise
      yield* this.log.read(from, signal)
      if (this.failure !== undefined) throw this.failure
    } finally {
      this.readers -= 1
      if (this.readers === 0) this.onLonely()
    }
  }

  /** Ends a turn that was not accepted and therefore never runs. */
  discard(): void {
    this.isOver = true
    this.accepted.resolve(false)
    this.log.end()
    this.finished.resolve({
      failure: undefined,
      stopped: this.stopped,
      route: undefined,
      usage: undefined,
      firstEventMs: undefined,
      durationMs: 0,
    })
  }

  /** Stops the model; does nothing when the turn has ended. */
  stop(reason: StopReason): void {
    if (this.isOver || this.stopped !== undefined) return
    this.stopped = reason
    const code = reason === 'shutdown' ? 'service_unavailable' : 'invalid_value'
    this.controller.abort(new ServiceError(code, stopMessages[reason]))
  }

  private toEnd(failure: ServiceError | undefined): LogEntry {
    const at = unixSeconds(this.options.clock)
    if (this.stopped !== undefined)
      return toEndEntry({ at, interruption: this.stopped === 'cancelled' ? 'cancelled' : 'interrupted' })
    if (failure === undefined) return toEndEntry({ at })
    const { code, message } = failure
    const hasOutput = renderOutput(this.id, this.log.all).items.length > 0
    return toEndEntry({ at, ...(hasOutput && { interruption: 'interrupted' }), failure: { code, message } })
  }

  /** Counts a reader on another replica; must be called again every two seconds while it reads. */
  onAnnounced(): void {
    this.announcedUntilMs = this.options.clock.monotonic() + ANNOUNCED_MS
    if (this.readers === 0) this.onLonely()
  }

  private onLonely(): void {
    const { lonelyMs, clock } = this.options
    if (lonelyMs === undefined || this.isOver) return
    this.stopAfter(Math.max(lonelyMs, this.announcedUntilMs - clock.monotonic()))
  }

  private stopAfter(ms: number): void {
    clearTimeout(this.lonely)
    this.lonely = setTimeout(() => void this.stopUnlessRead(), ms)
  }

  /** Stops the turn unless the database shows a reader that could not announce itself over the bus. */
  private async stopUnlessRead(): Promise<void> {
    const { findLastRead, lonelyMs = 0, clock } = this.options
    const timer = this.lonely
    const readAt = await findLastRead().catch(() => undefined)
    // A reader has connected in between, and may have disconnected again.
    if (this.readers > 0 || this.lonely !== timer || this.isOver) return
    const untilMs = readAt === undefined ? 0 : (readAt + 1) * 1000 + Math.max(lonelyMs, ANNOUNCED_MS)
    const leftMs = untilMs - clock.now()
    if (leftMs > 0) this.stopAfter(leftMs)
    else this.stop('left')
  }

  private append(kind: LogKind, piece: Uint8Array): void {
    const bytes = Buffer.from(piece.buffer, piece.byteOffset, piece.length)
    const events = kind === 'chat' ? splitEvents(bytes) : [bytes]
    for (const event of events) this.add({ kind, bytes: event })
  }

  private add(entry: LogEntry): void {
    this.log.append(this.filter?.apply(entry) ?? entry)
  }
}
