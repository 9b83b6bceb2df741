/** Deletes the data of one visitor in batches, and records how much was deleted. */
import { hash } from 'node:crypto'
import type { Selectable } from 'kysely'
import type { ConversationDb, ErasureTable } from '../../db/open.ts'
import { insertDeliveries } from '../../webhooks/deliveries.ts'
import type { NewDelivery } from '../../webhooks/events.ts'
import type { Deletion } from '../webhooks/events.ts'
import { deleteConversationRows } from './rows.ts'

export type ErasureRow = Selectable<ErasureTable>

export type ErasureCounts = typeof noCounts

export const noCounts = {
  conversations: 0,
  turns: 0,
  items: 0,
  events: 0,
  search: 0,
  blobs: 0,
  ratings: 0,
  notes: 0,
  deliveries: 0,
}

export async function insertErasure(db: ConversationDb, row: ErasureRow): Promise<void> {
  await db.insertInto('erasures').values(row).execute()
}

export function findErasure(
  db: ConversationDb,
  tenantId: string,
  id: string,
): Promise<ErasureRow | undefined> {
  return db
    .selectFrom('erasures')
    .selectAll()
    .where('tenant', '=', tenantId)
    .where('id', '=', id)
    .executeTakeFirst()
}

export function findErasureOf(
  db: ConversationDb,
  tenantId: string,
  visitorId: string,
): Promise<ErasureRow | undefined> {
  return db
    .selectFrom('erasures')
    .selectAll()
    .where('tenant', '=', tenantId)
    .where('visitor_id', '=', visitorId)
    .orderBy('started_at', 'desc')
    .limit(1)
    .executeTakeFirst()
}

/**
 * Returns whether an erasure of the visitor has been started; the visitor's tokens are then no longer valid.
 */
export async function isErased(db: ConversationDb, visitorId: string): Promise<boolean> {
  const row = await db
    .selectFrom('erasures')
    .select('id')
    .where('visitor_id', '=', visitorId)
    .limit(1)
    .executeTakeFirst()
  return row !== undefined
}

/** Lists up to 100 unfinished erasures whose lease has ended. */
export function listUnfinishedErasures(db: ConversationDb, nowSeconds: number): Promise<ErasureRow[]> {
  return db.selectFrom('erasures').selectAll().where('lease_until', '<', nowSeconds).limit(100).execute()
}

/** Claims an erasure until `until` (Unix seconds). Returns false if another process has claimed it first. */
export async function claimErasure(
  db: ConversationDb,
  { id, lease_until }: Pick<ErasureRow, 'id' | 'lease_until'>,
  until: number,
): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('erasures')
    .set({ lease_until: until })
    .where('id', '=', id)
    .where('lease_until', '=', lease_until)
    .executeTakeFirst()
  return numUpdatedRows > 0n
}

export async function listConversationIds(
  db: ConversationDb,
  { tenant, visitor_id }: Pick<ErasureRow, 'tenant' | 'visitor_id'>,
  limit: number,
): Promise<string[]> {
  const rows = await db
    .selectFrom('conversations')
    .select('id')
    .where('tenant', '=', tenant)
    .where('visitor_id', '=', visitor_id)
    .limit(limit)
    .execute()
  return rows.map(({ id }) => id)
}

interface Batch {
  readonly ids: readonly string[]
  readonly deletion: Deletion
  /** The end of the new lease (Unix seconds). */
  readonly until: number
}

/**
 * Deletes conversations with everything that belongs to them, and adds the numbers of deleted rows to the
 * erasure.
 */
export async function eraseConversations(
  trx: ConversationDb,
  erasureId: string,
  { ids, deletion, until }: Batch,
): Promise<void> {
  const { counts, conversations } = await trx
    .selectFrom('erasures')
    .select(['counts', 'conversations'])
    .where('id', '=', erasureId)
    .executeTakeFirstOrThrow()
  const found = await countRows(trx, ids)
  await trx.deleteFrom('webhook_deliveries').where('conversation_id', 'in', ids).execute()
  await deleteConversationRows(trx, ids, deletion)
  const before: ErasureCounts = JSON.parse(counts)
  const kinds = Object.keys(noCounts) as (keyof ErasureCounts)[]
  const sums = Object.fromEntries(kinds.map((kind) => [kind, before[kind] + found[kind]]))
  await trx
    .updateTable('erasures')
    .set({
      counts: JSON.stringify(sums),
      conversations: JSON.stringify([...JSON.parse(conversations), ...ids]),
      lease_until: until,
    })
    .where('id', '=', erasureId)
    .execute()
}

async function countRows(trx: ConversationDb, ids: readonly string[]): Promise<ErasureCounts> {
  const turns = trx.selectFrom('turns').select('turns.id').where('conversation_id', 'in', ids)
  const count = async (
    table:
      | 'conversations'
      | 'turns'
      | 'items'
      | 'item_texts'
      | 'item_data'
      | 'conversation_notes'
      | 'webhook_deliveries',
  ) => {
    const by = table === 'conversations' ? 'conversations.id' : `${table}.conversation_id`
    const { n } = await trx
      .selectFrom(table)
      .select(({ fn }) => fn.countAll<number>().as('n'))
      .where(by as 'turns.conversation_id', 'in', ids)
      .executeTakeFirstOrThrow()
    return Number(n)
  }
  const countOfTurns = async (table: 'turn_events' | 'ratings') => {
    const { n } = await trx
      .selectFrom(table)
      .select(({ fn }) => fn.countAll<number>().as('n'))
      .where(`${table}.turn_id` as 'ratings.turn_id', 'in', turns)
      .executeTakeFirstOrThrow()
    return Number(n)
  }
  return {
    conversations: await count('conversations'),
    turns: await count('turns'),
    items: await count('items'),
    events: await countOfTurns('turn_events'),
    search: await count('item_texts'),
    blobs: await count('item_data'),
    ratings: await countOfTurns('ratings'),
    notes: await count('conversation_notes'),
    deliveries: await count('webhook_deliveries'),
  }
}

export async function deleteVisitor(
  db: ConversationDb,
  { tenant, visitor_id }: Pick<ErasureRow, 'tenant' | 'visitor_id'>,
): Promise<void> {
  await db.deleteFrom('visitors').where('tenant', '=', tenant).where('id', '=', visitor_id).execute()
}

/** Ends an erasure, and stores its webhook events. Does nothing if another process has ended it. */
export async function finishErasure(
  trx: ConversationDb,
  id: string,
  { nowSeconds, deliveries }: { readonly nowSeconds: number; readonly deliveries: readonly NewDelivery[] },
): Promise<void> {
  const row = await trx
    .selectFrom('erasures')
    .select('conversations')
    .where('id', '=', id)
    .where('status', '=', 'running')
    .executeTakeFirst()
  if (row === undefined) return
  const deleted: string[] = JSON.parse(row.conversations)
  await trx
    .updateTable('erasures')
    .set({
      status: 'done',
      conversations: '[]',
      digest: hash('sha256', deleted.toSorted().join('\n')),
      lease_until: null,
      finished_at: nowSeconds,
    })
    .where('id', '=', id)
    .execute()
  await insertDeliveries(trx, deliveries)
}
