/**
 * Adds the items of conversations to the search index. Their rows in the index are deleted with the items.
 */
import { type ConversationDb, insertRow, prepare } from '../../db/open.ts'
import { toShownItem } from '../feed/render.ts'
import type { ItemRow } from '../item-store.ts'
import { toWords } from './words.ts'

const ITEMS_AT_ONCE = 100

const selectMessagesOfTurn = prepare<{ readonly turnId: string }, ItemRow>((db, param) =>
  db.selectFrom('items').selectAll().where('turn_id', '=', param('turnId')).where('type', '=', 'message'),
)

export async function indexTurn(trx: ConversationDb, turnId: string): Promise<void> {
  const { rows } = await selectMessagesOfTurn(trx, { turnId })
  await insertTexts(trx, rows)
}

/** Indexes a conversation's items, starting at a position. */
export async function indexItemsFrom(
  trx: ConversationDb,
  conversationId: string,
  position: number,
): Promise<void> {
  const rows = await trx
    .selectFrom('items')
    .selectAll()
    .where('conversation_id', '=', conversationId)
    .where('position', '>=', position)
    .where('type', '=', 'message')
    .execute()
  await insertTexts(trx, rows)
}

/**
 * Indexes all items again, a few in each transaction, and calls `onProgress` with the number of items so far.
 */
export async function rebuildIndex(
  write: ConversationDb,
  onProgress: (items: number) => void = () => {},
): Promise<number> {
  let items = 0
  for (let after = 0; ; ) {
    const indexed = await write.transaction().execute((trx) => indexBatch(trx, after))
    items += indexed.items
    onProgress(items)
    if (indexed.last === undefined) return items
    after = indexed.last
  }
}

async function indexBatch(
  trx: ConversationDb,
  after: number,
): Promise<{ readonly items: number; readonly last: number | undefined }> {
  const rows = await trx
    .selectFrom('items')
    .leftJoin('turns', 'turns.id', 'items.turn_id')
    .selectAll('items')
    .select('turns.status as turn_status')
    .where('n', '>', after)
    .orderBy('n')
    .limit(ITEMS_AT_ONCE)
    .execute()
  const last = rows.at(-1)?.n
  if (last === undefined) return { items: 0, last }
  await trx.deleteFrom('item_texts').where('n', '>', after).where('n', '<=', last).execute()
  // The end of a running turn indexes its items.
  const ended = rows.filter(({ turn_status: status }) => status !== 'in_progress' && status !== 'queued')
  return { items: await insertTexts(trx, ended), last }
}

/** Indexes the words of messages. Returns the number of messages that contain any. */
async function insertTexts(trx: ConversationDb, rows: readonly ItemRow[]): Promise<number> {
  let count = 0
  for (const row of rows) {
    if (!isSaid(row)) continue
    const words = toWords(toShownItem(row).text ?? '')
    if (words.length === 0) continue
    await insertRow(trx, 'item_texts', {
      n: row.n,
      conversation_id: row.conversation_id,
      text: words.join(' '),
    })
    count += 1
  }
  return count
}

/** Whether an item is a message of the user or the assistant that the service did not write. */
function isSaid({ type, role, author }: ItemRow): boolean {
  return type === 'message' && (role === 'user' || role === 'assistant') && author !== 'service'
}
