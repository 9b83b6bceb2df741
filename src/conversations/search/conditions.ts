/** Builds the SQL conditions that find items by their words, for both databases (ADR 0069). */
import { type Expression, PostgresAdapter, type SqlBool, sql } from 'kysely'
import type { ConversationDb } from '../../db/open.ts'
import type { SearchTerm } from './query.ts'

/**
 * Number of hits above which SQLite compares the text of each conversation instead of reading all hits from
 * its index.
 */
const MANY_HITS = 5_000

export function isPostgres(db: ConversationDb): boolean {
  return db.getExecutor().adapter instanceof PostgresAdapter
}

export interface SearchPlan {
  readonly condition: Expression<SqlBool>
  /**
   * Whether the condition compares the text of each conversation; if so, it must be applied to only a few at
   * a time.
   */
  readonly comparesTexts: boolean
}

export async function planSearch(db: ConversationDb, terms: readonly SearchTerm[]): Promise<SearchPlan> {
  if (isPostgres(db)) {
    const words = sql`array_to_tsvector(string_to_array(text, ' ')) @@ ${toPostgres(terms)}::tsquery`
    return { condition: isIn(sql`${words} and ${rest(db, terms)}`), comparesTexts: false }
  }
  const hits = sql`select rowid from item_search where item_search match ${toSqlite(terms)}`
  const { rows } = await sql<{ hits: number }>`
    select count(*) as hits from (${hits} limit ${sql.lit(MANY_HITS + 1)})`.execute(db)
  if ((rows[0]?.hits ?? 0) <= MANY_HITS)
    return { condition: isIn(sql`n in (${hits}) and ${rest(db, terms)}`), comparesTexts: false }
  const condition = sql<SqlBool>`exists (select 1 from item_texts
    where item_texts.conversation_id = conversations.id and ${matchesText(db, terms)})`
  return { condition, comparesTexts: true }
}

function isIn(condition: Expression<unknown>): Expression<SqlBool> {
  return sql<SqlBool>`conversations.id in (select conversation_id from item_texts where ${condition})`
}

/** Matches rows of `item_texts` whose text matches all terms. */
export function matchesText(db: ConversationDb, terms: readonly SearchTerm[]): Expression<SqlBool> {
  return sql<SqlBool>`${sql.join(
    terms.map((term) => compare(db, term)),
    sql` and `,
  )}`
}

/** Returns the conditions for phrases and excluded terms, which the index cannot check. */
function rest(db: ConversationDb, terms: readonly SearchTerm[]): Expression<unknown> {
  const unchecked = terms.filter(({ words, isExcluded }) => isExcluded || words.length > 1)
  return unchecked.length === 0 ? sql`true` : matchesText(db, unchecked)
}

function compare(db: ConversationDb, { words, isPrefix, isExcluded }: SearchTerm): Expression<unknown> {
  const place = isPostgres(db) ? sql`strpos` : sql`instr`
  const part = ` ${words.join(' ')}${isPrefix ? '' : ' '}`
  return sql`${place}(' ' || text || ' ', ${part}) ${isExcluded ? sql`= 0` : sql`> 0`}`
}

function toSqlite(terms: readonly SearchTerm[]): string {
  return wordsOf(terms)
    .map(({ word, isPrefix }) => `"${word}"${isPrefix ? '*' : ''}`)
    .join(' AND ')
}

function toPostgres(terms: readonly SearchTerm[]): string {
  return wordsOf(terms)
    .map(({ word, isPrefix }) => `'${word}'${isPrefix ? ':*' : ''}`)
    .join(' & ')
}

/** Words consist of letters and digits, so they need no escaping. */
function wordsOf(terms: readonly SearchTerm[]): { readonly word: string; readonly isPrefix: boolean }[] {
  return terms
    .filter(({ isExcluded }) => !isExcluded)
    .flatMap(({ words, isPrefix }) =>
      words.map((word, index) => ({ word, isPrefix: isPrefix && index === words.length - 1 })),
    )
}
