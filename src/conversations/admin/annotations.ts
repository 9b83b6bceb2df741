/** Implements the owner's operations on the tags and notes of conversations. */
import { unixSeconds } from '../../lib/clock.ts'
import { ServiceError } from '../../lib/errors.ts'
import { newId } from '../../lib/ids.ts'
import { conversationNotFound, findOwn, getConversation, type OperationsDependencies } from '../requests.ts'
import type { ConversationObject } from '../schema.ts'
import {
  deleteNoteRow,
  insertNote,
  listNoteRows,
  MAX_NOTES,
  type NoteRow,
  replaceTags,
} from './annotation-rows.ts'
import type { Note } from './schema.ts'

/**
 * Replaces all tags. Tags that differ only in their Unicode normalization count as one. @throws ServiceError
 * `not_found`
 */
export async function setTags(
  deps: OperationsDependencies,
  tenantId: string,
  id: string,
  tags: readonly string[],
): Promise<ConversationObject> {
  const { db } = await findOwn(deps, tenantId, id)
  const wanted = [...new Set(tags.map((tag) => tag.normalize('NFC')))]
  const isFound = await db.write.transaction().execute((trx) => replaceTags(trx, id, wanted))
  if (!isFound) throw conversationNotFound(id)
  await db.scrub()
  deps.conversations.notify(id, tenantId)
  return getConversation(deps, tenantId, id)
}

/** @throws ServiceError `not_found`, or `notes_full` if the conversation has 200 notes */
export async function addNote(
  deps: OperationsDependencies,
  tenantId: string,
  { conversation_id: id, text, author }: { conversation_id: string; text: string; author: string },
): Promise<Note> {
  const { db } = await findOwn(deps, tenantId, id)
  const note = {
    id: newId('note_', 24, deps.random),
    conversation_id: id,
    author,
    text,
    created_at: unixSeconds(deps.clock),
  }
  const problem = await db.write.transaction().execute((trx) => insertNote(trx, note))
  if (problem === 'missing') throw conversationNotFound(id)
  if (problem === 'full')
    throw new ServiceError(
      'conflict',
      `A conversation may have at most ${MAX_NOTES} notes; delete one first.`,
      {
        code: 'notes_full',
      },
    )
  deps.conversations.notify(id, tenantId)
  return renderNote(note)
}

/** @throws ServiceError `not_found` */
export async function listNotes(deps: OperationsDependencies, tenantId: string, id: string) {
  const { db } = await findOwn(deps, tenantId, id)
  const rows = await listNoteRows(db.read, id)
  return { object: 'list' as const, data: rows.map(renderNote) }
}

/** @throws ServiceError `not_found` */
export async function deleteNote(
  deps: OperationsDependencies,
  tenantId: string,
  { conversation_id: id, note_id: noteId }: { conversation_id: string; note_id: string },
) {
  const { db } = await findOwn(deps, tenantId, id)
  if (!(await deleteNoteRow(db.write, id, noteId)))
    throw new ServiceError('not_found', `Note with id '${noteId}' not found.`, { param: 'note_id' })
  await db.scrub()
  deps.conversations.notify(id, tenantId)
  return { id: noteId, object: 'conversation.note.deleted' as const, deleted: true as const }
}

export function renderNote({ id, author, text, created_at }: NoteRow): Note {
  return { id, object: 'conversation.note', author, text, created_at }
}
