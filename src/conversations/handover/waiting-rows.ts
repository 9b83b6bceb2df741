/** Reads the conversations that wait for a person. */
import type { ConversationDb, ConversationStorage } from '../../db/open.ts'
import type { Waiting } from './schema.ts'

const MAX_LISTED = 50

/** Returns the number of a tenant's waiting conversations, and the 50 that have waited longest. */
export async function readWaiting(storage: ConversationStorage, tenantId: string): Promise<Waiting> {
  const opened = await storage.find()
  if (opened === undefined) return { count: 0, conversations: [] }
  const rows = await opened.read
    .selectFrom('conversations')
    .select(['id', 'agent_id', 'title', 'mode_since'])
    .where('tenant', '=', tenantId)
    .where('mode', '=', 'waiting')
    .orderBy('mode_since')
    .orderBy('id')
    .limit(MAX_LISTED)
    .execute()
  const count = rows.length < MAX_LISTED ? rows.length : await countWaiting(opened.read, tenantId)
  const conversations = rows.map(({ id, agent_id: agentId, title, mode_since: since }) => ({
    ...{ id, agent_id: agentId === '' ? null : agentId, title, since },
  }))
  return { count, conversations }
}

/** Counts the waiting conversations of a tenant, or of all tenants. */
export async function countWaiting(db: ConversationDb, tenantId?: string): Promise<number> {
  const { count } = await db
    .selectFrom('conversations')
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .where('mode', '=', 'waiting')
    .$if(tenantId !== undefined, (query) => query.where('tenant', '=', tenantId as string))
    .executeTakeFirstOrThrow()
  return Number(count)
}
