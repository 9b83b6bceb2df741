/** Finds the budgets that apply to a call, reserves in them before each request to a provider, and settles. */
import type { KeyObject } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { ServiceError, toServiceError } from '../lib/errors.ts'
import { newId } from '../lib/ids.ts'
import { createTtlCache } from '../lib/ttl-cache.ts'
import { boundRequest, type CalledModel } from './bounds/request.ts'
import type { Promptlike } from './bounds/tokens.ts'
import { type BudgetRow, listApplying } from './budget-store.ts'
import { readCounters } from './counters.ts'
import type { Dependencies } from './dependencies.ts'
import { EventOutbox } from './events/outbox.ts'
import type { Grant, Spent } from './grants.ts'
import { createPeriods, type FindPeriod } from './periods.ts'
import { Gate } from './reservations/gate.ts'
import { type AppliedCounter, nameOf } from './reservations/ledger.ts'
import { toSubject } from './subjects.ts'

export type { CalledModel, Promptlike }

export interface Reservation {
  readonly grant: Grant
  /** True if the budgets grant fewer output tokens than the request asks for. */
  readonly isLimited: boolean
  /** Replaces what is reserved with what the request has spent; must be called once. Never rejects. */
  settle(spent: Spent): Promise<void>
}

/** The owners of the budgets that a call uses. */
export interface Spender {
  readonly tenantId: string
  readonly agentId: string | undefined
  /** Identifies the visitor of an agent's call; called only if a budget of visitors applies. */
  readonly findVisitor?: (() => Promise<string>) | undefined
  /** The stored conversation that the call continues. */
  readonly conversationId?: string | undefined
}

const REMEMBERED_MS = 2_000
const MOST_REMEMBERED = 20_000

type EnforcerDeps = Dependencies & { readonly subjectKey: KeyObject }

/** Budget changes by other processes take effect within two seconds. */
export class BudgetEnforcer {
  readonly gate: Gate
  readonly outbox: EventOutbox
  readonly findPeriod: FindPeriod
  private readonly deps: EnforcerDeps
  private readonly remembered
  /** The budgets that were found last; empty after a change. */
  private readonly found = new LRUCache<string, readonly BudgetRow[]>({
    // Unlike `max`, allocates memory only as entries are added.
    maxSize: MOST_REMEMBERED,
    sizeCalculation: () => 1,
  })
  private generation = 0

  constructor(deps: EnforcerDeps) {
    this.deps = deps
    this.outbox = new EventOutbox(deps)
    this.gate = new Gate(deps, this.outbox)
    this.findPeriod = createPeriods(deps.config.budgets.timeZone)
    this.remembered = createTtlCache<readonly BudgetRow[]>(deps.clock, {
      max: MOST_REMEMBERED,
      keepMs: () => REMEMBERED_MS,
    })
  }

  /**
   * Reserves the most that one request to a provider can use; waits while other calls have reserved the rest.
   * Returns undefined if no budget applies; this result is cached
   * for two seconds. @throws ServiceError `insufficient_quota`, `model_not_priced`, `content_not_priced`,
   * `service_unavailable`
   */
  reserve(
    spender: Spender,
    request: Promptlike,
    model: CalledModel,
    signal?: AbortSignal,
  ): Promise<Reservation | undefined> | undefined {
    const found = this.find(spender)
    if (found instanceof Promise)
      return found.then((budgets) =>
        budgets.length === 0 ? undefined : this.reserveIn(budgets, spender, request, model, signal),
      )
    return found.length === 0 ? undefined : this.reserveIn(found, spender, request, model, signal)
  }

  /** Books what a request without a reservation has used in budgets that were created while it ran. */
  book(spender: Spender, spent: Spent, admittedAtMs: number): Promise<void> | undefined {
    const found = this.find(spender)
    if (!(found instanceof Promise))
      return found.length === 0 ? undefined : this.bookIn(found, spender, spent, admittedAtMs)
    // Does not delay the answer; if the look-up fails, no budget was known when the call began.
    void found.then((budgets) => this.bookIn(budgets, spender, spent, admittedAtMs)).catch(() => {})
    return undefined
  }

  /**
   * Returns the percentage of its limit that the fullest budget of a call has booked or reserved, rounded
   * down; 0 if no budget applies. Reads the counters once.
   */
  async readUsedPercent(spender: Spender): Promise<number> {
    const budgets = await this.find(spender)
    if (budgets.length === 0) return 0
    const nowMs = this.deps.clock.now()
    const applied = await this.apply(budgets, spender, nowMs)
    if (applied.length === 0) return 0
    const counters = await readCounters(this.deps.db, applied, Math.floor(nowMs / 1000))
    const amountsOf = new Map(counters.map((counter) => [nameOf(counter), counter]))
    const limitOf = new Map(budgets.map(({ id, amount }) => [id, BigInt(amount)]))
    const percentages = applied.map((counter) => {
      const { used = 0n, granted = 0n } = amountsOf.get(nameOf(counter)) ?? {}
      return toPercent(used, (limitOf.get(counter.budget_id) ?? 0n) + granted)
    })
    return Math.max(...percentages)
  }

  /** Drops cached budgets; call this after every change to budgets. */
  invalidate(): void {
    this.generation += 1
    this.found.clear()
    this.remembered.invalidate()
  }

  private find({ tenantId, agentId }: Spender) {
    const key = `${tenantId}/${agentId ?? ''}`
    return this.remembered.get(key, () => this.load(key, tenantId, agentId))
  }

  /** If the database is unavailable, the budgets found last apply, so that calls without a budget continue. */
  private async load(
    key: string,
    tenantId: string,
    agentId: string | undefined,
  ): Promise<readonly BudgetRow[]> {
    const { generation } = this
    try {
      const budgets = await listApplying(this.deps.db, tenantId, agentId)
      if (generation === this.generation) this.found.set(key, budgets)
      return budgets
    } catch (thrown) {
      const found = this.found.get(key)
      if (found === undefined || toServiceError(thrown).reason !== 'service_unavailable') throw thrown
      return found
    }
  }

  private async apply(
    budgets: readonly BudgetRow[],
    spender: Spender,
    atMs: number,
  ): Promise<AppliedCounter[]> {
    const applied: AppliedCounter[] = []
    for (const budget of budgets) {
      const subject = await this.subjectOf(budget, spender)
      if (subject === undefined) continue
      const { startsAt: starts_at, endsAt: ends_at } = this.findPeriod(budget.period, atMs)
      applied.push({ budget_id: budget.id, subject, starts_at, ends_at })
    }
    return applied
  }

  /** Returns undefined if the budget does not apply to the call. */
  private async subjectOf({ scope_kind }: BudgetRow, spender: Spender): Promise<string | undefined> {
    if (scope_kind !== 'visitor' && scope_kind !== 'conversation') return ''
    const id = scope_kind === 'visitor' ? await spender.findVisitor?.() : spender.conversationId
    // Stores a pseudonym, so that the counters do not identify visitors.
    return id === undefined ? undefined : toSubject(this.deps.subjectKey, scope_kind, id)
  }

  private async reserveIn(
    budgets: readonly BudgetRow[],
    spender: Spender,
    request: Promptlike,
    called: CalledModel,
    signal: AbortSignal | undefined,
  ): Promise<Reservation | undefined> {
    const { clock, config, random } = this.deps
    const admittedAtMs = clock.now()
    const applied = await this.apply(budgets, spender, admittedAtMs)
    if (applied.length === 0) return undefined
    const enforcing = new Set(budgets.filter(({ mode }) => mode === 'enforce').map(({ id }) => id))
    const isEnforced = applied.some(({ budget_id }) => enforcing.has(budget_id))
    const metering = isEnforced ? called.metering : 'reported'
    const model = { ...called, metering }
    const { asked, need, cost } = await boundRequest(request, model, {
      outputTokens: config.limits.budgetOutputTokens,
      fewestTokens: config.budgets.minOutputTokens,
    })
    const id = newId('', 20, random)
    const outcome = await this.gate
      .reserve({ kind: 'reserve', id, applied, asked }, signal)
      .catch((thrown) => {
        if (budgets.every(({ mode }) => mode === 'observe') && isUnavailable(thrown)) return undefined
        throw thrown
      })
    if (outcome?.outputTokens === undefined) return undefined
    const reserved = new Set(applied.map(nameOf))
    return {
      grant: { need, outputTokens: outcome.outputTokens, metering, isEnforced, cost },
      isLimited: outcome.isLimited,
      settle: async (spent) => {
        const all = await this.addCurrent(applied, reserved, spender, admittedAtMs)
        await this.gate.settle({ kind: 'settle', id, applied: all, reserved, spent, isRetry: false })
      },
    }
  }

  /** Adds the budgets that were created after the call began. */
  private async addCurrent(
    applied: readonly AppliedCounter[],
    reserved: ReadonlySet<string>,
    spender: Spender,
    atMs: number,
  ): Promise<readonly AppliedCounter[]> {
    try {
      const current = await this.apply(await this.find(spender), spender, atMs)
      return [...applied, ...current.filter((counter) => !reserved.has(nameOf(counter)))]
    } catch {
      // The reservation must be settled even if the database cannot be read now.
      return applied
    }
  }

  private async bookIn(
    budgets: readonly BudgetRow[],
    spender: Spender,
    spent: Spent,
    atMs: number,
  ): Promise<void> {
    const applied = await this.apply(budgets, spender, atMs)
    if (applied.length === 0) return
    const reserved: ReadonlySet<string> = new Set()
    await this.gate.settle({ kind: 'settle', id: undefined, applied, reserved, spent, isRetry: false })
  }
}

/** A limit of 0 is always used up. */
function toPercent(used: bigint, limit: bigint): number {
  return limit <= 0n ? 100 : Number((used * 100n) / limit)
}

function isUnavailable(thrown: unknown): boolean {
  return thrown instanceof ServiceError && thrown.reason === 'service_unavailable'
}
