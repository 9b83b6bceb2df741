/** Finds the first matching item of each conversation that a search has found. */
import { sql } from 'kysely'
import type { ConversationDb } from '../../db/open.ts'
import { toShownItem } from '../feed/render.ts'
import { matchesText } from './conditions.ts'
import { type SearchTerm, toSnippet } from './query.ts'

/** The first item of a conversation that matches a search. */
export interface SearchMatch {
  readonly item_id: string
  readonly snippet: string
}

export async function findMatches(
  db: ConversationDb,
  conversationIds: readonly string[],
  terms: readonly SearchTerm[],
): Promise<Map<string, SearchMatch>> {
  if (conversationIds.length === 0) return new Map()
  const first = db
    .selectFrom('item_texts')
    .select(({ fn }) => fn.min('n').as('n'))
    .where('conversation_id', 'in', conversationIds)
    .where(matchesText(db, terms))
    .groupBy('conversation_id')
  const rows = await db.selectFrom('items').selectAll().where('n', 'in', sql<number>`(${first})`).execute()
  return new Map(
    rows.map((row) => [
      row.conversation_id,
      { item_id: row.id, snippet: toSnippet(toShownItem(row).text ?? '', terms) },
    ]),
  )
}
