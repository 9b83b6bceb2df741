/** Stores visitors, and reads the conversations, turns and items that feeds and visitors show. */
import type { Selectable } from 'kysely'
import type { ConversationDb, VisitorTable } from '../../db/open.ts'
import type { CallVisitor } from '../../operations/operation.ts'
import { findModeEntry, type ModeEntry } from '../handover/mode-items.ts'
import { type ItemRow, isCurrentItem } from '../item-store.ts'
import type { ConversationRow, PageOptions, TurnRow } from '../store.ts'

/** Maximum number of mode changes that a visitor receives with a conversation. */
const MAX_MODE_CHANGES = 500

/**
 * Creates a visitor's row, or updates its last activity and the fields that the visitor's identity states.
 */
export async function recordVisitor(
  db: ConversationDb,
  tenantId: string,
  { id, kind, issuer, subject, email, name, claims }: CallVisitor,
  nowSeconds: number,
): Promise<void> {
  const stated = { email, name, claims: JSON.stringify(claims) }
  await db
    .insertInto('visitors')
    .values({
      ...{ id, tenant: tenantId, kind, issuer, subject, ...stated },
      ...{ created_at: nowSeconds, seen_at: nowSeconds },
    })
    .onConflict((conflict) =>
      conflict.column('id').doUpdateSet((eb) => ({
        tenant: tenantId,
        seen_at: nowSeconds,
        ...(kind === 'verified' && stated),
        // A parent key states only some of the fields.
        ...(kind === 'named' && {
          email: eb.fn.coalesce('excluded.email', 'visitors.email'),
          name: eb.fn.coalesce('excluded.name', 'visitors.name'),
        }),
      })),
    )
    .execute()
}

export type VisitorRow = Pick<Selectable<VisitorTable>, 'id' | 'kind' | 'subject' | 'name'>

export async function listVisitors(
  db: ConversationDb,
  ids: readonly string[],
): Promise<Map<string, VisitorRow>> {
  if (ids.length === 0) return new Map()
  const rows = await db
    .selectFrom('visitors')
    .select(['id', 'kind', 'subject', 'name'])
    .where('id', 'in', ids)
    .execute()
  return new Map(rows.map((row) => [row.id, row]))
}

export interface VisitorKey {
  readonly tenantId: string
  readonly agentId: string
  readonly visitorId: string
}

function ofVisitor(db: ConversationDb, { tenantId, agentId, visitorId }: VisitorKey) {
  return db
    .selectFrom('conversations')
    .selectAll()
    .where('tenant', '=', tenantId)
    .where('agent_id', '=', agentId)
    .where('visitor_id', '=', visitorId)
}

export function findVisitorConversation(
  db: ConversationDb,
  visitor: VisitorKey,
  id: string,
): Promise<ConversationRow | undefined> {
  return ofVisitor(db, visitor).where('id', '=', id).executeTakeFirst()
}

export function listVisitorConversations(
  db: ConversationDb,
  visitor: VisitorKey,
  { limit, after }: { readonly limit: number; readonly after?: ConversationRow | undefined },
): Promise<ConversationRow[]> {
  let query = ofVisitor(db, visitor)
  if (after !== undefined)
    query = query.where(({ eb, or, and }) =>
      or([
        eb('last_at', '<', after.last_at),
        and([eb('last_at', '=', after.last_at), eb('position', '<', after.position)]),
      ]),
    )
  return query.orderBy('last_at', 'desc').orderBy('position', 'desc').limit(limit).execute()
}

/** Returns undefined if the conversation does not exist. */
export async function findRevision(db: ConversationDb, conversationId: string): Promise<number | undefined> {
  const row = await db
    .selectFrom('conversations')
    .select('revision')
    .where('id', '=', conversationId)
    .executeTakeFirst()
  return row && Number(row.revision)
}

/** Returns the conversation's first turn numbered `number` or higher. */
export function findTurnFrom(
  db: ConversationDb,
  conversationId: string,
  number: number,
): Promise<TurnRow | undefined> {
  return db
    .selectFrom('turns')
    .selectAll()
    .where('conversation_id', '=', conversationId)
    .where('number', '>=', number)
    .orderBy('number')
    .limit(1)
    .executeTakeFirst()
}

/** Lists the items after the position `after`, up to and including `upTo`. */
export function listItemsBetween(
  db: ConversationDb,
  conversationId: string,
  { after, upTo, limit }: { readonly after: number; readonly upTo: number; readonly limit: number },
): Promise<ItemRow[]> {
  return db
    .selectFrom('items')
    .selectAll()
    .where('conversation_id', '=', conversationId)
    .where('position', '>', after)
    .where('position', '<=', upTo)
    .orderBy('position')
    .limit(limit)
    .execute()
}

/** Returns the position of a turn's last item, or of the last item of its input; 0 without items. */
export async function findLastPosition(
  db: ConversationDb,
  turnId: string,
  of: 'turn' | 'input',
): Promise<number> {
  const { last } = await db
    .selectFrom('items')
    .select((eb) => eb.fn.max('position').as('last'))
    .where('turn_id', '=', turnId)
    .$if(of === 'input', (query) => query.where('author', 'not in', ['model', 'tool']))
    .executeTakeFirstOrThrow()
  return last ?? 0
}

/**
 * Returns the position of the last item before the next turn: the last item of this turn, or a later one
 * without a turn.
 */
export async function findLastBeforeNext(db: ConversationDb, turn: TurnRow): Promise<number> {
  const { conversation_id: conversationId } = turn
  const last = await findLastPosition(db, turn.id, 'turn')
  // The owner may have deleted all items of the turn.
  if (last === 0) return findLastItem(db, conversationId)
  const later = db
    .selectFrom('items')
    .where('conversation_id', '=', conversationId)
    .where('position', '>', last)
  const next = await later
    .select((eb) => eb.fn.min('position').as('first'))
    .where('turn_id', 'is not', null)
    .executeTakeFirst()
  const outside = await later
    .select((eb) => eb.fn.max('position').as('last'))
    .where('turn_id', 'is', null)
    .$if(next?.first != null, (query) => query.where('position', '<', next?.first as number))
    .executeTakeFirst()
  return outside?.last ?? last
}

export async function findLastItem(db: ConversationDb, conversationId: string): Promise<number> {
  const row = await db
    .selectFrom('conversations')
    .select('items')
    .where('id', '=', conversationId)
    .executeTakeFirst()
  return row?.items ?? 0
}

/** Selects the items that a visitor may see and has not replaced, with `withVersions` also other answers. */
function visibleItems(db: ConversationDb, conversationId: string, withVersions = false) {
  return db
    .selectFrom('items')
    .selectAll()
    .where('items.conversation_id', '=', conversationId)
    .where('for_visitor', '=', 1)
    .where('type', '!=', 'reasoning')
    .where(isCurrentItem(db, conversationId, withVersions))
}

export function findVisibleItem(
  db: ConversationDb,
  conversationId: string,
  id: string,
): Promise<ItemRow | undefined> {
  return visibleItems(db, conversationId).where('id', '=', id).executeTakeFirst()
}

export function listVisibleItems(
  db: ConversationDb,
  conversationId: string,
  { limit, after, order }: PageOptions,
  withVersions = false,
): Promise<ItemRow[]> {
  let query = visibleItems(db, conversationId, withVersions)
  if (after !== undefined) query = query.where('position', order === 'asc' ? '>' : '<', after)
  return query.orderBy('position', order).limit(limit).execute()
}

/** Returns the newest items that a visitor may see, oldest first, with all versions of the answers. */
export async function listNewestVisible(
  db: ConversationDb,
  conversationId: string,
  limit: number,
): Promise<ItemRow[]> {
  const page = { limit, after: undefined, order: 'desc' } as const
  return (await listVisibleItems(db, conversationId, page, true)).reverse()
}

/** Lists the turns with earlier versions of answers, and the turns that replaced them, oldest first. */
export async function listVersions(
  db: ConversationDb,
  conversationId: string,
): Promise<{ readonly turn: string; readonly by: string }[]> {
  const rows = await db
    .selectFrom('turns')
    .select(['id', 'replaced_by'])
    .where('conversation_id', '=', conversationId)
    .where('replaced', '=', 'regenerated')
    .orderBy('number')
    .execute()
  return rows.flatMap(({ id, replaced_by: by }) => (by === null ? [] : [{ turn: id, by }]))
}

/** Lists the last 500 mode changes between two positions, inclusive, oldest first. */
export async function listModeChanges(
  db: ConversationDb,
  conversationId: string,
  { from, upTo }: { readonly from: number; readonly upTo: number },
): Promise<{ readonly position: number; readonly entry: ModeEntry }[]> {
  const rows = await db
    .selectFrom('items')
    .select(['position', 'author', 'type', 'body'])
    .where('conversation_id', '=', conversationId)
    .where('author', '=', 'service')
    .where('for_visitor', '=', 0)
    .where('position', '>=', from)
    .where('position', '<=', upTo)
    .orderBy('position', 'desc')
    .limit(MAX_MODE_CHANGES)
    .execute()
  return rows.reverse().flatMap((row) => {
    const entry = findModeEntry(row)
    return entry === undefined ? [] : [{ position: row.position, entry }]
  })
}

export function findClientItem(
  db: ConversationDb,
  conversationId: string,
  clientId: string,
): Promise<ItemRow | undefined> {
  return db
    .selectFrom('items')
    .selectAll()
    .where('conversation_id', '=', conversationId)
    .where('client_id', '=', clientId)
    .executeTakeFirst()
}

export function findClientItemOfTurn(db: ConversationDb, turnId: string): Promise<ItemRow | undefined> {
  return db
    .selectFrom('items')
    .selectAll()
    .where('turn_id', '=', turnId)
    .where('client_id', 'is not', null)
    .limit(1)
    .executeTakeFirst()
}

export async function listFailedTurns(db: ConversationDb, conversationId: string): Promise<string[]> {
  const rows = await db
    .selectFrom('turns')
    .select('id')
    .where('conversation_id', '=', conversationId)
    .where('status', '=', 'failed')
    .execute()
  return rows.map(({ id }) => id)
}
