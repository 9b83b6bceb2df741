/** Stores the events of all running turns of this process in batches, and renews the turns' leases. */
import type { Logger } from 'pino'
import type { ConversationStorage } from '../../db/open.ts'
import { type Clock, unixSeconds } from '../../lib/clock.ts'
import type { EndedStatus } from '../../telemetry/conversation-metrics.ts'
import type { ItemData } from '../inline-data/item-data.ts'
import type { StoredEnd } from './end.ts'
import type { TurnLog } from './log.ts'
import { storeTurns } from './procedures.ts'

export const LEASE_SECONDS = 15
const RENEW_EVERY_MS = 5_000
const RETRY_AFTER_MS = 500
export interface WrittenTurn {
  readonly log: TurnLog
  /** Called when another process has ended the turn. */
  onLost(): void
  /** Called when a cancellation was requested on another process. */
  onCancelRequested(): void
}

interface Ending {
  readonly end: StoredEnd
  readonly done: PromiseWithResolvers<EndedStatus | undefined>
}

interface WriterDeps {
  readonly storage: ConversationStorage
  readonly data: Pick<ItemData, 'discard'>
  readonly clock: Clock
  readonly log: Logger
  readonly flushMs: number
  readonly owner: string
  readonly onStored: (turnIds: readonly string[]) => void
  /** Called with the duration of each commit in milliseconds. */
  readonly onFlushed: (durationMs: number) => void
}

/** Runs one transaction at a time. Events that arrive while it runs are stored in a later one. */
export class TurnWriter {
  private readonly deps: WriterDeps
  private readonly turns = new Map<string, WrittenTurn>()
  /** The turns that have something to store or a lease to renew. */
  private readonly changed = new Set<string>()
  /** The turns that the next transaction stores. */
  private readonly urgent = new Set<string>()
  private readonly endings = new Map<string, Ending>()
  private timer: NodeJS.Timeout | undefined
  private writing: Promise<void> | undefined
  private isScheduled = false
  private isFailing = false
  /** Remains true until a retry succeeds. */
  private hasFailed = false
  private readonly renewing: NodeJS.Timeout

  constructor(deps: WriterDeps) {
    this.deps = deps
    this.renewing = setInterval(() => this.renewAll(), RENEW_EVERY_MS).unref()
  }

  /** Starts to store a turn whose row is committed. */
  add(turn: WrittenTurn): void {
    this.turns.set(turn.log.turnId, turn)
    if (turn.log.hasWaiting) this.onAppend(turn.log.turnId, false)
  }

  onAppend(turnId: string, isLarge: boolean): void {
    if (!this.turns.has(turnId)) return
    this.changed.add(turnId)
    if (isLarge) this.urge(turnId)
    else this.timer ??= setTimeout(() => this.onTimer(), this.deps.flushMs)
  }

  /**
   * Stores the rest of a turn's events and its end. Returns its status; undefined if another process has
   * ended it.
   */
  end(turnId: string, end: StoredEnd): Promise<EndedStatus | undefined> {
    const done = Promise.withResolvers<EndedStatus | undefined>()
    this.endings.set(turnId, { end, done })
    this.urge(turnId)
    return done.promise
  }

  /**
   * Stops storing a turn, because another transaction stores its end. Resolves when no transaction of this
   * writer contains the turn. If the other transaction fails, pass the returned turn to `add`.
   */
  async release(turnId: string): Promise<WrittenTurn | undefined> {
    const turn = this.turns.get(turnId)
    this.turns.delete(turnId)
    this.changed.delete(turnId)
    this.urgent.delete(turnId)
    await this.writing
    return turn
  }

  /** Whether the last transaction could be stored. */
  get health(): 'up' | 'down' {
    return this.hasFailed ? 'down' : 'up'
  }

  async close(): Promise<void> {
    clearInterval(this.renewing)
    this.isFailing = false
    this.urgeAll()
    await this.flush()
    clearTimeout(this.timer)
  }

  private renewAll(): void {
    for (const id of this.turns.keys()) this.changed.add(id)
    this.onTimer()
  }

  private urge(turnId: string): void {
    this.changed.add(turnId)
    this.urgent.add(turnId)
    if (this.isScheduled || this.isFailing) return
    this.isScheduled = true
    queueMicrotask(() => void this.flush())
  }

  private urgeAll(): void {
    for (const id of this.changed) this.urgent.add(id)
  }

  private onTimer(): void {
    clearTimeout(this.timer)
    this.timer = undefined
    this.isFailing = false
    this.urgeAll()
    void this.flush()
  }

  private async flush(): Promise<void> {
    this.isScheduled = false
    while (this.urgent.size > 0 && !this.isFailing) {
      this.writing ??= this.writeBatch().finally(() => {
        this.writing = undefined
      })
      await this.writing
    }
  }

  private async writeBatch(): Promise<void> {
    const { storage, clock, log, owner, onStored } = this.deps
    const ids = [...this.urgent]
    const batch = ids.flatMap((id) => this.take(id))
    if (batch.length === 0) return
    const startedMs = clock.monotonic()
    try {
      const { run } = await storage.open()
      const nowSeconds = unixSeconds(clock)
      const alive = await run(storeTurns, {
        owner,
        nowSeconds,
        leaseUntil: nowSeconds + LEASE_SECONDS,
        turns: batch.map(({ turn: _turn, ...changed }) => changed),
      })
      this.deps.onFlushed(clock.monotonic() - startedMs)
      this.isFailing = false
      this.hasFailed = false
      const aliveById = new Map(alive.map((turn) => [turn.id, turn]))
      for (const { turnId, turn, end, segments } of batch) {
        const found = aliveById.get(turnId)
        if (found !== undefined) turn.log.markStored(segments)
        if (end !== undefined || found === undefined) this.turns.delete(turnId)
        if (end !== undefined) this.settle(turnId, found?.status)
        if (found === undefined) {
          turn.onLost()
          void this.deps.data.discard(segments.flatMap(({ data }) => data))
        } else if (found.isCancelRequested) turn.onCancelRequested()
      }
      onStored(ids)
    } catch (error) {
      for (const id of ids) this.changed.add(id)
      if (!this.isFailing) log.warn({ err: error }, 'could not store conversations; will retry')
      this.isFailing = true
      clearTimeout(this.timer)
      this.hasFailed = true
      this.timer = setTimeout(() => this.onTimer(), RETRY_AFTER_MS)
    }
  }

  /** Returns what the turn must store; an empty list if another process has ended the turn. */
  private take(turnId: string) {
    this.urgent.delete(turnId)
    this.changed.delete(turnId)
    const turn = this.turns.get(turnId)
    if (turn === undefined) {
      this.settle(turnId, undefined)
      return []
    }
    return [{ turnId, turn, segments: turn.log.takeWaiting(), end: this.endings.get(turnId)?.end }]
  }

  private settle(turnId: string, status: EndedStatus | undefined): void {
    this.endings.get(turnId)?.done.resolve(status)
    this.endings.delete(turnId)
  }
}
