/** Derives the titles of conversations from their items. */
import type { ConversationDb } from '../db/open.ts'
import type { NewItem } from './item-store.ts'

const TITLE_LENGTH = 80

type TitledItem = Pick<NewItem, 'role' | 'author' | 'body'>

/** Returns the start of the first message of a user; null without one. */
export function titleOf(items: readonly TitledItem[]): string | null {
  const first = items.find(({ role, author }) => role === 'user' && author !== 'service')
  if (first === undefined) return null
  const { content } = first.body as { content?: unknown }
  const text = Array.isArray(content)
    ? content.map((part) => (typeof part?.text === 'string' ? part.text : '')).join(' ')
    : String(content ?? '')
  return [...text.trim().replace(/\s+/g, ' ')].slice(0, TITLE_LENGTH).join('') || null
}

/** Derives the title again, because it may contain text of an item that was deleted. */
export async function updateTitle(db: ConversationDb, conversationId: string): Promise<void> {
  const first = await db
    .selectFrom('items')
    .select(['role', 'author', 'body'])
    .where('conversation_id', '=', conversationId)
    .where('role', '=', 'user')
    .where('author', '!=', 'service')
    .orderBy('position')
    .limit(1)
    .executeTakeFirst()
  const title = first === undefined ? null : titleOf([{ ...first, body: JSON.parse(first.body) }])
  await db.updateTable('conversations').set({ title }).where('id', '=', conversationId).execute()
}
