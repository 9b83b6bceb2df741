/** Reads the conversations that wait for a person, and those in which a person must answer the visitor. */
import type { ConversationDb, ConversationStorage } from '../../db/open.ts'
import type { Waiting } from './schema.ts'

const MAX_LISTED = 50

/**
 * Returns the number of a tenant's waiting conversations, the 50 that have waited longest, and those in which
 * the visitor waits for an answer of the assignee.
 */
export async function readWaiting(
  storage: ConversationStorage,
  { tenantId, assignee }: { readonly tenantId: string; readonly assignee: string },
): Promise<Waiting> {
  const opened = await storage.find()
  if (opened === undefined) return { count: 0, conversations: [], mine: [] }
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
  return { count, conversations, mine: await listToAnswer(opened.read, tenantId, assignee) }
}

async function listToAnswer(
  db: ConversationDb,
  tenantId: string,
  assignee: string,
): Promise<Waiting['mine']> {
  const rows = await db
    .selectFrom('conversations')
    .select(['id', 'agent_id', 'title', 'answer_due'])
    .where('tenant', '=', tenantId)
    .where('mode', '=', 'person')
    .where('assignee', '=', assignee)
    .where('answer_due', 'is not', null)
    // An answer is also due after a takeover, which the assignee knows of.
    .where((eb) =>
      eb(
        eb
          .selectFrom('items')
          .select('author')
          .whereRef('items.conversation_id', '=', 'conversations.id')
          .orderBy('position', 'desc')
          .limit(1),
        '=',
        'visitor',
      ),
    )
    .orderBy('answer_due')
    .orderBy('id')
    .limit(MAX_LISTED)
    .execute()
  return rows.map(({ id, agent_id: agentId, title, answer_due: due }) => ({
    ...{ id, agent_id: agentId === '' ? null : agentId, title, answer_due: due as number },
  }))
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
