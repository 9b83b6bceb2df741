/** Lists the conversations that match filters, and finds one by its id. */
import type { ConversationDb } from '../../db/open.ts'
import { isPostgres, planSearch, type SearchPlan } from '../search/conditions.ts'
import type { ConversationRow, PageOptions } from '../store.ts'
import { type ConversationFilter, listConditions, whereIndexed } from './filters.ts'

export type { ConversationFilter } from './filters.ts'

/**
 * Maximum number of conversations that one SQLite statement reads, because a statement blocks the process.
 */
const CONVERSATIONS_AT_ONCE = 500

export async function listAnyConversations(
  db: ConversationDb,
  filter: ConversationFilter,
  page: PageOptions,
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

interface Part extends PageOptions {
  /** The position of the last conversation to read; undefined for no limit. */
  readonly end?: number | undefined
}

function select(
  db: ConversationDb,
  filter: ConversationFilter,
  search: SearchPlan | undefined,
  { limit, after, end, order }: Part,
): Promise<ConversationRow[]> {
  let query = whereIndexed(db.selectFrom('conversations'), filter).selectAll('conversations')
  query = query.where((eb) => eb.and(listConditions(eb, filter)))
  if (search !== undefined) query = query.where(search.condition)
  if (after !== undefined) query = query.where('position', order === 'asc' ? '>' : '<', after)
  if (end !== undefined) query = query.where('position', order === 'asc' ? '<=' : '>=', end)
  return query.orderBy('position', order).limit(limit).execute()
}

/**
 * Returns the position of the last conversation that the next statement reads; undefined if it reads all that
 * remain.
 */
async function findEnd(
  db: ConversationDb,
  filter: ConversationFilter,
  { after, order }: PageOptions,
): Promise<number | undefined> {
  let query = whereIndexed(db.selectFrom('conversations'), filter).select('position')
  if (after !== undefined) query = query.where('position', order === 'asc' ? '>' : '<', after)
  const last = await query
    .orderBy('position', order)
    .limit(1)
    .offset(CONVERSATIONS_AT_ONCE - 1)
    .executeTakeFirst()
  return last?.position
}

export function findAnyConversation(db: ConversationDb, id: string): Promise<ConversationRow | undefined> {
  return db.selectFrom('conversations').selectAll().where('id', '=', id).executeTakeFirst()
}
