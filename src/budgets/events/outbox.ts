/** Stores events of budgets with the changes that cause them, until webhooks take them over. */
import { createHash } from 'node:crypto'
import type { Selectable } from 'kysely'
import type { Database } from '../../db/database.ts'
import type { BudgetEventTable } from '../../db/tables.ts'
import { type Clock, unixSeconds } from '../../lib/clock.ts'

export type EventRow = Selectable<BudgetEventTable>

/** The same format as the ids of other deliveries. */
export const EVENT_PREFIX = 'whd_'
export const EVENT_ID_LENGTH = 24
const DAY_SECONDS = 86_400
const KEPT_SECONDS = 8 * DAY_SECONDS
const PRUNE_BATCH = 500

/** A bound of a request that a provider has exceeded. */
export interface Violation {
  /** `input` and `output`: reported tokens; `bytes`: the bytes of the answer. */
  readonly kind: 'input' | 'output' | 'bytes'
  readonly bound: number
  readonly reported: number
}

export interface BoundViolation extends Violation {
  readonly provider: string
  readonly model: string
}

export async function insertEvents(trx: Database, rows: readonly EventRow[]): Promise<void> {
  if (rows.length === 0) return
  await trx
    .insertInto('budget_events')
    .values(rows)
    .onConflict((conflict) => conflict.doNothing())
    .execute()
}

export class EventOutbox {
  private readonly db: Database
  private readonly clock: Pick<Clock, 'now'>

  constructor({ db, clock }: { readonly db: Database; readonly clock: Pick<Clock, 'now'> }) {
    this.db = db
    this.clock = clock
  }

  /** Reports a violated bound to the operator, once a day for each provider, model and kind. */
  reportBoundViolation({ provider, model, kind, bound, reported }: BoundViolation): Promise<void> {
    const data = { provider, model, kind, bound, reported }
    return this.reportDaily('budget.bound_violated', [provider, model, kind], data)
  }

  /** Reports a model without a price to the operator, once a day for each model. */
  reportMissingPrice(provider: string, model: string): Promise<void> {
    return this.reportDaily('price.missing', [provider, model], { provider, model })
  }

  /** Lists events that no process has handed over, oldest first. */
  list(limit: number): Promise<EventRow[]> {
    return this.db
      .selectFrom('budget_events')
      .selectAll()
      .where('handed_at', 'is', null)
      .orderBy('created_at')
      .orderBy('id')
      .limit(limit)
      .execute()
  }

  async markHanded(ids: readonly string[]): Promise<void> {
    await this.db
      .updateTable('budget_events')
      .set({ handed_at: unixSeconds(this.clock) })
      .where('id', 'in', ids)
      .execute()
  }

  /** Deletes up to 500 events that are older than 8 days. */
  async deleteOld(): Promise<void> {
    const { db } = this
    const old = db
      .selectFrom('budget_events')
      .select('id')
      .where('created_at', '<', unixSeconds(this.clock) - KEPT_SECONDS)
      .limit(PRUNE_BATCH)
    await db.deleteFrom('budget_events').where('id', 'in', old).execute()
  }

  /** All replicas derive the same id, so that only the first of them stores the event. */
  private async reportDaily(type: string, about: readonly string[], data: object): Promise<void> {
    const created_at = unixSeconds(this.clock)
    const day = Math.floor(created_at / DAY_SECONDS)
    const digest = createHash('sha256').update(JSON.stringify([type, day, ...about]))
    const id = EVENT_PREFIX + digest.digest('hex').slice(0, EVENT_ID_LENGTH)
    const body = JSON.stringify(data)
    await insertEvents(this.db, [
      { id, parent_key_id: null, agent_id: '', type, body, created_at, handed_at: null },
    ])
  }
}
