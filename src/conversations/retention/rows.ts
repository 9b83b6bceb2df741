/** Deletes and changes the rows of many conversations at once. */
import { sql } from 'kysely'
import type { ConversationDb } from '../../db/open.ts'
import { markDeletedData } from '../inline-data/data-rows.ts'
import { type Deletion, recordDeletion } from '../webhooks/events.ts'

/** Selects the conversations to delete: an agent's, or those that expired before a time (Unix seconds). */
export type Doomed =
  | { readonly tenant: string; readonly agentId: string }
  | {
      readonly tenant?: string | undefined
      readonly agentId?: string | undefined
      readonly expiredBefore: number
    }

/**
 * Deletes up to `limit` conversations with all their rows, and returns the id and tenant of each. Expired
 * conversations stay while a turn runs in them.
 */
export async function deleteConversations(
  trx: ConversationDb,
  doomed: Doomed,
  limit: number,
  deletion: Deletion,
): Promise<{ readonly id: string; readonly tenant: string }[]> {
  let query = trx.selectFrom('conversations').select(['id', 'tenant']).orderBy('expires_at').limit(limit)
  if (doomed.tenant !== undefined) query = query.where('tenant', '=', doomed.tenant)
  if (doomed.agentId !== undefined) query = query.where('agent_id', '=', doomed.agentId)
  if ('expiredBefore' in doomed) {
    query = query.where('expires_at', '<=', doomed.expiredBefore).where(({ not, exists, selectFrom }) => {
      const running = selectFrom('turns')
        .select('turns.id')
        .whereRef('turns.conversation_id', '=', 'conversations.id')
        .where('turns.status', 'in', ['queued', 'in_progress'])
      return not(exists(running))
    })
  }
  const rows = await query.execute()
  const ids = rows.map(({ id }) => id)
  await deleteConversationRows(trx, ids, deletion)
  return rows
}

export async function deleteNow(
  write: ConversationDb,
  ids: readonly string[],
  deletion: Deletion,
): Promise<void> {
  await write.transaction().execute((trx) => deleteConversationRows(trx, ids, deletion))
}

export async function deleteConversationRows(
  db: ConversationDb,
  ids: readonly string[],
  deletion: Deletion,
): Promise<void> {
  if (ids.length === 0) return
  // Locks the running turns first, so that their processes cannot store events between the deletions.
  await db
    .updateTable('turns')
    .set({ cancel_requested: 1 })
    .where('conversation_id', 'in', ids)
    .where('status', '=', 'in_progress')
    .execute()
  const turns = db.selectFrom('turns').select('id').where('conversation_id', 'in', ids)
  await db.deleteFrom('turn_events').where('turn_id', 'in', turns).execute()
  await db.deleteFrom('items').where('conversation_id', 'in', ids).execute()
  await markDeletedData(db, 'conversation_id', ids)
  await recordDeletion(db, ids, deletion)
  await db.deleteFrom('turns').where('conversation_id', 'in', ids).execute()
  await db.deleteFrom('conversations').where('id', 'in', ids).execute()
}

/**
 * Deletes the events of turns that ended before a time. A turn with an idempotency key keeps them for a
 * repeated request.
 */
export async function deleteEventLogs(
  trx: ConversationDb,
  endedBefore: number,
  limit: number,
): Promise<number> {
  const rows = await trx
    .selectFrom('turn_events')
    .innerJoin('turns', 'turns.id', 'turn_events.turn_id')
    .select('turn_id')
    .where('first_seq', '=', 0)
    .where('ended_at', '<', endedBefore)
    .where('idempotency_digest', 'is', null)
    .limit(limit)
    .execute()
  const ids = rows.map(({ turn_id }) => turn_id)
  if (ids.length > 0) await trx.deleteFrom('turn_events').where('turn_id', 'in', ids).execute()
  return ids.length
}

/** Deletes visitors without conversations who were last seen before a time, and returns their ids. */
export async function deleteVisitors(
  trx: ConversationDb,
  seenBefore: number,
  limit: number,
): Promise<string[]> {
  const gone = trx
    .selectFrom('visitors')
    .select('id')
    .where('seen_at', '<', seenBefore)
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('conversations')
            .select('conversations.id')
            .whereRef('conversations.visitor_id', '=', 'visitors.id'),
        ),
      ),
    )
    .limit(limit)
  const rows = await trx.deleteFrom('visitors').where('id', 'in', gone).returning('id').execute()
  return rows.map(({ id }) => id)
}

/** Frees the idempotency keys of turns that were created before a time. */
export async function clearIdempotencyKeys(
  trx: ConversationDb,
  createdBefore: number,
  limit: number,
): Promise<number> {
  const old = trx
    .selectFrom('turns')
    .select('id')
    .where('idempotency_digest', 'is not', null)
    .where('created_at', '<', createdBefore)
    .limit(limit)
  const { numUpdatedRows } = await trx
    .updateTable('turns')
    .set({ idempotency_digest: null, request_digest: null })
    .where('id', 'in', old)
    .executeTakeFirst()
  return Number(numUpdatedRows)
}

/**
 * Moves the conversations, turns and visitors of a tenant or of one of its agents to another tenant. Returns
 * the number of conversations.
 */
export async function moveConversations(
  trx: ConversationDb,
  from: string,
  to: string,
  agentId?: string,
): Promise<number> {
  const moved = await trx
    .updateTable('conversations')
    .set({ tenant: to })
    .where('tenant', '=', from)
    .$if(agentId !== undefined, (query) => query.where('agent_id', '=', agentId as string))
    .executeTakeFirst()
  await trx
    .updateTable('turns')
    .set({ tenant: to })
    .where('tenant', '=', from)
    .$if(agentId !== undefined, (query) => query.where('agent_id', '=', agentId as string))
    .execute()
  await moveIdentifiedVisitors(trx, from, to, agentId)
  await trx
    .updateTable('visitors')
    .set({ tenant: to })
    .where('tenant', '=', from)
    .where('kind', '=', 'anonymous')
    .$if(agentId !== undefined, (query) => query.where('issuer', '=', agentId as string))
    .execute()
  if (agentId === undefined)
    await trx.updateTable('erasures').set({ tenant: to }).where('tenant', '=', from).execute()
  return Number(moved.numUpdatedRows)
}

/**
 * Moves identified visitors. If the other tenant already has a visitor with the same identity, that visitor
 * gets the conversations.
 */
async function moveIdentifiedVisitors(
  trx: ConversationDb,
  from: string,
  to: string,
  agentId: string | undefined,
): Promise<void> {
  const ofAgent = trx
    .selectFrom('conversations')
    .select('visitor_id')
    .where('tenant', '=', to)
    .where('agent_id', '=', agentId ?? '')
    .where('visitor_id', 'is not', null)
  const moving = await trx
    .selectFrom('visitors')
    .select(['id', 'kind', 'issuer', 'subject'])
    .where('tenant', '=', from)
    .where('kind', '!=', 'anonymous')
    .$if(agentId !== undefined, (query) => query.where('id', 'in', ofAgent as never))
    .execute()
  for (const { id, kind, issuer, subject } of moving) {
    const known = await trx
      .selectFrom('visitors')
      .select('id')
      .where('tenant', '=', to)
      .where('kind', '=', kind)
      .where('issuer', '=', issuer)
      .where('subject', '=', subject)
      .executeTakeFirst()
    if (known === undefined) {
      await trx.updateTable('visitors').set({ tenant: to }).where('id', '=', id).execute()
      continue
    }
    for (const table of ['conversations', 'turns'] as const)
      await trx
        .updateTable(table)
        .set({ visitor_id: known.id })
        .where('tenant', '=', to)
        .where('visitor_id', '=', id)
        .execute()
    if (agentId === undefined) await trx.deleteFrom('visitors').where('id', '=', id).execute()
  }
}

/** Applies a retention time to up to `limit` conversations of an agent that still have a different one. */
export async function applyKeepTime(
  trx: ConversationDb,
  { tenant, agentId, keepSeconds }: { tenant: string; agentId: string; keepSeconds: number },
  limit: number,
): Promise<number> {
  const changed = trx
    .selectFrom('conversations')
    .select('id')
    .where('tenant', '=', tenant)
    .where('agent_id', '=', agentId)
    .where('expires_at', '!=', sql<number>`last_at + ${sql.lit(keepSeconds)}`)
    .limit(limit)
  const { numUpdatedRows } = await trx
    .updateTable('conversations')
    .set({ expires_at: sql<number>`last_at + ${sql.lit(keepSeconds)}` })
    .where('id', 'in', changed)
    .executeTakeFirst()
  return Number(numUpdatedRows)
}

/** Lists the agents that have conversations, ordered, starting after `after`. */
export function listAgentsOfConversations(
  db: ConversationDb,
  after: { readonly tenant: string; readonly agent_id: string } | undefined,
  limit: number,
): Promise<{ tenant: string; agent_id: string }[]> {
  let query = db.selectFrom('conversations').select(['tenant', 'agent_id']).distinct()
  if (after !== undefined)
    query = query.where(({ eb, or, and }) =>
      or([
        eb('tenant', '>', after.tenant),
        and([eb('tenant', '=', after.tenant), eb('agent_id', '>', after.agent_id)]),
      ]),
    )
  return query.where('agent_id', '!=', '').orderBy('tenant').orderBy('agent_id').limit(limit).execute()
}
