/** Finds and lists the conversations of all tenants. */
import type { ConversationDb } from '../../db/open.ts'
import type { ConversationRow, PageOptions } from '../store.ts'

const MICROSECONDS = 1_000_000

/** Conversations that were created at `from` or later and before `to` (Unix seconds). */
export interface ConversationFilter {
  /** Undefined for all tenants. */
  readonly tenantId?: string | undefined
  readonly agentId?: string | undefined
  readonly visitorId?: string | undefined
  readonly from?: number | undefined
  readonly to?: number | undefined
}

/** Lists a page of conversations by creation time. */
export function listAnyConversations(
  db: ConversationDb,
  { tenantId, agentId, visitorId, from, to }: ConversationFilter,
  { limit, after, order }: PageOptions,
): Promise<ConversationRow[]> {
  let query = db.selectFrom('conversations').selectAll()
  if (tenantId !== undefined) query = query.where('tenant', '=', tenantId)
  if (agentId !== undefined) query = query.where('agent_id', '=', agentId)
  if (visitorId !== undefined) query = query.where('visitor_id', '=', visitorId)
  if (from !== undefined) query = query.where('position', '>=', from * MICROSECONDS)
  if (to !== undefined) query = query.where('position', '<', to * MICROSECONDS)
  if (after !== undefined) query = query.where('position', order === 'asc' ? '>' : '<', after)
  return query.orderBy('position', order).limit(limit).execute()
}

export function findAnyConversation(db: ConversationDb, id: string): Promise<ConversationRow | undefined> {
  return db.selectFrom('conversations').selectAll().where('id', '=', id).executeTakeFirst()
}
