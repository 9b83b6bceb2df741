/**
 * Runs the reservations and settlements of this process in one transaction at a time, so that many calls
 * share one commit (ADR 0084).
 */
import { setImmediate } from 'node:timers/promises'
import { LRUCache } from 'lru-cache'
import { unixSeconds } from '../../lib/clock.ts'
import { ServiceError } from '../../lib/errors.ts'
import { newId } from '../../lib/ids.ts'
import {
  deleteBookedBefore,
  deleteCountersBefore,
  expireOthers,
  insertCounters,
  listByIds,
  listExpired,
  listReservations,
  renewReservations,
} from '../budget-store.ts'
import type { Dependencies } from '../dependencies.ts'
import type { EventOutbox } from '../events/outbox.ts'
import {
  type AppliedCounter,
  CounterMissing,
  type ExpireOperation,
  Ledger,
  listRequired,
  nameOf,
  type Operation,
  type ReserveOperation,
  type ReserveOutcome,
  type SettleOperation,
} from './ledger.ts'

/** Maximum number of operations in one transaction. */
const BATCH = 256
/** Seconds for which a reservation is valid without being renewed. */
const RESERVED_SECONDS = 60
const RENEW_EVERY_MS = 20_000
/** Calls wait for other processes' settlements too, which nothing announces. */
const RECHECK_EVERY_MS = 250
const RETRY_AFTER_MS = 1_000
const MAX_TRIES = 3
const MOST_COUNTERS = 20_000
/** Seconds for which a call can settle a reservation that has expired. */
const BOOKED_KEPT_SECONDS = 86_400

/** Counters of visitors and conversations are kept for 8 days after their period, others for 25 months. */
const SUBJECTS_KEPT_SECONDS = 8 * 86_400
const SCOPES_KEPT_SECONDS = 761 * 86_400
const PRUNE_BATCH = 500

type GrantedOutcome = Extract<ReserveOutcome, { kind: 'granted' }>

interface Waiting {
  readonly operation: ReserveOperation
  /** Monotonic milliseconds until which the call waits for others to settle. */
  readonly untilMs: number
  readonly sinceMs: number
  readonly resolve: (outcome: GrantedOutcome) => void
  readonly reject: (error: unknown) => void
}

interface Settling {
  operation: SettleOperation | ExpireOperation
  /** Called after the first attempt, even if it failed. */
  readonly onTried: () => void
}

type GateDeps = Pick<Dependencies, 'config' | 'db' | 'clock' | 'random' | 'log' | 'metrics'>

export class Gate {
  private readonly deps: GateDeps
  private readonly outbox: Pick<EventOutbox, 'deleteOld'>
  private readonly processId: string
  private readonly settling: Settling[] = []
  /** Calls that wait for a decision, in order of arrival. */
  private readonly waiting = new Set<Waiting>()
  /** Counters that exist in the database. */
  private readonly known = new LRUCache<string, true>({ max: MOST_COUNTERS })
  private running: Promise<void> | undefined
  private hasNew = false
  private recheck: NodeJS.Timeout | undefined
  private renewal: NodeJS.Timeout | undefined

  constructor(deps: GateDeps, outbox: Pick<EventOutbox, 'deleteOld'>) {
    this.deps = deps
    this.outbox = outbox
    this.processId = newId('', 12, deps.random)
  }

  /**
   * Waits until the budgets admit the call. @throws ServiceError `insufficient_quota`, the signal's reason,
   * or the database's error
   */
  async reserve(operation: ReserveOperation, signal: AbortSignal | undefined): Promise<GrantedOutcome> {
    signal?.throwIfAborted()
    const { promise, resolve, reject } = Promise.withResolvers<GrantedOutcome>()
    const { clock, config } = this.deps
    const sinceMs = clock.monotonic()
    const untilMs = sinceMs + config.budgets.waitMs
    const waiting: Waiting = { operation, untilMs, sinceMs, resolve, reject }
    this.waiting.add(waiting)
    const onAbort = () => {
      this.waiting.delete(waiting)
      reject(signal?.reason)
    }
    signal?.addEventListener('abort', onAbort, { once: true })
    this.run()
    try {
      return await promise
    } finally {
      signal?.removeEventListener('abort', onAbort)
    }
  }

  /** Resolves after the first attempt; a failed settlement is repeated in the background. */
  settle(operation: SettleOperation): Promise<void> {
    return this.submit(operation)
  }

  /** Returns the number of calls that wait for a decision. */
  readonly waitingCalls = (): number => this.waiting.size

  /** Books the reservations that have expired; returns their number. */
  async bookExpired(): Promise<number> {
    const { db, clock } = this.deps
    const ids = [...new Set((await listExpired(db, unixSeconds(clock), BATCH)).map(({ id }) => id))]
    if (ids.length === 0) return 0
    const applied = await listReservations(db, ids)
    await this.submit({ kind: 'expire', ids, applied })
    return ids.length
  }

  /** Starts to renew reservations. `isOnlyServer` books those of earlier processes immediately. */
  async start(isOnlyServer: boolean): Promise<void> {
    if (isOnlyServer) await expireOthers(this.deps.db, this.processId)
    this.renewal ??= setInterval(() => void this.maintain(), RENEW_EVERY_MS).unref()
    await this.maintain()
  }

  /** Stops renewing, and waits for running transactions. */
  async close(): Promise<void> {
    clearInterval(this.renewal)
    clearTimeout(this.recheck)
    while (this.running !== undefined) await this.running
  }

  /** Renews this process's reservations, books expired ones, and deletes old counters. Never rejects. */
  async maintain(): Promise<void> {
    const { db, clock, log } = this.deps
    const now = unixSeconds(clock)
    try {
      await renewReservations(db, this.processId, now + RESERVED_SECONDS)
      while ((await this.bookExpired()) === BATCH);
      await deleteBookedBefore(db, now - BOOKED_KEPT_SECONDS)
      await deleteCountersBefore(db, 'subjects', now - SUBJECTS_KEPT_SECONDS, PRUNE_BATCH)
      await deleteCountersBefore(db, 'scopes', now - SCOPES_KEPT_SECONDS, PRUNE_BATCH)
      await this.outbox.deleteOld()
    } catch (error) {
      log.warn({ err: error }, 'could not renew the reservations of budgets')
    }
  }

  private submit(operation: Settling['operation']): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.settling.push({ operation, onTried: resolve })
    this.run()
    return promise
  }

  private run(): void {
    this.hasNew = true
    this.running ??= this.runAll().finally(() => {
      this.running = undefined
      if (this.hasNew) this.run()
    })
  }

  private async runAll(): Promise<void> {
    while (this.hasNew) {
      // Waits for the other requests that the event loop has read, so that they share the transaction.
      await setImmediate()
      this.hasNew = false
      const waiting = [...this.waiting]
      for (let at = 0; at < waiting.length || this.settling.length > 0; ) {
        const settling = this.settling.splice(0, BATCH)
        const deciding = waiting.slice(at, at + BATCH - settling.length)
        at += deciding.length
        await this.runBatch(settling, deciding)
      }
    }
    clearTimeout(this.recheck)
    if (this.waiting.size > 0) this.recheck = setTimeout(() => this.run(), RECHECK_EVERY_MS).unref()
  }

  private async runBatch(settling: readonly Settling[], waiting: readonly Waiting[]): Promise<void> {
    try {
      const outcomes = await this.transact(settling, waiting)
      for (const [index, outcome] of outcomes.entries()) this.conclude(waiting[index] as Waiting, outcome)
    } catch (error) {
      for (const each of waiting) if (this.waiting.delete(each)) each.reject(toUnavailable(error))
      this.retryLater(settling, error)
    }
    for (const { onTried } of settling) onTried()
  }

  private conclude(waiting: Waiting, outcome: ReserveOutcome): void {
    if (outcome.kind === 'wait') return
    const isWanted = this.waiting.delete(waiting)
    const { metrics, clock } = this.deps
    metrics.budgetWait.observe((clock.monotonic() - waiting.sinceMs) / 1000)
    if (outcome.kind === 'refused') {
      metrics.budgetRefused(outcome.scope, outcome.reason)
      waiting.reject(outcome.error)
    } else if (isWanted) waiting.resolve(outcome)
    // The client has disconnected during the transaction.
    else this.giveBack(waiting.operation)
  }

  private giveBack({ id, applied }: ReserveOperation): void {
    const reserved = new Set(applied.map(nameOf))
    const spent = { tokens: 0n, usd: 0n }
    void this.submit({ kind: 'settle', id, applied, reserved, spent, isRetry: false })
  }

  private retryLater(settling: readonly Settling[], error: unknown): void {
    if (settling.length === 0) return
    this.deps.log.warn({ err: error, calls: settling.length }, 'could not settle budgets; will retry')
    for (const each of settling) {
      const { operation } = each
      if (operation.kind === 'settle') each.operation = { ...operation, isRetry: true }
    }
    setTimeout(() => {
      this.settling.push(...settling)
      this.run()
    }, RETRY_AFTER_MS).unref()
  }

  private async transact(
    settling: readonly Settling[],
    waiting: readonly Waiting[],
  ): Promise<readonly ReserveOutcome[]> {
    const { db, clock, random } = this.deps
    const { processId } = this
    const operations = [...settling, ...waiting].map(({ operation }): Operation => operation)
    for (let tries = 1; ; tries++) {
      try {
        await this.insertMissing(operations)
        return await db.transaction().execute(async (trx) => {
          const nowMs = clock.now()
          const expiresAt = Math.ceil(nowMs / 1000) + RESERVED_SECONDS
          const ledger = await Ledger.open(trx, operations, { nowMs, processId, expiresAt, random })
          for (const { operation } of settling)
            if (operation.kind === 'settle') ledger.settle(operation)
            else ledger.expire(operation)
          const outcomes = waiting.map(({ operation, untilMs }) =>
            ledger.reserve(operation, clock.monotonic() < untilMs),
          )
          await ledger.write()
          return outcomes
        })
      } catch (error) {
        if (tries === MAX_TRIES || !isRepeatable(error)) throw error
        this.known.clear()
      }
    }
  }

  /** Inserts the counters of new periods and subjects. */
  private async insertMissing(operations: readonly Operation[]): Promise<void> {
    const missing = new Map<string, AppliedCounter>()
    for (const counter of operations.flatMap(listRequired))
      if (!this.known.has(nameOf(counter))) missing.set(nameOf(counter), counter)
    if (missing.size === 0) return
    const { db } = this.deps
    const counters = [...missing.values()]
    const budgetIds = [...new Set(counters.map(({ budget_id }) => budget_id))]
    const live = new Set((await listByIds(db, budgetIds)).map(({ id }) => id))
    const insertable = counters.filter(({ budget_id }) => live.has(budget_id))
    if (insertable.length > 0) await insertCounters(db, insertable)
    for (const counter of insertable) this.known.set(nameOf(counter), true)
  }
}

/** A deadlock, a lost race with the deletion of a budget, or another process's change of the same rows. */
function isRepeatable(error: unknown): boolean {
  if (error instanceof CounterMissing) return true
  const code = String((error as { code?: unknown } | null)?.code)
  return /^40|^23503$|^SQLITE_BUSY|^SQLITE_CONSTRAINT_FOREIGNKEY$/.test(code)
}

/** Rejects the call, because an unchecked call could exceed its budgets. */
function toUnavailable(cause: unknown): unknown {
  if (cause instanceof ServiceError) return cause
  return new ServiceError('service_unavailable', 'The budgets cannot be checked at the moment; try again.', {
    retryAfterSeconds: 1,
    shouldRetry: true,
    cause,
  })
}
