/** Lists the conversations that match filters, and finds one by its id. */
import { expressionBuilder } from 'kysely'
import type { ConversationDb, ConversationTables } from '../../db/open.ts'
import { isPostgres, planSearch, type SearchPlan } from '../search/conditions.ts'
import type { ConversationRow } from '../store.ts'
import { type ConversationFilter, listConditions, whereIndexed } from './filters.ts'

export type { ConversationFilter } from './filters.ts'

/** A place in a list: the sort key of a conversation. */
export type ListPosition = Pick<ConversationRow, 'last_at' | 'position'>

export interface ListPage {
  readonly limit: number
  /** The last conversation of the previous page. */
  readonly after?: ListPosition | undefined
  readonly order: 'asc' | 'desc'
  /** By creation, or by the time of the last activity. */
  readonly sort?: 'created' | 'activity' | undefined
}

/**
 * Maximum number of conversations that one SQLite statement reads, because a statement blocks the process.
 */
const CONVERSATIONS_AT_ONCE = 500

export async function listAnyConversations(
  db: ConversationDb,
  filter: ConversationFilter,
  page: ListPage,
): Promise<ConversationRow[]> {
  const search = filter.search && (await planSearch(db, filter.search))
  // Reads the conversations of all tenants in one statement: no index has their order, and only commands list
  // them.
  const isOneStatement =
    isPostgres(db) || filter.tenantId === undefined || search?.comparesTexts === false || !isSelective(filter)
  if (isOneStatement) return select(db, filter, search, page)
  const rows: ConversationRow[] = []
  for (let after = page.after; ; ) {
    const end = await findEnd(db, filter, { ...page, after })
    const limit = page.limit - rows.length
    rows.push(...(await select(db, filter, search, { ...page, limit, after, end })))
    if (end === undefined || rows.length >= page.limit) return rows
    after = end
    // Lets the process answer other requests between two statements.
    await new Promise(setImmediate)
  }
}

/** Whether a list may have to skip many conversations. */
function isSelective({
  tenantId: _tenant,
  agentId: _agent,
  from: _from,
  to: _to,
  ...rest
}: ConversationFilter) {
  return Object.values(rest).some((value) => value !== undefined)
}

interface Part extends ListPage {
  /** The last conversation to read; undefined for no limit. */
  readonly end?: ListPosition | undefined
}

function select(
  db: ConversationDb,
  filter: ConversationFilter,
  search: SearchPlan | undefined,
  page: Part,
): Promise<ConversationRow[]> {
  const { limit, end, order } = page
  let query = startPage(db, filter, page).selectAll('conversations')
  query = query.where((eb) => eb.and(listConditions(eb, filter)))
  if (search !== undefined) query = query.where(search.condition)
  if (end !== undefined) query = query.where(compare(page, order === 'asc' ? '<=' : '>=', end))
  return query.limit(limit).execute()
}

/** Returns the last conversation that the next statement reads; undefined if it reads all that remain. */
function findEnd(
  db: ConversationDb,
  filter: ConversationFilter,
  page: ListPage,
): Promise<ListPosition | undefined> {
  return startPage(db, filter, page)
    .select(['last_at', 'position'])
    .limit(1)
    .offset(CONVERSATIONS_AT_ONCE - 1)
    .executeTakeFirst()
}

/** Selects the conversations after the previous page, in the order of the list. */
function startPage(db: ConversationDb, filter: ConversationFilter, page: ListPage) {
  const { after, order, sort } = page
  let query = whereIndexed(db.selectFrom('conversations'), filter)
  if (after !== undefined) query = query.where(compare(page, order === 'asc' ? '>' : '<', after))
  if (sort === 'activity') query = query.orderBy('last_at', order)
  return query.orderBy('position', order)
}

function compare({ sort }: ListPage, operator: '<' | '>' | '<=' | '>=', place: ListPosition) {
  const { eb, refTuple, tuple } = expressionBuilder<ConversationTables, 'conversations'>()
  if (sort !== 'activity') return eb('position', operator, place.position)
  return eb(refTuple('last_at', 'position'), operator, tuple(place.last_at, place.position))
}

export function findAnyConversation(db: ConversationDb, id: string): Promise<ConversationRow | undefined> {
  return db.selectFrom('conversations').selectAll().where('id', '=', id).executeTakeFirst()
}
