/** Counts the stored conversations for operators, and finds problems with them. */
import type { ConversationDb } from '../../db/open.ts'
import type { FindAgentRetention } from '../retention/maintenance.ts'
import { listAgentsOfConversations } from '../retention/rows.ts'

const AGENTS_AT_ONCE = 200
/** A server ends an abandoned turn within 20 seconds. */
const ABANDONED_SECONDS = 60
/** A server deletes expired conversations every ten minutes. */
const OVERDUE_SECONDS = 3_600

export interface Inspected {
  readonly conversations: number
  readonly runningTurns: number
  /** Turns whose process has stopped and that no server has ended. */
  readonly abandonedTurns: number
  /** Conversations that expired more than an hour ago. */
  readonly overdue: number
  /** The tenant with the most stored bytes; undefined if there are no conversations. */
  readonly largest: { readonly tenantId: string; readonly bytes: number } | undefined
}

export async function inspectConversations(db: ConversationDb, nowSeconds: number): Promise<Inspected> {
  const { conversations, overdue } = await db
    .selectFrom('conversations')
    .select(({ fn }) => [
      fn.countAll<number>().as('conversations'),
      fn
        .countAll<number>()
        .filterWhere('expires_at', '<', nowSeconds - OVERDUE_SECONDS)
        .as('overdue'),
    ])
    .executeTakeFirstOrThrow()
  const { running, abandoned } = await db
    .selectFrom('turns')
    .select(({ fn }) => [
      fn.countAll<number>().as('running'),
      fn
        .countAll<number>()
        .filterWhere('lease_until', '<', nowSeconds - ABANDONED_SECONDS)
        .as('abandoned'),
    ])
    .where('lease_until', 'is not', null)
    .executeTakeFirstOrThrow()
  const largest = await db
    .selectFrom('conversations')
    .select(({ fn }) => ['tenant as tenantId', fn.sum<number>('bytes').as('bytes')])
    .groupBy('tenant')
    .orderBy('bytes', 'desc')
    .limit(1)
    .executeTakeFirst()
  return { conversations, overdue, runningTurns: running - abandoned, abandonedTurns: abandoned, largest }
}

/**
 * Returns the agents that have conversations but are missing from the main database, for example after only
 * one database was restored.
 */
export async function listUnknownAgents(
  db: ConversationDb,
  findAgentRetention: FindAgentRetention,
): Promise<string[]> {
  const unknown: string[] = []
  for (let last: { tenant: string; agent_id: string } | undefined; ; ) {
    const page = await listAgentsOfConversations(db, last, AGENTS_AT_ONCE)
    const ids = page.map(({ agent_id: id }) => id)
    const agents = await findAgentRetention(ids)
    unknown.push(...ids.filter((id) => !agents.has(id)))
    if (page.length < AGENTS_AT_ONCE) return unknown
    last = page.at(-1)
  }
}
