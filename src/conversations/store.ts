/** Reads and writes the rows of conversations, turns, items and events. */
import { type Insertable, type Selectable, sql } from 'kysely'
import type { ConversationDb, ConversationTable, TurnTable } from '../db/open.ts'
import { decodeSegment, encodeSegment, type LogEntry } from './turns/segments.ts'

export type ConversationRow = Selectable<ConversationTable>
export type TurnRow = Selectable<TurnTable>

export interface TurnEvents {
  readonly turnId: string
  readonly firstSeq: number
  readonly entries: readonly LogEntry[]
}

export async function insertConversation(
  db: ConversationDb,
  row: Insertable<ConversationTable>,
): Promise<void> {
  await db.insertInto('conversations').values(row).execute()
}

export function findConversation(
  db: ConversationDb,
  tenant: string,
  id: string,
): Promise<ConversationRow | undefined> {
  return db
    .selectFrom('conversations')
    .selectAll()
    .where('tenant', '=', tenant)
    .where('id', '=', id)
    .executeTakeFirst()
}

/**
 * Adds a turn to a conversation and returns the turn's number. With `lock`, no other turn can start until
 * this one ends. Returns undefined if the conversation is locked or deleted or has changed.
 */
export async function claimNumber(
  db: ConversationDb,
  {
    id,
    turnId,
    agentId,
    title,
    lock,
    revision,
    nowSeconds,
    keepSeconds,
  }: {
    id: string
    turnId: string
    agentId: string
    title: string | null
    lock: boolean
    /** The state of the conversation that the turn's history was read from; undefined to accept any state. */
    revision: number | undefined
    nowSeconds: number
    keepSeconds: number
  },
): Promise<{ number: number; items: number } | undefined> {
  const claimed = await db
    .updateTable('conversations')
    .set((eb) => ({
      turns: eb('turns', '+', 1),
      revision: eb('revision', '+', 1),
      last_at: nowSeconds,
      expires_at: nowSeconds + keepSeconds,
      // A conversation belongs to the agent of its first turn.
      agent_id: sql<string>`case when agent_id = '' then ${agentId} else agent_id end`,
      title: sql<string | null>`coalesce(title, ${title})`,
      ...(lock && { busy_turn: turnId }),
    }))
    .where('id', '=', id)
    .$if(lock, (query) => query.where('busy_turn', 'is', null).where('mode', '=', 'model'))
    .$if(revision !== undefined, (query) => query.where('revision', '=', revision as number))
    .returning(['turns', 'items'])
    .executeTakeFirst()
  return claimed && { number: claimed.turns, items: claimed.items }
}

export async function insertTurn(db: ConversationDb, row: Insertable<TurnTable>): Promise<void> {
  await db.insertInto('turns').values(row).execute()
}

/** Frees an idempotency key that is older than a day. */
export async function expireIdempotencyKey(
  db: ConversationDb,
  digest: string,
  createdBefore: number,
): Promise<void> {
  await db
    .updateTable('turns')
    .set({ idempotency_digest: null })
    .where('idempotency_digest', '=', digest)
    .where('created_at', '<', createdBefore)
    .execute()
}

export type TurnKey = 'id' | 'response_id' | 'stream_digest' | 'idempotency_digest'

export function findTurn(
  db: ConversationDb,
  tenant: string,
  key: TurnKey,
  value: string,
): Promise<TurnRow | undefined> {
  return db
    .selectFrom('turns')
    .selectAll()
    .where('tenant', '=', tenant)
    .where(key, '=', value)
    .executeTakeFirst()
}

/** Renews the leases of the owner's turns in `ids` that still run, and returns these turns. */
export async function renewLeases(
  db: ConversationDb,
  owner: string,
  ids: readonly string[],
  leaseUntil: number,
): Promise<{ id: string; cancel_requested: number }[]> {
  return db
    .updateTable('turns')
    .set({ lease_until: leaseUntil })
    .where('id', 'in', ids)
    .where('owner', '=', owner)
    .where('status', '=', 'in_progress')
    .returning(['id', 'cancel_requested'])
    .execute()
}

export async function insertEvents(db: ConversationDb, runs: readonly TurnEvents[]): Promise<void> {
  const rows = runs
    .filter(({ entries }) => entries.length > 0)
    .map(({ turnId, firstSeq, entries }) => ({
      turn_id: turnId,
      first_seq: firstSeq,
      last_seq: firstSeq + entries.length - 1,
      body: encodeSegment(entries),
    }))
  if (rows.length > 0) await db.insertInto('turn_events').values(rows).execute()
}

/** Returns a turn's stored entries, starting with number `from`. */
export async function readEvents(db: ConversationDb, turnId: string, from: number): Promise<LogEntry[]> {
  const rows = await db
    .selectFrom('turn_events')
    .selectAll()
    .where('turn_id', '=', turnId)
    .where('last_seq', '>=', from)
    .orderBy('first_seq')
    .execute()
  return rows.flatMap(({ first_seq, body }) => decodeSegment(body).slice(Math.max(0, from - first_seq)))
}

/** Ends a running turn. Returns false if it has already ended; then write nothing else. */
export async function endTurn(
  db: ConversationDb,
  id: string,
  owner: string | undefined,
  changes: Partial<Insertable<TurnTable>>,
): Promise<boolean> {
  const ended = await db
    .updateTable('turns')
    .set({ ...changes, lease_until: null })
    .where('id', '=', id)
    .where('status', '=', 'in_progress')
    .$if(owner !== undefined, (query) => query.where('owner', '=', owner as string))
    .executeTakeFirst()
  return ended.numUpdatedRows > 0n
}

/** Releases a conversation's lock and adds its turn's usage to the totals. */
export async function releaseConversation(
  db: ConversationDb,
  turn: Pick<TurnRow, 'id' | 'conversation_id'>,
  sums: {
    promptTokens: number
    completionTokens: number
    isFailure: boolean
    nowSeconds: number
    expiresAt: number
  },
): Promise<void> {
  await db
    .updateTable('conversations')
    .set((eb) => ({
      busy_turn: releasedBy(turn.id),
      prompt_tokens: eb('prompt_tokens', '+', sums.promptTokens),
      completion_tokens: eb('completion_tokens', '+', sums.completionTokens),
      failures: eb('failures', '+', sums.isFailure ? 1 : 0),
      revision: eb('revision', '+', 1),
      last_at: sums.nowSeconds,
      expires_at: sums.expiresAt,
    }))
    .where('id', '=', turn.conversation_id)
    .execute()
}

function releasedBy(turnId: string) {
  return sql<string | null>`case when busy_turn = ${turnId} then null else busy_turn end`
}

/** Lists turns whose process has stopped: the lease has expired, or the owner is not `owner`. */
export function listAbandonedTurns(
  db: ConversationDb,
  nowSeconds: number,
  onlyOwner?: string,
): Promise<TurnRow[]> {
  return db
    .selectFrom('turns')
    .selectAll()
    .where('lease_until', 'is not', null)
    .where((eb) =>
      onlyOwner === undefined ? eb('lease_until', '<', nowSeconds) : eb('owner', '!=', onlyOwner),
    )
    .limit(100)
    .execute()
}

/** Makes `owner` the owner of an abandoned turn. Returns false if it has ended, or its lease has changed since it was read. */
export async function takeOver(
  db: ConversationDb,
  turn: Pick<TurnRow, 'id' | 'owner' | 'lease_until'>,
  owner: string,
): Promise<boolean> {
  const taken = await db
    .updateTable('turns')
    .set({ owner })
    .where('id', '=', turn.id)
    .where('status', '=', 'in_progress')
    .where('owner', '=', turn.owner)
    .where('lease_until', '=', turn.lease_until)
    .executeTakeFirst()
  return taken.numUpdatedRows > 0n
}

export function findLastTurn(db: ConversationDb, conversationId: string): Promise<TurnRow | undefined> {
  return db
    .selectFrom('turns')
    .selectAll()
    .where('conversation_id', '=', conversationId)
    .orderBy('number', 'desc')
    .limit(1)
    .executeTakeFirst()
}

/** Bytes charged per conversation in addition to items and metadata, to limit empty conversations. */
export const CONVERSATION_BYTES = 1024

export async function sumTenantBytes(db: ConversationDb, tenant: string): Promise<number> {
  const { bytes } = await db
    .selectFrom('conversations')
    .select(
      sql<number>`coalesce(sum(bytes + length(metadata) + ${sql.lit(CONVERSATION_BYTES)}), 0)`.as('bytes'),
    )
    .where('tenant', '=', tenant)
    .executeTakeFirstOrThrow()
  return Number(bytes)
}

/** Deletes a turn with its items and events. Its conversation stays, and later turns continue the turn before it. */
export async function deleteTurn(
  db: ConversationDb,
  { id, conversation_id, previous_id }: Pick<TurnRow, 'id' | 'conversation_id' | 'previous_id'>,
): Promise<void> {
  // Locks the turn first, so that its process cannot store events between the deletions.
  await requestCancel(db, id)
  await db
    .updateTable('turns')
    .set({ previous_id })
    .where('conversation_id', '=', conversation_id)
    .where('previous_id', '=', id)
    .execute()
  const { bytes } = await db
    .selectFrom('items')
    .select((eb) => eb.fn.coalesce(eb.fn.sum<number>('bytes'), eb.lit(0)).as('bytes'))
    .where('turn_id', '=', id)
    .executeTakeFirstOrThrow()
  await db.deleteFrom('items').where('turn_id', '=', id).execute()
  await db.deleteFrom('turn_events').where('turn_id', '=', id).execute()
  await db.deleteFrom('turns').where('id', '=', id).execute()
  await db
    .updateTable('conversations')
    .set((eb) => ({
      busy_turn: releasedBy(id),
      bytes: eb('bytes', '-', Number(bytes)),
      revision: eb('revision', '+', 1),
    }))
    .where('id', '=', conversation_id)
    .execute()
}

export interface PageOptions {
  readonly limit: number
  /** The position of the last row of the previous page. */
  readonly after: number | undefined
  readonly order: 'asc' | 'desc'
}

export function listConversationRows(
  db: ConversationDb,
  tenant: string,
  { limit, after, order, agentId }: PageOptions & { readonly agentId: string | undefined },
): Promise<ConversationRow[]> {
  let query = db.selectFrom('conversations').selectAll().where('tenant', '=', tenant)
  if (agentId !== undefined) query = query.where('agent_id', '=', agentId)
  if (after !== undefined) query = query.where('position', order === 'asc' ? '>' : '<', after)
  return query.orderBy('position', order).limit(limit).execute()
}

/** Extends a conversation's expiry as if its last activity were at `nowSeconds`. */
export async function extendConversation(
  db: ConversationDb,
  id: string,
  { title, nowSeconds }: { readonly title: string | null; readonly nowSeconds: number },
): Promise<void> {
  await db
    .updateTable('conversations')
    .set((eb) => ({
      title: sql<string | null>`coalesce(title, ${title})`,
      expires_at: sql<number>`expires_at - last_at + ${sql.lit(nowSeconds)}`,
      last_at: nowSeconds,
      revision: eb('revision', '+', 1),
    }))
    .where('id', '=', id)
    .execute()
}

export function listTurnPage(
  db: ConversationDb,
  conversationId: string,
  { limit, after, order }: PageOptions,
): Promise<TurnRow[]> {
  let query = db.selectFrom('turns').selectAll().where('conversation_id', '=', conversationId)
  if (after !== undefined) query = query.where('number', order === 'asc' ? '>' : '<', after)
  return query.orderBy('number', order).limit(limit).execute()
}

/** Maps conversations to the status of their last turn. */
export async function listLastStatuses(
  db: ConversationDb,
  ids: readonly string[],
): Promise<Map<string, TurnRow['status']>> {
  if (ids.length === 0) return new Map()
  const rows = await db
    .selectFrom('conversations')
    .innerJoin('turns', (join) =>
      join
        .onRef('turns.conversation_id', '=', 'conversations.id')
        .onRef('turns.number', '=', 'conversations.turns'),
    )
    .select(['conversations.id', 'turns.status'])
    .where('conversations.id', 'in', ids)
    .execute()
  return new Map(rows.map(({ id, status }) => [id, status]))
}

export async function updateMetadata(
  db: ConversationDb,
  tenant: string,
  id: string,
  metadata: string,
): Promise<void> {
  await db
    .updateTable('conversations')
    .set((eb) => ({ metadata, revision: eb('revision', '+', 1) }))
    .where('tenant', '=', tenant)
    .where('id', '=', id)
    .execute()
}

export function listRunningTurns(db: ConversationDb, conversationId: string): Promise<TurnRow[]> {
  return db
    .selectFrom('turns')
    .selectAll()
    .where('conversation_id', '=', conversationId)
    .where('status', '=', 'in_progress')
    .execute()
}

/** Records that a replica is reading another replica's running turn. */
export async function markRead(db: ConversationDb, turnId: string, nowSeconds: number): Promise<void> {
  await db
    .updateTable('turns')
    .set({ read_at: nowSeconds })
    .where('id', '=', turnId)
    .where('status', '=', 'in_progress')
    .execute()
}

export async function requestCancel(db: ConversationDb, turnId: string): Promise<void> {
  await db
    .updateTable('turns')
    .set({ cancel_requested: 1 })
    .where('id', '=', turnId)
    .where('status', '=', 'in_progress')
    .execute()
}
