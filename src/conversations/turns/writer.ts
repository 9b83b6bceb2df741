/** Stores the events of all running turns of this process in batches, and renews the turns' leases. */
import type { Logger } from 'pino'
import type { ConversationDb, ConversationStorage } from '../../db/open.ts'
import { type Clock, unixSeconds } from '../../lib/clock.ts'
import { insertEvents, renewLeases } from '../store.ts'
import type { TurnLog } from './log.ts'

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
  readonly turnId: string
  readonly write: (trx: ConversationDb) => Promise<void>
  readonly done: PromiseWithResolvers<void>
}

interface WriterDeps {
  readonly storage: ConversationStorage
  readonly clock: Clock
  readonly log: Logger
  readonly flushMs: number
  /** Identifies this process. */
  readonly owner: string
  /** Called with the turns of each commit. */
  readonly onStored: (turnIds: readonly string[]) => void
  /** Called with the duration of each commit in milliseconds. */
  readonly onFlushed: (durationMs: number) => void
}

/** Runs one transaction at a time. Events that arrive while it runs are stored in the next one. */
export class TurnWriter {
  private readonly deps: WriterDeps
  private readonly turns = new Map<string, WrittenTurn>()
  private readonly changed = new Set<string>()
  private endings: Ending[] = []
  private timer: NodeJS.Timeout | undefined
  private flushing: Promise<void> | undefined
  private isUrgent = false
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
    if (turn.log.waiting.entries.length > 0) this.onAppend(turn.log.turnId, false)
  }

  onAppend(turnId: string, isLarge: boolean): void {
    if (!this.turns.has(turnId)) return
    this.changed.add(turnId)
    this.schedule(isLarge ? 0 : this.deps.flushMs)
  }

  /** Stores the rest of a turn's events, then calls `write` in the same transaction, unless the turn was ended elsewhere. */
  end(turnId: string, write: Ending['write']): Promise<void> {
    const done = Promise.withResolvers<void>()
    this.endings.push({ turnId, write, done })
    this.changed.add(turnId)
    this.schedule(0)
    return done.promise
  }

  /** Whether the last transaction could be stored. */
  get health(): 'up' | 'down' {
    return this.hasFailed ? 'down' : 'up'
  }

  async close(): Promise<void> {
    clearInterval(this.renewing)
    this.isUrgent = true
    await this.flush()
    clearTimeout(this.timer)
  }

  private renewAll(): void {
    for (const id of this.turns.keys()) this.changed.add(id)
    if (this.changed.size > 0) this.schedule(0)
  }

  private schedule(afterMs: number): void {
    if (this.isFailing) return
    if (afterMs === 0) {
      if (this.isUrgent) return
      this.isUrgent = true
      queueMicrotask(() => void this.flush())
    } else this.timer ??= setTimeout(() => this.onTimer(), afterMs)
  }

  private onTimer(): void {
    this.timer = undefined
    this.isFailing = false
    this.isUrgent = true
    void this.flush()
  }

  private flush(): Promise<void> {
    this.flushing ??= this.flushAll()
    return this.flushing
  }

  private async flushAll(): Promise<void> {
    do {
      this.isUrgent = false
      clearTimeout(this.timer)
      this.timer = undefined
      await this.writeBatch()
    } while (this.isUrgent && !this.isFailing)
    // No code may run between the check and this line, because a request to flush could be lost.
    this.flushing = undefined
    if (this.changed.size > 0) this.schedule(this.deps.flushMs)
  }

  private async writeBatch(): Promise<void> {
    const { storage, clock, log, owner, onStored } = this.deps
    const ids = [...this.changed].filter((id) => this.turns.has(id))
    const endings = this.endings.splice(0)
    if (ids.length === 0) {
      // These turns were ended by another process.
      for (const { done } of endings) done.resolve()
      return
    }
    this.changed.clear()
    const runs = ids.map((id) => ({ turnId: id, ...(this.turns.get(id) as WrittenTurn).log.waiting }))
    const startedMs = clock.monotonic()
    try {
      const { write } = await storage.open()
      const alive = await write.transaction().execute(async (trx) => {
        const renewed = await renewLeases(trx, owner, ids, unixSeconds(clock) + LEASE_SECONDS)
        const byId = new Map(renewed.map((turn) => [turn.id, turn]))
        await insertEvents(
          trx,
          runs.filter(({ turnId }) => byId.has(turnId)),
        )
        for (const ending of endings) if (byId.has(ending.turnId)) await ending.write(trx)
        return byId
      })
      this.deps.onFlushed(clock.monotonic() - startedMs)
      this.isFailing = false
      this.hasFailed = false
      for (const { turnId, entries } of runs) {
        const turn = this.turns.get(turnId)
        const row = alive.get(turnId)
        if (row === undefined) {
          this.turns.delete(turnId)
          turn?.onLost()
        } else {
          turn?.log.markStored(entries.length)
          if (row.cancel_requested === 1) turn?.onCancelRequested()
        }
      }
      for (const { turnId, done } of endings) {
        this.turns.delete(turnId)
        done.resolve()
      }
      onStored(ids)
    } catch (error) {
      for (const id of ids) this.changed.add(id)
      this.endings.unshift(...endings)
      if (!this.isFailing) log.warn({ err: error }, 'could not store conversations; will retry')
      this.isFailing = true
      clearTimeout(this.timer)
      this.hasFailed = true
      this.timer = setTimeout(() => this.onTimer(), RETRY_AFTER_MS)
    }
  }
}
