/** Reads and writes the items of conversations. */
import type { ExpressionBuilder, Selectable } from 'kysely'
import { type ConversationDb, type ConversationTables, type ItemTable, insertRow } from '../db/open.ts'
import { type DataPlace, markDeletedData, type NewData, toDataRow } from './inline-data/data-rows.ts'
import type { PageOptions } from './store.ts'

const TITLE_LENGTH = 80
/** Only the start of a text is read, because splitting megabytes into characters takes a long time. */
const TITLE_SOURCE_LENGTH = 1_000

export type ItemRow = Selectable<ItemTable>

export type NewItem = Pick<ItemRow, 'id' | 'type' | 'role' | 'author' | 'status'> & {
  /** The item as in OpenAI's API. */
  readonly body: object
  readonly isForVisitor: boolean
  /** Whether later turns send the item to the model; true by default. */
  readonly isForModel?: boolean
  readonly authorName?: string | null
  /** Id that the client chose to identify a repeated request; unique in the conversation. */
  readonly clientId?: string
  /** Bytes added to the item's size for the part that is already stored as a blob. */
  readonly dataBytes?: number
  /** The visitor's uploads that the item contains; they are deleted with the item. */
  readonly uploadIds?: readonly string[]
}

/** Returns the sizes of items in bytes. */
export function sizesOf(items: readonly NewItem[]): number[] {
  return items.map(({ body }) => Buffer.byteLength(JSON.stringify(body)))
}

/** An item with its body as JSON text, as the row stores it. */
export type EncodedItem = Omit<NewItem, 'body' | 'dataBytes' | 'uploadIds'> & {
  readonly body: string
  /** The name of the called tool; null for items that are not calls. */
  readonly name: string | null
  readonly bytes: number
}

export function encodeItem({ dataBytes = 0, uploadIds: _, ...item }: NewItem): EncodedItem {
  const body = JSON.stringify(item.body)
  const { name } = item.body as { name?: unknown }
  const called = item.type === 'function_call' && typeof name === 'string' ? name : null
  return { ...item, body, name: called, bytes: Buffer.byteLength(body) + dataBytes }
}

/** Items in the form of their rows, and the blobs with their data. */
export interface EncodedItems {
  readonly items: readonly EncodedItem[]
  readonly data: readonly NewData[]
}

export function sumBytes(items: readonly EncodedItem[]): number {
  return items.reduce((sum, { bytes }) => sum + bytes, 0)
}

export interface ItemPlace extends DataPlace {
  readonly nowSeconds: number
}

/** Adds items at the end of a conversation, and returns the position of the last one; 0 without items. */
export async function insertItems(
  db: ConversationDb,
  place: ItemPlace,
  { items: encoded, data }: EncodedItems,
): Promise<number> {
  const { length } = encoded
  if (length === 0) return 0
  const { items: count } = await db
    .updateTable('conversations')
    .set((eb) => ({
      items: eb('items', '+', length),
      bytes: eb('bytes', '+', sumBytes(encoded)),
      revision: eb('revision', '+', 1),
    }))
    .where('id', '=', place.conversationId)
    .returning('items')
    .executeTakeFirstOrThrow()
  await insertItemRows(db, place, encoded, count)
  await insertDataRows(db, place, data)
  return count
}

/** Inserts items that the conversation's row already counts; `count` is that row's number of items. */
export async function insertItemRows(
  db: ConversationDb,
  { conversationId, turnId, nowSeconds }: ItemPlace,
  items: readonly EncodedItem[],
  count: number,
): Promise<void> {
  const first = count - items.length + 1
  for (const [index, { isForVisitor, isForModel = true, authorName, clientId, ...item }] of items.entries())
    await insertRow(db, 'items', {
      ...item,
      conversation_id: conversationId,
      turn_id: turnId,
      position: first + index,
      author_name: authorName ?? null,
      for_visitor: isForVisitor ? 1 : 0,
      for_model: isForModel ? 1 : 0,
      client_id: clientId ?? null,
      created_at: nowSeconds,
    })
}

export async function insertDataRows(
  db: ConversationDb,
  place: DataPlace,
  data: readonly NewData[],
): Promise<void> {
  for (const one of data) await insertRow(db, 'item_data', toDataRow(one, place))
}

/**
 * Inserts rows for the data in a turn's output. Skips existing rows, because a batch is repeated if its
 * answer is lost.
 */
export async function insertTurnData(
  db: ConversationDb,
  turnId: string,
  data: readonly NewData[],
): Promise<void> {
  const { conversation_id: conversationId } = await db
    .selectFrom('turns')
    .select('conversation_id')
    .where('id', '=', turnId)
    .executeTakeFirstOrThrow()
  await db
    .insertInto('item_data')
    .values(data.map((one) => toDataRow(one, { conversationId, turnId })))
    .onConflict((conflict) => conflict.doNothing())
    .execute()
}

export type ItemHead = Pick<ItemRow, 'n' | 'turn_id' | 'position' | 'type' | 'status' | 'for_model' | 'bytes'>

function selectHeads(db: ConversationDb) {
  return db
    .selectFrom('items')
    .select([
      'items.n',
      'items.turn_id',
      'items.position',
      'items.type',
      'items.status',
      'items.for_model',
      'items.bytes',
    ])
    .orderBy('items.position')
}

export function listItemHeadsOfTurns(db: ConversationDb, turnIds: readonly string[]): Promise<ItemHead[]> {
  return selectHeads(db).where('turn_id', 'in', turnIds).execute()
}

/** Lists the items of a conversation's main line, and those that were added outside of a turn. */
export function listMainItemHeads(db: ConversationDb, conversationId: string): Promise<ItemHead[]> {
  return selectHeads(db)
    .leftJoin('turns', 'turns.id', 'items.turn_id')
    .where('items.conversation_id', '=', conversationId)
    .where((eb) => eb.or([eb('items.turn_id', 'is', null), eb('turns.is_branch', '=', 0)]))
    .execute()
}

/**
 * Lists the items that were added to a conversation outside of a turn, before the last item of the turns
 * `mainIds`.
 */
export async function listItemHeadsOutsideTurns(
  db: ConversationDb,
  conversationId: string,
  mainIds: readonly string[],
): Promise<ItemHead[]> {
  if (mainIds.length === 0) return []
  return selectHeads(db)
    .where('conversation_id', '=', conversationId)
    .where('turn_id', 'is', null)
    .where('position', '<', (eb) =>
      eb
        .selectFrom('items')
        .select((max) => max.fn.max('position').as('last'))
        .where('turn_id', 'in', mainIds),
    )
    .execute()
}

/** Fewer than the parameters that the databases accept in one statement. */
const MOST_PARAMETERS = 500

/** Returns the items with their contents, in the order of `heads`. */
export async function listItems(db: ConversationDb, heads: readonly ItemHead[]): Promise<ItemRow[]> {
  const rows: ItemRow[] = []
  for (let from = 0; from < heads.length; from += MOST_PARAMETERS) {
    const numbers = heads.slice(from, from + MOST_PARAMETERS).map(({ n }) => n)
    rows.push(...(await db.selectFrom('items').selectAll().where('n', 'in', numbers).execute()))
  }
  const places = new Map(heads.map(({ n }, place) => [n, place]))
  return rows.sort((one, other) => (places.get(one.n) as number) - (places.get(other.n) as number))
}

export function listItemsOfTurns(db: ConversationDb, turnIds: readonly string[]): Promise<ItemRow[]> {
  return db.selectFrom('items').selectAll().where('turn_id', 'in', turnIds).orderBy('position').execute()
}

/** Finds an item, and returns it with the agent and visitor of its conversation. */
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

/** Lists the heads of up to `limit` items after the position `after`. */
export function listItemPage(
  db: ConversationDb,
  conversationId: string,
  { limit, after, order }: PageOptions,
): Promise<ItemHead[]> {
  let query = db
    .selectFrom('items')
    .select(['n', 'turn_id', 'position', 'type', 'status', 'for_model', 'bytes'])
    .where('conversation_id', '=', conversationId)
  if (after !== undefined) query = query.where('position', order === 'asc' ? '>' : '<', after)
  return query.orderBy('position', order).limit(limit).execute()
}

export async function deleteItemRow(db: ConversationDb, item: ItemRow): Promise<void> {
  await db.deleteFrom('items').where('n', '=', item.n).execute()
  await markDeletedData(db, 'item_id', [item.id])
  await db
    .updateTable('conversations')
    .set((eb) => ({ bytes: eb('bytes', '-', item.bytes), revision: eb('revision', '+', 1) }))
    .where('id', '=', item.conversation_id)
    .execute()
}

type TitledItem = Pick<NewItem, 'role' | 'author' | 'body'>

/** Returns the first 80 characters of the first user message; null if there is no text. */
export function titleOf(items: readonly TitledItem[]): string | null {
  const start = textOf(items).trimStart().slice(0, TITLE_SOURCE_LENGTH).toWellFormed()
  return [...start.replace(/[\s\p{Cc}]+/gu, ' ').trim()].slice(0, TITLE_LENGTH).join('') || null
}

/** Returns the text of the first user message; empty without one. */
export function textOf(items: readonly TitledItem[]): string {
  const first = items.find(({ role, author }) => role === 'user' && author !== 'service')
  const { content } = (first?.body ?? {}) as { content?: unknown }
  return Array.isArray(content)
    ? content.map((part) => (typeof part?.text === 'string' ? part.text : '')).join(' ')
    : String(content ?? '')
}

/**
 * Returns the condition that an item of a conversation does not belong to a replaced turn. With
 * `withVersions`, also includes the earlier versions of answers.
 */
export function isCurrentItem(db: ConversationDb, conversationId: string, withVersions = false) {
  const replaced = db
    .selectFrom('turns')
    .select('turns.id')
    .where('turns.conversation_id', '=', conversationId)
    .where('turns.replaced', 'is not', null)
    .$if(withVersions, (query) => query.where('turns.replaced', '!=', 'regenerated'))
  return (eb: ExpressionBuilder<ConversationTables, 'items'>) =>
    eb.or([eb('items.turn_id', 'is', null), eb('items.turn_id', 'not in', replaced)])
}

/** Derives the title again, because it may contain text of an item that was deleted or replaced. */
export async function updateTitle(db: ConversationDb, conversationId: string): Promise<void> {
  const first = await db
    .selectFrom('items')
    .select(['role', 'author', 'body'])
    .where('items.conversation_id', '=', conversationId)
    .where('role', '=', 'user')
    .where('author', '!=', 'service')
    .where(isCurrentItem(db, conversationId))
    .orderBy('position')
    .limit(1)
    .executeTakeFirst()
  const title = first === undefined ? null : titleOf([{ ...first, body: JSON.parse(first.body) }])
  await db.updateTable('conversations').set({ title }).where('id', '=', conversationId).execute()
}
