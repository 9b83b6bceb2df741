/** Applies reservations, settlements and expiries to the counters of budgets in one transaction. */
import type { Database } from '../../db/database.ts'
import type { ServiceError } from '../../lib/errors.ts'
import type { Random } from '../../lib/ids.ts'
import { amountOf } from '../../prices/worst-case.ts'
import {
  type CounterKey,
  type CounterRow,
  deleteReservations,
  insertReservations,
  listByIds,
  listReservations,
  lockCounters,
  markBooked,
  type ReservationRow,
  sumGrants,
  updateCounter,
} from '../budget-store.ts'
import { type EventRow, insertEvents } from '../events/outbox.ts'
import { reportThresholds } from '../events/report.ts'
import type { Spent } from '../grants.ts'
import {
  type Asked,
  type BudgetState,
  type Decision,
  decide,
  needOf,
  toRefusal,
  toUnpricedError,
  type Unpriced,
  wouldRefuse,
} from './decide.ts'

/** A counter that a call affects. */
export type AppliedCounter = CounterKey & Pick<CounterRow, 'ends_at'>

export interface ReserveOperation {
  readonly kind: 'reserve'
  readonly id: string
  readonly applied: readonly AppliedCounter[]
  readonly asked: Asked
}

export interface SettleOperation {
  readonly kind: 'settle'
  /** The reservation's id; undefined if no budget applied when the call began. */
  readonly id: string | undefined
  /** The budgets that apply now, including those of the reservation. */
  readonly applied: readonly AppliedCounter[]
  readonly reserved: ReadonlySet<string>
  readonly spent: Spent
  /** True if an earlier attempt failed, which may nevertheless have been committed. */
  readonly isRetry: boolean
}

export interface ExpireOperation {
  readonly kind: 'expire'
  readonly ids: readonly string[]
  readonly applied: readonly CounterKey[]
}

export type Operation = ReserveOperation | SettleOperation | ExpireOperation

export type ReserveOutcome =
  /** `outputTokens` undefined: all the budgets have been deleted. */
  | { readonly kind: 'granted'; readonly outputTokens: number | undefined; readonly isLimited: boolean }
  | { readonly kind: 'wait' }
  | {
      readonly kind: 'refused'
      readonly error: ServiceError
      readonly scope: string
      readonly reason: 'insufficient_quota' | 'budget_reserved' | Unpriced['code']
    }

/** Reports that a counter was deleted after it was inserted; the transaction can be repeated. */
export class CounterMissing extends Error {
  override readonly name = 'CounterMissing'
}

export function nameOf({ budget_id, subject, starts_at }: CounterKey): string {
  return `${budget_id} ${starts_at} ${subject}`
}

/**
 * Lists the counters that an operation needs. The counters of its reservation may have been deleted with their
 * visitor or conversation, and must not be created again.
 */
export function listRequired(operation: Operation): readonly AppliedCounter[] {
  if (operation.kind === 'expire') return []
  if (operation.kind === 'reserve') return operation.applied
  return operation.applied.filter((counter) => !operation.reserved.has(nameOf(counter)))
}

interface Moment {
  readonly nowMs: number
  readonly processId: string
  readonly expiresAt: number
  readonly random: Random
}

/** Sums above cannot be represented exactly; a provider's usage can be arbitrarily large. */
const MOST = BigInt(Number.MAX_SAFE_INTEGER)

interface Account {
  readonly state: Omit<BudgetState, 'booked' | 'reserved'>
  readonly row: CounterRow
  booked: bigint
  reserved: bigint
  refused: number
  /** Whether it has rejected a call because it is used up. */
  isExhausted: boolean
  isChanged: boolean
}

/** The locked counters of one transaction; `write` stores what the operations have changed. */
export class Ledger {
  private readonly trx: Database
  private readonly moment: Moment
  private readonly accounts: ReadonlyMap<string, Account>
  private readonly reservations: ReadonlyMap<string, readonly ReservationRow[]>
  private readonly newReservations: ReservationRow[] = []
  private readonly settled: string[] = []
  private readonly expired: string[] = []
  /** Counters for which an earlier call waits. */
  private readonly awaited = new Set<string>()

  private constructor(
    trx: Database,
    moment: Moment,
    accounts: ReadonlyMap<string, Account>,
    reservations: readonly ReservationRow[],
  ) {
    this.trx = trx
    this.moment = moment
    this.accounts = accounts
    this.reservations = Map.groupBy(reservations, ({ id }) => id)
  }

  /** Locks the counters of the operations. @throws CounterMissing */
  static async open(trx: Database, operations: readonly Operation[], moment: Moment): Promise<Ledger> {
    const keys = operations.flatMap(({ applied }): readonly CounterKey[] => applied)
    if (keys.length === 0) return new Ledger(trx, moment, new Map(), [])
    const rows = await lockCounters(trx, keys)
    const budgets = new Map((await listByIds(trx, idsOf(keys))).map((budget) => [budget.id, budget]))
    const grants = new Map<string, number>()
    for (const grant of await sumGrants(trx, idsOf(keys), Math.floor(moment.nowMs / 1000)))
      grants.set(nameOf(grant), Number(grant.amount))
    const accounts = new Map<string, Account>()
    for (const row of rows) {
      const budget = budgets.get(row.budget_id)
      if (budget === undefined) continue
      const limit = BigInt(budget.amount) + BigInt(grants.get(nameOf(row)) ?? 0)
      const amounts = { booked: BigInt(row.booked), reserved: BigInt(row.reserved), refused: row.refused }
      const state = { budget, limit, endsAt: row.ends_at }
      accounts.set(nameOf(row), { state, row, ...amounts, isExhausted: false, isChanged: false })
    }
    const isMissing = (key: CounterKey) => budgets.has(key.budget_id) && !accounts.has(nameOf(key))
    if (operations.flatMap(listRequired).some(isMissing)) throw new CounterMissing()
    const ids = operations.flatMap((each) =>
      each.kind === 'expire' ? each.ids : each.kind === 'settle' ? (each.id ?? []) : [],
    )
    return new Ledger(trx, moment, accounts, await listReservations(trx, ids))
  }

  /** `mayWait` is false if the call has waited long enough. Calls must be passed in order of arrival. */
  reserve({ id, applied, asked }: ReserveOperation, mayWait: boolean): ReserveOutcome {
    const accounts = applied.flatMap((counter) => this.accounts.get(nameOf(counter)) ?? [])
    if (accounts.length === 0) return { kind: 'granted', outputTokens: undefined, isLimited: false }
    const decision = decide(accounts.map(toState), asked, mayWait)
    const names = accounts
      .filter(({ state }) => state.budget.mode === 'enforce')
      .map(({ row }) => nameOf(row))
    const isBehind = mayWait && names.some((name) => this.awaited.has(name))
    if (decision.kind === 'refused' || decision.kind === 'unpriced') {
      const refusing = accounts.find(({ state }) => state.budget === decision.by.budget)
      const isSpent = decision.kind === 'refused' && !decision.isReserved
      if (refusing !== undefined) countRefusal(refusing, isSpent)
      return this.refuse(decision, asked)
    }
    if (decision.kind === 'wait' || isBehind) {
      for (const name of names) this.awaited.add(name)
      return { kind: 'wait' }
    }
    const { processId: process_id, expiresAt: expires_at } = this.moment
    for (const account of accounts) {
      const need = needOf(asked, account.state.budget)
      const reserved = need === undefined ? 0n : amountOf(need, decision.outputTokens)
      if (account.state.budget.mode === 'observe' && wouldRefuse(toState(account), asked))
        countRefusal(account, need !== undefined)
      this.change(account, 0n, reserved)
      const { budget_id, subject, starts_at } = account.row
      const amount = Number(within(reserved))
      this.newReservations.push({ id, budget_id, subject, starts_at, amount, process_id, expires_at })
    }
    return decision
  }

  private refuse(
    decision: Extract<Decision, { kind: 'refused' | 'unpriced' }>,
    asked: Asked,
  ): ReserveOutcome {
    const scope = decision.by.budget.scope_kind
    if (decision.kind === 'unpriced') {
      const { missing } = decision
      return { kind: 'refused', error: toUnpricedError(missing), reason: missing.code, scope }
    }
    const error = toRefusal(decision, asked, this.moment.nowMs)
    const reason = decision.isReserved ? 'budget_reserved' : 'insufficient_quota'
    return { kind: 'refused', error, reason, scope }
  }

  /** Replaces what the call has reserved with what it has used. */
  settle({ id, applied, reserved, spent, isRetry }: SettleOperation): void {
    const rows = this.reservations.get(id ?? '') ?? []
    // An earlier attempt was committed although its result was lost.
    if (isRetry && id !== undefined && rows.length === 0) return
    const rowOf = new Map(rows.map((row) => [nameOf(row), row]))
    for (const counter of applied) {
      const name = nameOf(counter)
      const account = this.accounts.get(name)
      const row = rowOf.get(name)
      if (account === undefined || (row === undefined && reserved.has(name))) continue
      const amount = spent[account.state.budget.unit]
      const held = BigInt(row?.amount ?? 0)
      // A reservation that has expired is already booked.
      if (row?.process_id === '') this.change(account, amount - held, 0n)
      else this.change(account, amount, -held)
    }
    if (id !== undefined) this.settled.push(id)
  }

  /** Books reservations that no process has renewed, because their providers may charge for the calls. */
  expire({ ids }: ExpireOperation): void {
    const nowSeconds = this.moment.nowMs / 1000
    for (const id of ids) {
      for (const row of this.reservations.get(id) ?? []) {
        if (row.process_id === '' || row.expires_at > nowSeconds) continue
        const account = this.accounts.get(nameOf(row))
        if (account !== undefined) this.change(account, BigInt(row.amount), -BigInt(row.amount))
        this.expired.push(id)
      }
    }
  }

  async write(): Promise<void> {
    const moment = { random: this.moment.random, nowSeconds: Math.floor(this.moment.nowMs / 1000) }
    const allEvents: EventRow[] = []
    for (const account of this.accounts.values()) {
      const { state, row, booked, reserved, refused, isChanged } = account
      if (!isChanged) continue
      const { warned, events } = reportThresholds({ ...account, ...state }, moment)
      allEvents.push(...events)
      const amounts = { booked: Number(booked), reserved: Number(reserved), refused, warned }
      await updateCounter(this.trx, { ...row, ...amounts })
    }
    await insertEvents(this.trx, allEvents)
    await insertReservations(this.trx, this.newReservations)
    await deleteReservations(this.trx, this.settled)
    await markBooked(this.trx, [...new Set(this.expired)])
  }

  private change(account: Account, booked: bigint, reserved: bigint): void {
    account.booked = within(account.booked + booked)
    account.reserved = within(account.reserved + reserved)
    account.isChanged = true
  }
}

function idsOf(keys: readonly CounterKey[]): string[] {
  return [...new Set(keys.map(({ budget_id }) => budget_id))]
}

function within(amount: bigint): bigint {
  return amount < 0n ? 0n : amount > MOST ? MOST : amount
}

function toState({ state, booked, reserved }: Account): BudgetState {
  return { ...state, booked, reserved }
}

/** `isSpent` is false if the price is unknown, or if other calls have reserved the rest. */
function countRefusal(account: Account, isSpent: boolean): void {
  account.refused += 1
  if (isSpent) account.isExhausted = true
  account.isChanged = true
}
