/** Reads and writes the items of conversations. */
import type { Selectable } from 'kysely'
import type { ConversationDb, ItemTable } from '../db/open.ts'
import type { PageOptions } from './store.ts'

export type ItemRow = Selectable<ItemTable>

/** An item before it has a place in a conversation. */
export type NewItem = Pick<ItemRow, 'id' | 'type' | 'role' | 'author' | 'status'> & {
  /** The item as in OpenAI's API. */
  readonly body: object
  readonly isForVisitor: boolean
  /** Chosen by the client, to recognize a repeated request; unique in the conversation. */
  readonly clientId?: string
}

/** Adds items at the end of a conversation, and returns their rows. */
export async function insertItems(
  db: ConversationDb,
  place: { conversationId: string; turnId: string | null; nowSeconds: number },
  items: readonly NewItem[],
): Promise<void> {
  if (items.length === 0) return
  const bodies = items.map(({ body }) => JSON.stringify(body))
  const sizes = bodies.map((body) => Buffer.byteLength(body))
  const { items: count } = await db
    .updateTable('conversations')
    .set((eb) => ({
      items: eb('items', '+', items.length),
      bytes: eb(
        'bytes',
        '+',
        sizes.reduce((sum, size) => sum + size, 0),
      ),
      revision: eb('revision', '+', 1),
    }))
    .where('id', '=', place.conversationId)
    .returning('items')
    .executeTakeFirstOrThrow()
  const first = count - items.length + 1
  await db
    .insertInto('items')
    .values(
      items.map(({ id, type, role, author, status, isForVisitor, clientId }, index) => ({
        id,
        type,
        role,
        author,
        status,
        conversation_id: place.conversationId,
        turn_id: place.turnId,
        position: first + index,
        author_name: null,
        for_visitor: isForVisitor ? 1 : 0,
        for_model: 1,
        client_id: clientId ?? null,
        body: bodies[index] as string,
        bytes: sizes[index] as number,
        created_at: place.nowSeconds,
      })),
    )
    .execute()
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
