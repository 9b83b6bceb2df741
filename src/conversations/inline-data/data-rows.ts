/** Reads and writes the rows that list the blobs of items. */
import type { Insertable } from 'kysely'
import type { ConversationDb, ItemDataTable } from '../../db/open.ts'

/** A new blob and the item that it belongs to. */
export interface NewData {
  readonly name: string
  readonly item_id: string
  readonly bytes: number
}

export interface DataPlace {
  readonly conversationId: string
  readonly turnId: string | null
}

export function toDataRow(
  { name, item_id, bytes }: NewData,
  { conversationId, turnId }: DataPlace,
): Insertable<ItemDataTable> {
  return { name, item_id, bytes, conversation_id: conversationId, turn_id: turnId, is_deleted: 0 }
}

const UPLOAD = 'upload:'

/** Returns the name of the row that keeps a visitor's upload. */
export function toUploadName(artifactId: string): string {
  return UPLOAD + artifactId
}

/** Returns the artifact id in the row name of a visitor's upload; undefined if the name is a blob's. */
export function uploadIn(name: string): string | undefined {
  return name.startsWith(UPLOAD) ? name.slice(UPLOAD.length) : undefined
}

/** Marks the blobs of deleted conversations, turns or items; `dropDeleted` deletes these blobs later. */
export async function markDeletedData(
  db: ConversationDb,
  by: 'conversation_id' | 'turn_id' | 'item_id',
  ids: readonly string[],
): Promise<void> {
  await db.updateTable('item_data').set({ is_deleted: 1 }).where(by, 'in', ids).execute()
}

/** Returns which of these blobs have rows. */
export async function listDataBlobs(db: ConversationDb, names: readonly string[]): Promise<Set<string>> {
  const rows = await db.selectFrom('item_data').select('name').where('name', 'in', names).execute()
  return new Set(rows.map(({ name }) => name))
}
