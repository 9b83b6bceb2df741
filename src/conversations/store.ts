/** Reads and writes the rows of conversations, turns, items and events. */
import { type Insertable, type Selectable, sql } from 'kysely'
import {
  type ConversationDb,
  type ConversationStorage,
  type ConversationTable,
  insertRow,
  type TurnTable,
} from '../db/open.ts'
import { markDeletedData } from './inline-data/data-rows.ts'
import { sumRatings } from './ratings/rows.ts'
import { decodeSegment, type LogRun, skipEntries, toBuffer } from './turns/segments.ts'

export type ConversationRow = Selectable<ConversationTable>
export type TurnRow = Selectable<TurnTable>

export interface TurnSegment {
  readonly turnId: string
  /** The number of the first entry. */
  readonly firstSeq: number
  readonly count: number
  /** The entries, encoded by `encodeSegment`. */
  readonly body: Uint8Array
}

export async function insertConversation(
  db: ConversationDb,
  row: Insertable<ConversationTable>,
): Promise<void> {
  await insertRow(db, 'conversations', row)
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

/** Frees an idempotency key if its turn was created before a time (Unix seconds). */
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

/** Renews the leases of those turns in `ids` that are still running, and returns these turns. */
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

/** SQLite accepts 32,766 values in a statement. */
const ROWS_PER_STATEMENT = 5_000

export async function insertSegments(db: ConversationDb, segments: readonly TurnSegment[]): Promise<void> {
  const rows = segments
    .filter(({ count }) => count > 0)
    .map(({ turnId, firstSeq, count, body }) => ({
      turn_id: turnId,
      first_seq: firstSeq,
      last_seq: firstSeq + count - 1,
      body: toBuffer(body),
    }))
  for (let at = 0; at < rows.length; at += ROWS_PER_STATEMENT)
    await db
      .insertInto('turn_events')
      .values(rows.slice(at, at + ROWS_PER_STATEMENT))
      // The transaction is repeated if its answer is lost after the commit.
      .onConflict((conflict) => conflict.doNothing())
      .execute()
}

/** Returns the stored entries of a turn before the entry `to`, encoded. */
export async function readSegments(db: ConversationDb, turnId: string, to?: number): Promise<Buffer[]> {
  const rows = await db
    .selectFrom('turn_events')
    .select('body')
    .where('turn_id', '=', turnId)
    .$if(to !== undefined, (query) => query.where('first_seq', '<', to as number))
    .orderBy('first_seq')
    .execute()
  return rows.map(({ body }) => body)
}

/** Returns the stored entries of a turn from `from` on, of at most `maxRows` rows. */
export async function readEvents(
  db: ConversationDb,
  turnId: string,
  from: number,
  maxRows?: number,
): Promise<LogRun[]> {
  const rows = await db
    .selectFrom('turn_events')
    .selectAll()
    .where('turn_id', '=', turnId)
    .where('last_seq', '>=', from)
    .orderBy('first_seq')
    .$if(maxRows !== undefined, (query) => query.limit(maxRows as number))
    .execute()
  return rows.flatMap(({ first_seq, body }) => {
    let skipped = Math.max(0, from - first_seq)
    return decodeSegment(body).flatMap((run) => {
      const { length } = run.ends
      const rest = skipped < length ? [skipEntries(run, skipped)] : []
      skipped = Math.max(0, skipped - length)
      return rest
    })
  })
}

function releasedBy(turnId: string) {
  return sql<string | null>`case when busy_turn = ${turnId} then null else busy_turn end`
}

/**
 * Lists up to 100 abandoned turns: those whose lease has ended or, with `onlyOwner`, those of all other
 * owners.
 */
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

/**
 * Makes `owner` the owner of an abandoned turn. Returns false if the turn has ended or its lease has changed.
 */
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

/** With `isCurrent`, skips the turns that were replaced. */
export function findLastTurn(
  db: ConversationDb,
  conversationId: string,
  isCurrent = false,
): Promise<TurnRow | undefined> {
  return db
    .selectFrom('turns')
    .selectAll()
    .where('conversation_id', '=', conversationId)
    .$if(isCurrent, (query) => query.where('replaced', 'is', null))
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

/**
 * Deletes a turn with its items and events. Its conversation remains, and later turns follow the turn before
 * it.
 */
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
  await db
    .updateTable('turns')
    .set({ replaced: 'removed', replaced_by: null })
    .where('conversation_id', '=', conversation_id)
    .where('replaced_by', '=', id)
    .execute()
  const { bytes } = await db
    .selectFrom('items')
    .select((eb) => eb.fn.coalesce(eb.fn.sum<number>('bytes'), eb.lit(0)).as('bytes'))
    .where('turn_id', '=', id)
    .executeTakeFirstOrThrow()
  await db.deleteFrom('items').where('turn_id', '=', id).execute()
  await markDeletedData(db, 'turn_id', [id])
  await db.deleteFrom('turn_events').where('turn_id', '=', id).execute()
  await db.deleteFrom('turns').where('id', '=', id).execute()
  await sumRatings(db, conversation_id)
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

/** Records an activity in a conversation, which also postpones its expiry. Sets a missing title. */
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

export type LastTurn = Pick<TurnRow, 'status' | 'error_code'>

/** Returns the state of each conversation's last turn, by conversation id. */
export async function listLastTurns(
  db: ConversationDb,
  ids: readonly string[],
): Promise<Map<string, LastTurn>> {
  if (ids.length === 0) return new Map()
  const rows = await db
    .selectFrom('conversations')
    .innerJoin('turns', (join) =>
      join
        .onRef('turns.conversation_id', '=', 'conversations.id')
        .onRef('turns.number', '=', 'conversations.turns'),
    )
    .select(['conversations.id', 'turns.status', 'turns.error_code'])
    .where('conversations.id', 'in', ids)
    .execute()
  return new Map(rows.map(({ id, ...last }) => [id, last]))
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

export async function countResume({ storage }: ResumedStore, turnId: string): Promise<void> {
  const { write } = await storage.open()
  await write
    .updateTable('turns')
    .set((eb) => ({ resumes: eb('resumes', '+', 1) }))
    .where('id', '=', turnId)
    .execute()
}

interface ResumedStore {
  readonly storage: ConversationStorage
}
