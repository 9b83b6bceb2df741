/** Runs one turn independently of its readers, which may connect and disconnect at any time. */
import { type Clock, unixSeconds } from '../../lib/clock.ts'
import { ServiceError, toServiceError } from '../../lib/errors.ts'
import type { Usage } from '../../providers/chat-api.ts'
import type { NewData } from '../inline-data/data-rows.ts'
import type { ItemData } from '../inline-data/item-data.ts'
import { createToolItemIds, type LoggedStep, renderOutput, toEndEntry } from '../turn-output.ts'
import { type Cursor, type StoreBacklog, TurnLog } from './log.ts'
import {
  countEntries,
  encodeSegment,
  type LogEntry,
  type LogRun,
  toBuffer,
  toChatRun,
  toRun,
} from './segments.ts'
import { ToolDataFilter } from './tool-data.ts'

export interface TurnReports {
  /** The id of the turn's conversation. */
  readonly conversationId: string
  /** Called when a model has begun to answer. */
  begun(route: TurnRoute): void
  /** Called after each model call with the usage so far, which a stream may not contain. */
  used(usage: Usage | undefined): void
  /** Called at the end of the run with its cost in nano-dollars, unless a model has no price. */
  spent(cost: number): void
  /** Called at the end of the run with its diagnostics, as plain data. */
  explained(diagnostics: object): void
  /** Stores a step. A tool must start only after its call is stored. */
  step(step: LoggedStep): Promise<void>
  /**
   * Must be called before each tool and each further model call. Rejects if the turn was ended or a person
   * has taken over.
   */
  assertMayContinue(): Promise<void>
  /** Asks for a person, and returns the result for the model. */
  requestPerson(reason: string): Promise<string>
}

/** Runs the model and its tools: yields runs of chat events, or the whole completion. */
export type RunModel = (signal: AbortSignal, reports: TurnReports) => AsyncGenerator<Uint8Array, void, void>

export interface RunningTurnOptions {
  readonly id: string
  readonly conversationId: string
  /** Whether the stored turn still runs, and no person answers its conversation. */
  readonly mayContinue: () => Promise<boolean>
  readonly requestPerson: (reason: string) => Promise<string>
  readonly isStream: boolean
  /**
   * Milliseconds that the turn waits for a reader to reconnect; if undefined, it runs to its end without
   * readers.
   */
  readonly reconnectMs: number | undefined
  /** Returns the time (Unix seconds) at which another replica last recorded that it reads the turn. */
  readonly findLastRead: () => Promise<number | undefined>
  /** Whether the arguments and results of tools are stored, or only their names. */
  readonly toolData: 'full' | 'names'
  readonly data: Pick<ItemData, 'storeResult'>
  readonly clock: Pick<Clock, 'now' | 'monotonic'>
  /** Whether no client waits for the answer, so that even a failure without any event must be in the log. */
  readonly isBackground: boolean
  /** Renders the event that ends a broken stream. */
  readonly renderFailure: (failure: ServiceError) => Uint8Array
  readonly backlog: StoreBacklog
  readonly onAppend: (isLarge: boolean) => void
  /** Reads stored entries from `from` on. */
  readonly readStored: (from: number) => Promise<readonly LogRun[]>
}

/** Milliseconds for which a reader on another replica counts after it announces itself. */
const ANNOUNCED_MS = 5_000
/**
 * Minimum milliseconds until a new turn needs a reader, because visitors follow a turn only after they have
 * started it.
 */
const FIRST_READER_MS = 5_000

/** Why a turn is stopped before the model has finished. */
export type StopReason = 'cancelled' | 'taken_over' | 'left' | 'lost' | 'shutdown'

const stopMessages: Readonly<Record<StopReason, string>> = {
  cancelled: 'The turn was cancelled.',
  taken_over: 'A person took the conversation over.',
  left: 'The client disconnected.',
  lost: 'Another process has ended the turn.',
  shutdown: 'The server is shutting down.',
}

/** The reason with which a stopped turn aborts its model and its tools. */
export class TurnStopped extends ServiceError {
  constructor(reason: StopReason) {
    super(reason === 'shutdown' ? 'service_unavailable' : 'invalid_value', stopMessages[reason])
  }
}

export interface TurnRoute {
  readonly provider: string
  readonly model: string
  readonly attempts: number
}

export interface TurnEnd {
  readonly failure: ServiceError | undefined
  readonly stopped: StopReason | undefined
  readonly route: TurnRoute | undefined
  readonly usage: Usage | undefined
  /** Nano-dollars; undefined if unknown. */
  readonly cost: number | undefined
  readonly diagnostics: object | undefined
  readonly firstEventMs: number | undefined
  readonly durationMs: number
}

export class RunningTurn {
  readonly log: TurnLog
  /** Resolves to whether the turn's row is stored; readers receive no event before. */
  readonly accepted = Promise.withResolvers<boolean>()
  /** Resolves at the end of the turn; the last events may not be stored yet. */
  readonly ended: Promise<TurnEnd>
  /** Resolves when the end is stored, or cannot be stored. */
  readonly finished = Promise.withResolvers<void>()
  /** The failure of a turn without events; its readers throw this error. */
  private failure: ServiceError | undefined
  private readonly options: RunningTurnOptions
  private readonly newToolId: (step: LoggedStep) => string
  private readonly controller = new AbortController()
  private readonly ending = Promise.withResolvers<TurnEnd>()
  private readers = 0
  private reconnectTimer: NodeJS.Timeout | undefined
  /** Monotonic time until which the last announced reader on another replica counts. */
  private announcedUntilMs = 0
  private stopped: StopReason | undefined
  private isOver = false
  /** Whether the turn has produced an item that another turn can continue. */
  private hasOutput = false

  constructor(options: RunningTurnOptions) {
    this.options = options
    this.newToolId = createToolItemIds(options.id)
    const filter = options.toolData === 'names' ? new ToolDataFilter() : undefined
    this.log = new TurnLog(options.id, options.backlog, { onAppend: options.onAppend }, filter)
    this.ended = this.ending.promise
    this.accepted.promise.catch(() => {})
  }

  get id(): string {
    return this.options.id
  }

  get conversationId(): string {
    return this.options.conversationId
  }

  async run(model: RunModel): Promise<TurnEnd> {
    const { clock, isStream, isBackground, renderFailure } = this.options
    const startedMs = clock.monotonic()
    let firstEventMs: number | undefined
    let route: TurnEnd['route']
    let usage: Usage | undefined
    let cost: number | undefined
    let diagnostics: object | undefined
    let failure: ServiceError | undefined
    if (this.readers === 0) this.stopLater(FIRST_READER_MS)
    try {
      const pieces = model(this.controller.signal, {
        begun: (chosen) => {
          route = chosen
        },
        used: (sum) => {
          usage = sum
        },
        spent: (sum) => {
          cost = sum
        },
        explained: (given) => {
          diagnostics = given
        },
        step: (step) => this.addStep(step),
        conversationId: this.options.conversationId,
        assertMayContinue: () => this.assertMayContinue(),
        requestPerson: (reason) => this.requestPerson(reason),
      })
      for await (const piece of pieces) {
        firstEventMs ??= clock.monotonic() - startedMs
        this.append(isStream ? toChatRun(piece) : toRun({ kind: 'completion', bytes: toBuffer(piece) }))
        if (this.log.isFull) await this.log.hasRoom()
      }
    } catch (thrown) {
      failure = toServiceError(thrown)
      if (this.stopped === undefined && this.log.length === 0 && !isBackground) this.failure = failure
      else if (this.stopped === undefined)
        this.log.append(toRun({ kind: 'failure', bytes: Buffer.from(renderFailure(failure)) }))
    }
    this.isOver = true
    clearTimeout(this.reconnectTimer)
    if (this.failure === undefined) this.log.append(toRun(this.toEnd(failure)))
    const durationMs = clock.monotonic() - startedMs
    const end = { failure, stopped: this.stopped, route, usage, cost, diagnostics, firstEventMs, durationMs }
    this.ending.resolve(end)
    return end
  }

  /**
   * Yields the entries from `from` on in batches, then follows the turn; returns at its end or when the
   * signal aborts.
   * @throws ServiceError if the turn failed before its first event
   */
  async *read(from: number, signal?: AbortSignal): AsyncGenerator<readonly LogRun[], void, void> {
    const { log } = this
    this.readers += 1
    clearTimeout(this.reconnectTimer)
    const cursor: Cursor = { next: from }
    const close = log.open(cursor)
    const wake = () => log.wakeReaders()
    signal?.addEventListener('abort', wake)
    try {
      await this.accepted.promise
      for (;;) {
        const runs = log.readKept(cursor.next) ?? (await this.options.readStored(cursor.next))
        if (runs.length > 0) {
          cursor.next += countEntries(runs)
          yield runs
          continue
        }
        const { change } = log
        if (change === undefined || signal?.aborted) break
        await change
      }
      if (this.failure !== undefined) throw this.failure
    } finally {
      signal?.removeEventListener('abort', wake)
      close()
      this.readers -= 1
      if (this.readers === 0) this.stopLater()
    }
  }

  async readSoFar(): Promise<readonly LogRun[]> {
    const { log } = this
    const runs: LogRun[] = []
    for (let next = 0; next < log.length; ) {
      const more = log.readKept(next) ?? (await this.options.readStored(next))
      if (more.length === 0) break
      next += countEntries(more)
      runs.push(...more)
    }
    return runs
  }

  /** Ends a turn that was not accepted and therefore never runs. */
  discard(): void {
    this.isOver = true
    clearTimeout(this.reconnectTimer)
    this.accepted.resolve(false)
    this.log.end()
    this.finished.resolve()
    this.ending.resolve({
      failure: undefined,
      stopped: this.stopped,
      route: undefined,
      usage: undefined,
      cost: undefined,
      diagnostics: undefined,
      firstEventMs: undefined,
      durationMs: 0,
    })
  }

  /** Stops the model. Returns false if the turn has ended or is already being stopped. */
  stop(reason: StopReason): boolean {
    if (this.isOver || this.stopped !== undefined) return false
    this.stopped = reason
    this.log.stopWaiting()
    this.controller.abort(new TurnStopped(reason))
    return true
  }

  /** Stops the turn if the stored turn no longer runs, because the message about this can be lost. */
  private async assertMayContinue(): Promise<void> {
    if ((await this.accepted.promise) && !(await this.options.mayContinue())) {
      this.log.stopStoring()
      this.stop('lost')
    }
    this.controller.signal.throwIfAborted()
  }

  private async requestPerson(reason: string): Promise<string> {
    if (await this.accepted.promise) return this.options.requestPerson(reason)
    return 'Error: no person can be asked, because this conversation could not be stored.'
  }

  private toEnd(failure: ServiceError | undefined): LogEntry {
    const at = unixSeconds(this.options.clock)
    if (this.stopped !== undefined) {
      const isCancelled = this.stopped === 'cancelled' || this.stopped === 'taken_over'
      return toEndEntry({ at, interruption: isCancelled ? 'cancelled' : 'interrupted' })
    }
    if (failure === undefined) return toEndEntry({ at })
    const { code, message } = failure
    const interruption = this.hasOutput ? { interruption: 'interrupted' as const } : {}
    return toEndEntry({ at, ...interruption, failure: { code, message } })
  }

  /**
   * Counts a reader on another replica for five seconds. The replica repeats the announcement every two
   * seconds.
   */
  onAnnounced(): void {
    this.announcedUntilMs = this.options.clock.monotonic() + ANNOUNCED_MS
    if (this.readers === 0) this.stopLater()
  }

  private stopLater(leastMs = 0): void {
    const { reconnectMs, clock } = this.options
    if (reconnectMs === undefined || this.isOver) return
    this.stopAfter(Math.max(reconnectMs, leastMs, this.announcedUntilMs - clock.monotonic()))
  }

  private stopAfter(ms: number): void {
    clearTimeout(this.reconnectTimer)
    this.reconnectTimer = setTimeout(() => void this.stopUnlessRead(), ms)
  }

  /** Stops the turn unless the database shows a reader that could not announce itself over the bus. */
  private async stopUnlessRead(): Promise<void> {
    const { findLastRead, reconnectMs = 0, clock } = this.options
    const timer = this.reconnectTimer
    const readAt = await findLastRead().catch(() => undefined)
    // A reader has connected in between, and may have disconnected again.
    if (this.readers > 0 || this.reconnectTimer !== timer || this.isOver) return
    const untilMs = readAt === undefined ? 0 : (readAt + 1) * 1000 + Math.max(reconnectMs, ANNOUNCED_MS)
    const leftMs = untilMs - clock.now()
    if (leftMs > 0) this.stopAfter(leftMs)
    else this.stop('left')
  }

  private async addStep(step: LoggedStep): Promise<void> {
    const itemId = this.newToolId(step)
    const { data, toolData } = this.options
    const isWhole = step.type === 'tool_result' && toolData === 'full' && this.log.isStored
    const stored = isWhole ? await data.storeResult(itemId, step.content) : undefined
    const logged = stored && { ...step, content: stored.mark, data_bytes: stored.bodyBytes }
    const bytes = Buffer.from(JSON.stringify(logged ?? step))
    this.append(toRun({ kind: 'step', bytes }), stored && [stored.data])
    if (step.type === 'tool_call') await this.log.isDurable()
  }

  private append(run: LogRun, data?: readonly NewData[]): void {
    // Usually only the first two runs of a turn are rendered here.
    this.hasOutput ||= renderOutput(this.id, [encodeSegment([run])]).items.length > 0
    this.log.append(run, data)
  }
}
