/** Reads and writes webhook deliveries, which are stored with the conversations. */
import { type Selectable, sql } from 'kysely'
import type { ConversationDb, WebhookDeliveryTable } from '../db/open.ts'
import { pageOf } from '../lib/page.ts'
import { type NewDelivery, renderBody } from './events.ts'

export type DeliveryRow = Selectable<WebhookDeliveryTable>

/** SQLite accepts 32,766 values in a statement. */
const ROWS_PER_STATEMENT = 1_000

/**
 * Stores deliveries in the same transaction as the change that they report. `changed` adds data that is known
 * only in that transaction.
 */
export async function insertDeliveries(
  trx: ConversationDb,
  deliveries: readonly NewDelivery[],
  changed: Readonly<Record<string, unknown>> = {},
  nextAt?: number,
): Promise<void> {
  const rows = deliveries.map((delivery) => ({
    id: delivery.id,
    webhook_id: delivery.webhookId,
    conversation_id: delivery.conversationId,
    type: delivery.type,
    body: renderBody({ ...delivery, data: { ...delivery.data, ...changed } }),
    has_text: delivery.text === undefined ? 0 : 1,
    state: 'pending' as const,
    next_at: nextAt ?? delivery.createdAt,
    created_at: delivery.createdAt,
  }))
  for (let at = 0; at < rows.length; at += ROWS_PER_STATEMENT)
    await trx
      .insertInto('webhook_deliveries')
      .values(rows.slice(at, at + ROWS_PER_STATEMENT))
      // The transaction is repeated if the response to its commit is lost.
      .onConflict((conflict) => conflict.doNothing())
      .execute()
}

interface Claims {
  readonly nowSeconds: number
  /** The time at which another attempt may start if this process stops. */
  readonly until: number
  readonly limit: number
  /** Maximum number of deliveries to one webhook. */
  readonly limitEach: number
  /** Webhooks that already have enough running attempts. */
  readonly busy: readonly string[]
}

/** Claims due deliveries, so that no other process attempts them until the claim ends. */
export async function claimDeliveries(
  trx: ConversationDb,
  { nowSeconds, until, limit, limitEach, busy }: Claims,
): Promise<DeliveryRow[]> {
  const ranked = trx
    .selectFrom('webhook_deliveries')
    .select((eb) => [
      'id',
      'fence',
      'next_at',
      eb.fn
        .agg<number>('row_number')
        .over((over) => over.partitionBy('webhook_id').orderBy('next_at'))
        .as('place'),
    ])
    .where('next_at', '<=', nowSeconds)
    .$if(busy.length > 0, (query) => query.where('webhook_id', 'not in', busy))
  const due = trx
    .selectFrom(ranked.as('ranked'))
    .select(['id', 'fence'])
    .where('place', '<=', limitEach)
    .orderBy('next_at')
    .limit(limit)
  const claimed: DeliveryRow[] = []
  for (const { id, fence } of await due.execute()) {
    const row = await trx
      .updateTable('webhook_deliveries')
      .set({ next_at: until, fence: fence + 1 })
      .where('id', '=', id)
      .where('fence', '=', fence)
      .returningAll()
      .executeTakeFirst()
    if (row !== undefined) claimed.push(row)
  }
  return claimed
}

export interface Outcome {
  readonly state: DeliveryRow['state']
  readonly nextAt: number | null
  readonly status: number | null
  readonly error: string | null
}

/** Records an attempt. Returns false if the delivery was deleted or changed after it was claimed. */
export async function recordAttempt(
  db: ConversationDb,
  { id, fence }: Pick<DeliveryRow, 'id' | 'fence'>,
  { state, nextAt, status, error }: Outcome,
): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('webhook_deliveries')
    .set((eb) => ({
      state,
      attempt: eb('attempt', '+', 1),
      next_at: nextAt,
      last_status: status,
      last_error: error,
    }))
    .where('id', '=', id)
    .where('fence', '=', fence)
    .executeTakeFirst()
  return numUpdatedRows > 0n
}

/** Marks a disabled webhook's pending deliveries as failed. */
export async function failPending(db: ConversationDb, webhookId: string, error: string): Promise<void> {
  await db
    .updateTable('webhook_deliveries')
    .set((eb) => ({ state: 'failed', next_at: null, last_error: error, fence: eb('fence', '+', 1) }))
    .where('webhook_id', '=', webhookId)
    .where('state', '=', 'pending')
    .execute()
}

/** Makes a delivery due now, and resets its number of attempts. */
export function restartDelivery(
  db: ConversationDb,
  webhookId: string,
  id: string,
  nowSeconds: number,
): Promise<DeliveryRow | undefined> {
  return db
    .updateTable('webhook_deliveries')
    .set((eb) => ({ state: 'pending', attempt: 0, next_at: nowSeconds, fence: eb('fence', '+', 1) }))
    .where('webhook_id', '=', webhookId)
    .where('id', '=', id)
    .returningAll()
    .executeTakeFirst()
}

export function findDelivery(
  db: ConversationDb,
  webhookId: string,
  id: string,
): Promise<DeliveryRow | undefined> {
  return db
    .selectFrom('webhook_deliveries')
    .selectAll()
    .where('webhook_id', '=', webhookId)
    .where('id', '=', id)
    .executeTakeFirst()
}

export function listDeliveryRows(
  db: ConversationDb,
  webhookId: string,
  { limit, after }: { readonly limit: number; readonly after: DeliveryRow | undefined },
): Promise<DeliveryRow[]> {
  const rows = db.selectFrom('webhook_deliveries').selectAll().where('webhook_id', '=', webhookId)
  const place = after === undefined ? undefined : { key: after.created_at, id: after.id }
  return pageOf(rows, { by: sql.ref('created_at'), order: 'desc', after: place, limit }).execute()
}

export async function deleteDeliveriesOf(db: ConversationDb, webhookIds: readonly string[]): Promise<void> {
  if (webhookIds.length === 0) return
  await db.deleteFrom('webhook_deliveries').where('webhook_id', 'in', webhookIds).execute()
}

/** Deletes the deliveries that contain text from these conversations. */
export async function deleteTextsOf(trx: ConversationDb, conversationIds: readonly string[]): Promise<void> {
  await trx
    .deleteFrom('webhook_deliveries')
    .where('conversation_id', 'in', conversationIds)
    .where('has_text', '=', 1)
    .execute()
}

/**
 * Deletes up to `limit` deliveries that were created before `createdBefore` and are not pending. Returns how
 * many it deleted.
 */
export async function deleteOldDeliveries(
  trx: ConversationDb,
  createdBefore: number,
  limit: number,
): Promise<number> {
  const old = trx
    .selectFrom('webhook_deliveries')
    .select('id')
    .where('created_at', '<', createdBefore)
    .where('state', '!=', 'pending')
    .limit(limit)
  const { numDeletedRows } = await trx
    .deleteFrom('webhook_deliveries')
    .where('id', 'in', old)
    .executeTakeFirst()
  return Number(numDeletedRows)
}
