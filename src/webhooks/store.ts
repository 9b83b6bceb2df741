/** Reads and writes webhooks. */
import type { Selectable, Updateable } from 'kysely'
import type { Database } from '../db/database.ts'
import type { WebhookTable } from '../db/tables.ts'

export type WebhookRow = Selectable<WebhookTable>

export function listWebhookRows(db: Database, tenantId: string): Promise<WebhookRow[]> {
  return db
    .selectFrom('webhooks')
    .selectAll()
    .where('tenant', '=', tenantId)
    .orderBy('created_at')
    .orderBy('id')
    .execute()
}

export function listAllWebhookRows(db: Database): Promise<WebhookRow[]> {
  return db.selectFrom('webhooks').selectAll().orderBy('tenant').orderBy('created_at').execute()
}

export function findWebhookRow(db: Database, id: string, tenantId?: string): Promise<WebhookRow | undefined> {
  let query = db.selectFrom('webhooks').selectAll().where('id', '=', id)
  if (tenantId !== undefined) query = query.where('tenant', '=', tenantId)
  return query.executeTakeFirst()
}

export async function insertWebhookRow(db: Database, row: WebhookRow): Promise<void> {
  await db.insertInto('webhooks').values(row).execute()
}

export function updateWebhookRow(
  db: Database,
  id: string,
  changes: Updateable<WebhookTable>,
): Promise<WebhookRow | undefined> {
  return db.updateTable('webhooks').set(changes).where('id', '=', id).returningAll().executeTakeFirst()
}

export async function deleteWebhookRows(db: Database, ids: readonly string[]): Promise<void> {
  await db.deleteFrom('webhooks').where('id', 'in', ids).execute()
}

/**
 * Records `at` as the start of a webhook's failures, unless it is already failing. Returns the recorded
 * start.
 */
export async function markFailing(db: Database, id: string, at: number): Promise<number> {
  const row = await db
    .updateTable('webhooks')
    .set((eb) => ({ failing_since: eb.fn.coalesce('failing_since', eb.lit(at)) }))
    .where('id', '=', id)
    .returning('failing_since')
    .executeTakeFirst()
  return row?.failing_since ?? at
}

export async function markWorking(db: Database, id: string): Promise<void> {
  await db
    .updateTable('webhooks')
    .set({ failing_since: null })
    .where('id', '=', id)
    .where('failing_since', 'is not', null)
    .execute()
}

export async function moveWebhookRows(db: Database, from: string, to: string): Promise<void> {
  await db.updateTable('webhooks').set({ tenant: to }).where('tenant', '=', from).execute()
}
