/** Reads and writes the tags and notes of conversations. */
import type { Insertable, Selectable } from 'kysely'
import type { ConversationDb, ConversationNoteTable } from '../../db/open.ts'

export const MAX_NOTES = 200

export type NoteRow = Selectable<ConversationNoteTable>

/** Returns each conversation's tags in sorted order; omits conversations without tags. */
export async function listTags(db: ConversationDb, ids: readonly string[]): Promise<Map<string, string[]>> {
  const tags = new Map<string, string[]>()
  if (ids.length === 0) return tags
  const rows = await db
    .selectFrom('conversation_tags')
    .selectAll()
    .where('conversation_id', 'in', ids)
    .execute()
  for (const { conversation_id: id, tag } of rows) tags.set(id, [...(tags.get(id) ?? []), tag])
  for (const list of tags.values()) list.sort()
  return tags
}

/** Returns false if the conversation does not exist. */
export async function replaceTags(
  trx: ConversationDb,
  conversationId: string,
  tags: readonly string[],
): Promise<boolean> {
  if (!(await lockConversation(trx, conversationId))) return false
  await trx.deleteFrom('conversation_tags').where('conversation_id', '=', conversationId).execute()
  if (tags.length > 0)
    await trx
      .insertInto('conversation_tags')
      .values(tags.map((tag) => ({ conversation_id: conversationId, tag })))
      .execute()
  return true
}

/** Increments the revision, which also locks the row. Returns false if the conversation does not exist. */
async function lockConversation(trx: ConversationDb, id: string): Promise<boolean> {
  const { numUpdatedRows } = await trx
    .updateTable('conversations')
    .set((eb) => ({ revision: eb('revision', '+', 1) }))
    .where('id', '=', id)
    .executeTakeFirst()
  return numUpdatedRows > 0n
}

/** Stores a note. Returns undefined, or the reason why it was not stored. */
export async function insertNote(
  trx: ConversationDb,
  note: Insertable<ConversationNoteTable>,
): Promise<'missing' | 'full' | undefined> {
  if (!(await lockConversation(trx, note.conversation_id))) return 'missing'
  const { count } = await trx
    .selectFrom('conversation_notes')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('conversation_id', '=', note.conversation_id)
    .executeTakeFirstOrThrow()
  if (count >= MAX_NOTES) return 'full'
  await trx.insertInto('conversation_notes').values(note).execute()
  return undefined
}

export function listNoteRows(db: ConversationDb, conversationId: string): Promise<NoteRow[]> {
  return db
    .selectFrom('conversation_notes')
    .selectAll()
    .where('conversation_id', '=', conversationId)
    .orderBy('created_at')
    .orderBy('id')
    .execute()
}

/** Returns false if the note does not exist. */
export async function deleteNoteRow(
  db: ConversationDb,
  conversationId: string,
  id: string,
): Promise<boolean> {
  const { numDeletedRows } = await db
    .deleteFrom('conversation_notes')
    .where('conversation_id', '=', conversationId)
    .where('id', '=', id)
    .executeTakeFirst()
  return numDeletedRows > 0n
}
