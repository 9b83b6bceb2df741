/** Reads visitors and the number of their conversations for owners and operators. */
import { type Selectable, sql } from 'kysely'
import type { ConversationDb, VisitorTable } from '../../db/open.ts'
import { contains, pageOf } from '../../lib/page.ts'

export type OwnedVisitor = Selectable<VisitorTable>

interface VisitorFilter {
  /** Undefined for all tenants. */
  readonly tenantId?: string | undefined
  /** Id of an agent that the visitor has used. */
  readonly agent?: string | undefined
  readonly subject?: string | undefined
  readonly email?: string | undefined
  /** A part of the id, the subject, the email address or the name. */
  readonly q?: string | undefined
}

/** Finds a visitor of a tenant, or of any tenant. */
export function findVisitor(
  db: ConversationDb,
  id: string,
  tenantId?: string,
): Promise<OwnedVisitor | undefined> {
  let query = db.selectFrom('visitors').selectAll().where('id', '=', id)
  if (tenantId !== undefined) query = query.where('tenant', '=', tenantId)
  return query.executeTakeFirst()
}

export function listVisitorRows(
  db: ConversationDb,
  { tenantId, agent, subject, email, q }: VisitorFilter,
  { limit, after }: { readonly limit: number; readonly after: OwnedVisitor | undefined },
): Promise<OwnedVisitor[]> {
  let query = db.selectFrom('visitors').selectAll()
  if (tenantId !== undefined) query = query.where('tenant', '=', tenantId)
  if (agent !== undefined)
    query = query.where(({ exists, or, eb, selectFrom }) =>
      or([
        // Matches the agent's anonymous visitors, even without conversations.
        eb('issuer', '=', agent),
        exists(
          selectFrom('conversations')
            .select('conversations.id')
            .whereRef('conversations.visitor_id', '=', 'visitors.id')
            .where('conversations.agent_id', '=', agent),
        ),
      ]),
    )
  if (subject !== undefined) query = query.where('subject', '=', subject)
  if (email !== undefined) query = query.where('email', '=', email)
  if (q !== undefined) query = query.where(contains(['id', 'subject', 'email', 'name'], q))
  const place = after === undefined ? undefined : { key: after.seen_at, id: after.id }
  return pageOf(query, { by: sql.ref('seen_at'), order: 'desc', after: place, limit }).execute()
}

/** Returns the number of conversations by visitor id; omits visitors without conversations. */
export async function countConversations(
  db: ConversationDb,
  visitorIds: readonly string[],
): Promise<Map<string, number>> {
  if (visitorIds.length === 0) return new Map()
  const rows = await db
    .selectFrom('conversations')
    .select(({ fn }) => ['visitor_id', fn.countAll<number>().as('count')])
    .where('visitor_id', 'in', visitorIds)
    .groupBy('visitor_id')
    .execute()
  return new Map(rows.map(({ visitor_id: id, count }) => [id ?? '', Number(count)]))
}
