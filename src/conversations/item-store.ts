/** Reads and writes the items of conversations. */
import type { Selectable } from 'kysely'
import { type ConversationDb, type ItemTable, insertRow } from '../db/open.ts'
import type { PageOptions } from './store.ts'

export type ItemRow = Selectable<ItemTable>

/** An item before it has a place in a conversation. */
export type NewItem = Pick<ItemRow, 'id' | 'type' | 'role' | 'author' | 'status'> & {
  /** The item as in OpenAI's API. */
  readonly body: object
  readonly isForVisitor: boolean
}

/** An item as its row contains it. */
export type EncodedItem = Omit<NewItem, 'body'> & { readonly body: string; readonly bytes: number }

export function encodeItem(item: NewItem): EncodedItem {
  const body = JSON.stringify(item.body)
  return { ...item, body, bytes: Buffer.byteLength(body) }
}

export function sumBytes(items: readonly EncodedItem[]): number {
  return items.reduce((sum, { bytes }) => sum + bytes, 0)
}

export interface ItemPlace {
  readonly conversationId: string
  readonly turnId: string | null
  readonly nowSeconds: number
}

/** Adds items at the end of a conversation. */
export async function insertItems(
  db: ConversationDb,
  place: ItemPlace,
  items: readonly NewItem[],
): Promise<void> {
  if (items.length === 0) return
  const encoded = items.map(encodeItem)
  const { items: count } = await db
    .updateTable('conversations')
    .set((eb) => ({
      items: eb('items', '+', items.length),
      bytes: eb('bytes', '+', sumBytes(encoded)),
      revision: eb('revision', '+', 1),
    }))
    .where('id', '=', place.conversationId)
    .returning('items')
    .executeTakeFirstOrThrow()
  await insertItemRows(db, place, encoded, count)
}

/** Inserts the last rows of a conversation that already counts them; `count` is the number of all its items. */
export async function insertItemRows(
  db: ConversationDb,
  { conversationId, turnId, nowSeconds }: ItemPlace,
  items: readonly EncodedItem[],
  count: number,
): Promise<void> {
  const first = count - items.length + 1
  for (const [index, { isForVisitor, ...item }] of items.entries())
    await insertRow(db, 'items', {
      ...item,
      conversation_id: conversationId,
      turn_id: turnId,
      position: first + index,
      author_name: null,
      for_visitor: isForVisitor ? 1 : 0,
      for_model: 1,
      client_id: null,
      created_at: nowSeconds,
    })
}

export function listItemsOfTurns(db: ConversationDb, turnIds: readonly string[]): Promise<ItemRow[]> {
  return db.selectFrom('items').selectAll().where('turn_id', 'in', turnIds).orderBy('position').execute()
}

export function listItems(db: ConversationDb, conversationId: string): Promise<ItemRow[]> {
  return db
    .selectFrom('items')
    .selectAll()
    .where('conversation_id', '=', conversationId)
    .orderBy('position')
    .execute()
}

/** Finds an item with the agent and visitor of its conversation. */
export function findItem(db: ConversationDb, tenant: string, id: string) {
  return db
    .selectFrom('items')
    .innerJoin('conversations', 'conversations.id', 'items.conversation_id')
    .selectAll('items')
    .select(['conversations.agent_id', 'conversations.visitor_id'])
    .where('conversations.tenant', '=', tenant)
    .where('items.id', '=', id)
    .executeTakeFirst()
}

export function findConversationItem(
  db: ConversationDb,
  conversationId: string,
  id: string,
): Promise<ItemRow | undefined> {
  return db
    .selectFrom('items')
    .selectAll()
    .where('conversation_id', '=', conversationId)
    .where('id', '=', id)
    .executeTakeFirst()
}

export function listItemPage(
  db: ConversationDb,
  conversationId: string,
  { limit, after, order }: PageOptions,
): Promise<ItemRow[]> {
  let query = db.selectFrom('items').selectAll().where('conversation_id', '=', conversationId)
  if (after !== undefined) query = query.where('position', order === 'asc' ? '>' : '<', after)
  return query.orderBy('position', order).limit(limit).execute()
}

export async function deleteItemRow(db: ConversationDb, item: ItemRow): Promise<void> {
  await db.deleteFrom('items').where('n', '=', item.n).execute()
  await db
    .updateTable('conversations')
    .set((eb) => ({ bytes: eb('bytes', '-', item.bytes), revision: eb('revision', '+', 1) }))
    .where('id', '=', item.conversation_id)
    .execute()
}
