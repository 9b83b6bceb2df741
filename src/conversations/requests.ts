/** Reads and changes conversations on behalf of their owner. */
import type { Database } from '../db/database.ts'
import type { ConversationDatabase, ConversationDb } from '../db/open.ts'
import { type Actor, actorOf, recordAudit } from '../identity/audit.ts'
import { unixSeconds } from '../lib/clock.ts'
import { ServiceError } from '../lib/errors.ts'
import { newId } from '../lib/ids.ts'
import { toPage } from '../lib/page.ts'
import type { CallContext, ParentCaller } from '../operations/operation.ts'
import { renderAmount } from '../prices/money.ts'
import { insertDeliveries } from '../webhooks/deliveries.ts'
import { listTags } from './admin/annotation-rows.ts'
import type { Conversations } from './conversations.ts'
import type { Dependencies } from './dependencies.ts'
import { listVisitors, type VisitorRow } from './feed/rows.ts'
import { findModeEntry } from './handover/mode-items.ts'
import {
  deleteItemRow,
  type EncodedItems,
  findConversationItem,
  type ItemRow,
  insertItems,
  listItemPage,
  listItems,
  type NewItem,
  sizesOf,
  titleOf,
  updateTitle,
} from './item-store.ts'
import { type SentItem, toInputItems, toListedItem } from './items.ts'
import { findReplacement } from './replacement/replacement-items.ts'
import type { ConversationObject, ItemList, ListedItem } from './schema.ts'
import { indexItemsFrom } from './search/index-rows.ts'
import {
  CONVERSATION_BYTES,
  type ConversationRow,
  extendConversation,
  findConversation,
  insertConversation,
  type LastTurn,
  listLastTurns,
  updateMetadata,
} from './store.ts'
import { assertItemSizes, conversationFull } from './turns/acceptance.ts'
import { MAX_ITEMS } from './turns/statements.ts'
import { prepareCreated } from './webhooks/events.ts'

export type OperationsDependencies = Pick<
  Dependencies,
  'config' | 'clock' | 'random' | 'nextPosition' | 'webhooks'
> & {
  readonly conversations: Conversations
  /** Contains the audit log. */
  readonly db: Database
}

type Metadata = Readonly<Record<string, string>>

const DAY_SECONDS = 86_400
/** Maximum size of the items in one page of a list. */
const MAX_PAGE_BYTES = 2 * 1024 * 1024

/**
 * Creates a conversation, which belongs to the agent of its first turn. @throws ServiceError
 * `conversations_off`
 */
export async function createConversation(
  deps: OperationsDependencies,
  tenantId: string,
  input: { items?: readonly unknown[] | null | undefined; metadata?: Metadata | null | undefined },
): Promise<ConversationObject> {
  const { isAllowed, withoutAgentDays, maxDays } = deps.config.conversations
  if (!isAllowed)
    throw new ServiceError(
      'invalid_value',
      'PARLEY_CONVERSATIONS=forbidden: the server stores no conversations',
      {
        code: 'conversations_off',
      },
    )
  const quota = await deps.conversations.quota.assertRoom(tenantId)
  const { write } = await deps.conversations.storage.open()
  const id = newId('conv_', 24, deps.random)
  const nowSeconds = unixSeconds(deps.clock)
  const items = toInputItems((input.items ?? []) as SentItem[], deps.random)
  assertItemSizes(sizesOf(items), 'items')
  const about = { tenantId, agentId: '', conversationId: id }
  const created = { channel: 'api', visitorId: null, items }
  const deliveries = await prepareCreated(deps.webhooks, about, created)
  const insert = async (trx: ConversationDb, encoded: EncodedItems) => {
    await insertDeliveries(trx, deliveries)
    await insertConversation(trx, {
      id,
      tenant: tenantId,
      agent_id: '',
      visitor_id: null,
      channel: 'api',
      mode_since: nowSeconds,
      assignee: null,
      busy_turn: null,
      title: titleOf(items),
      metadata: JSON.stringify(input.metadata ?? {}),
      cost: null,
      created_at: nowSeconds,
      last_at: nowSeconds,
      position: deps.nextPosition(),
      expires_at: nowSeconds + Math.min(withoutAgentDays, maxDays) * DAY_SECONDS,
    })
    await insertItems(trx, { conversationId: id, turnId: null, nowSeconds }, encoded)
    await indexItemsFrom(trx, id, 1)
  }
  await withData(deps, items, (encoded) => write.transaction().execute((trx) => insert(trx, encoded)))
  quota?.add(CONVERSATION_BYTES + sizeOf(items))
  deps.conversations.notify(id, tenantId)
  return getConversation(deps, tenantId, id)
}

export async function getConversation(
  deps: OperationsDependencies,
  tenantId: string,
  id: string,
): Promise<ConversationObject> {
  const { db, conversation } = await findOwn(deps, tenantId, id)
  const [rendered] = await renderConversations(db, [conversation])
  return rendered as ConversationObject
}

export async function updateConversation(
  deps: OperationsDependencies,
  tenantId: string,
  id: string,
  metadata: Metadata | null,
): Promise<ConversationObject> {
  const { db } = await findOwn(deps, tenantId, id)
  await updateMetadata(db.write, tenantId, id, JSON.stringify(metadata ?? {}))
  return getConversation(deps, tenantId, id)
}

export async function deleteConversation(
  deps: OperationsDependencies,
  actor: Actor,
  tenantId: string,
  id: string,
) {
  const { conversation } = await findOwn(deps, tenantId, id)
  // Records the deletion before it happens, because with SQLite the audit log is in another file and cannot
  // share a transaction with it.
  await recordAudit(deps, actor, {
    action: 'conversation.delete',
    target: { kind: 'conversation', id },
    tenantId,
    details: { agent_id: conversation.agent_id || null, turns: conversation.turns },
  })
  await deps.conversations.deleteConversation(id, tenantId)
  return { id, object: 'conversation.deleted' as const, deleted: true as const }
}

export async function addItems(
  deps: OperationsDependencies,
  tenantId: string,
  id: string,
  sent: readonly unknown[],
): Promise<ItemList> {
  const { db } = await findOwn(deps, tenantId, id)
  const items = toInputItems(sent as SentItem[], deps.random)
  assertItemSizes(sizesOf(items), 'items')
  const quota = await deps.conversations.quota.assertRoom(tenantId)
  const nowSeconds = unixSeconds(deps.clock)
  const insert = async (trx: ConversationDb, encoded: EncodedItems) => {
    const count = await insertItems(trx, { conversationId: id, turnId: null, nowSeconds }, encoded)
    // Checked after the row is locked, because several requests can add items at the same time.
    if (count > MAX_ITEMS) throw conversationFull()
    await indexItemsFrom(trx, id, count - items.length + 1)
    await extendConversation(trx, id, { title: titleOf(items), nowSeconds })
  }
  await withData(deps, items, (encoded) => db.write.transaction().execute((trx) => insert(trx, encoded)))
  quota?.add(sizeOf(items))
  deps.conversations.notify(id, tenantId)
  const added = items.map(({ author, body }): ListedItem => {
    const parley = { turn_id: null, author, created_at: nowSeconds }
    return { ...(body as ListedItem), parley }
  })
  return toList(added, false)
}

/** Stores the data of items, and deletes it again if `insert` rejects. */
async function withData(
  { conversations: { data } }: OperationsDependencies,
  items: readonly NewItem[],
  insert: (encoded: EncodedItems) => Promise<void>,
): Promise<void> {
  const encoded = await data.encode(items)
  try {
    await insert(encoded)
  } catch (error) {
    await data.discard(encoded.data)
    throw error
  }
}

/** @throws ServiceError `invalid_value` if `after` is not the id of an item in the conversation */
export async function listConversationItems(
  deps: OperationsDependencies,
  tenantId: string,
  query: { conversation_id: string; limit: number; after?: string | undefined; order: 'asc' | 'desc' },
): Promise<ItemList> {
  const { conversation_id: id, limit, after, order } = query
  const { db } = await findOwn(deps, tenantId, id)
  const last = after === undefined ? undefined : await findConversationItem(db.read, id, after)
  if (after !== undefined && last === undefined) throw wrongAfter()
  const heads = await listItemPage(db.read, id, { limit: limit + 1, after: last?.position, order })
  const page = toPage(heads, Math.min(limit, countWithin(heads, MAX_PAGE_BYTES)))
  const rows = await deps.conversations.data.restore(await listItems(db.read, page.rows))
  return toList(rows.map(toOwnedItem), page.hasMore)
}

/** Returns how many items fit into `mostBytes`; at least one. */
function countWithin(heads: readonly { readonly bytes: number }[], mostBytes: number): number {
  let bytes = 0
  const first = heads.findIndex((head) => {
    bytes += head.bytes
    return bytes > mostBytes
  })
  return first === -1 ? heads.length : Math.max(1, first)
}

interface ItemPlace {
  readonly conversation_id: string
  readonly item_id: string
}

export async function getItem(
  deps: OperationsDependencies,
  tenantId: string,
  place: ItemPlace,
): Promise<ListedItem> {
  const { item } = await findOwnItem(deps, tenantId, place)
  return (await deps.conversations.data.restore([item])).map(toOwnedItem)[0] as ListedItem
}

export async function deleteItem(
  deps: OperationsDependencies,
  tenantId: string,
  place: ItemPlace,
): Promise<ConversationObject> {
  const { db, item } = await findOwnItem(deps, tenantId, place)
  await db.write.transaction().execute(async (trx) => {
    await deleteItemRow(trx, item)
    await updateTitle(trx, place.conversation_id)
  })
  await deps.conversations.data.dropDeleted()
  await db.scrub()
  return getConversation(deps, tenantId, place.conversation_id)
}

/** @throws ServiceError `not_found` */
export async function findOwn(
  { conversations }: Pick<OperationsDependencies, 'conversations'>,
  tenantId: string,
  id: string,
): Promise<{ db: ConversationDatabase; conversation: ConversationRow }> {
  const db = await conversations.storage.find()
  const conversation = db && (await findConversation(db.read, tenantId, id))
  if (db === undefined || conversation === undefined) throw conversationNotFound(id)
  return { db, conversation }
}

/** Records that an owner reads the text of a conversation. @throws ServiceError `not_found` */
export async function recordRead(
  context: CallContext<
    ParentCaller,
    Pick<OperationsDependencies, 'conversations' | 'db' | 'random' | 'nextPosition'>
  >,
  conversationId: string,
): Promise<void> {
  const { deps, caller } = context
  const { conversation } = await findOwn(deps, caller.tenantId, conversationId)
  const { tenant: tenantId, agent_id: agentId } = conversation
  await deps.conversations.reads.record(deps, actorOf(context), { tenantId, conversationId, agentId })
}

export function conversationNotFound(id: string): ServiceError {
  return new ServiceError('not_found', `Conversation with id '${id}' not found.`, {
    param: 'conversation_id',
  })
}

async function findOwnItem(
  deps: OperationsDependencies,
  tenantId: string,
  { conversation_id: id, item_id: itemId }: ItemPlace,
): Promise<{ db: ConversationDatabase; item: ItemRow }> {
  const { db } = await findOwn(deps, tenantId, id)
  const item = await findConversationItem(db.read, id, itemId)
  if (item === undefined)
    throw new ServiceError('not_found', `Item with id '${itemId}' not found.`, { param: 'item_id' })
  return { db, item }
}

function sizeOf(items: readonly NewItem[]): number {
  return sizesOf(items).reduce((sum, size) => sum + size, 0)
}

export function wrongAfter(): ServiceError {
  return new ServiceError('invalid_value', 'after: must be the id of an item in this list', {
    param: 'after',
  })
}

/** Renders an item with the fields that only its owner receives. */
export function toOwnedItem(row: ItemRow): ListedItem {
  const { turn_id, author, author_name: name, created_at } = row
  const entry = findModeEntry(row)
  const replacement = findReplacement(row)
  const parley = {
    ...{ turn_id, author, created_at },
    ...(author === 'person' && { name }),
    ...(entry !== undefined && { mode: entry.mode, assignee: entry.assignee, reason: entry.reason }),
    ...(replacement !== undefined && { replacement: { ...replacement, turns: [...replacement.turns] } }),
  }
  return { ...toListedItem(row), parley }
}

function toList(data: ListedItem[], hasMore: boolean): ItemList {
  return {
    object: 'list',
    data,
    first_id: data[0]?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
    has_more: hasMore,
  }
}

export async function renderConversations(
  { read }: ConversationDatabase,
  rows: readonly ConversationRow[],
): Promise<ConversationObject[]> {
  const ids = rows.map(({ id }) => id)
  const visitorIds = new Set(rows.flatMap(({ visitor_id: id }) => id ?? []))
  const [lastTurns, tags, visitors] = await Promise.all([
    listLastTurns(read, ids),
    listTags(read, ids),
    listVisitors(read, [...visitorIds]),
  ])
  return rows.map((row) =>
    renderConversation(row, {
      last: lastTurns.get(row.id),
      tags: tags.get(row.id) ?? [],
      visitor: visitors.get(row.visitor_id ?? '') ?? null,
    }),
  )
}

/** Renders nano-dollars from the database. */
export function renderCost(nano: number | null): string | null {
  return nano === null ? null : renderAmount(BigInt(nano))
}

interface Joined {
  readonly last: LastTurn | undefined
  readonly tags: string[]
  readonly visitor: VisitorRow | null
}

function renderConversation(row: ConversationRow, { last, tags, visitor }: Joined): ConversationObject {
  return {
    id: row.id,
    object: 'conversation',
    created_at: row.created_at,
    metadata: JSON.parse(row.metadata),
    parley: {
      agent_id: row.agent_id === '' ? null : row.agent_id,
      visitor,
      channel: row.channel,
      mode: row.mode,
      mode_since: row.mode_since,
      assignee: row.assignee,
      answer_due: row.answer_due,
      title: row.title,
      tags,
      turns: row.turns,
      up: row.up,
      down: row.down,
      failures: row.failures,
      last_status: last?.status ?? null,
      last_error_code: last?.error_code ?? null,
      prompt_tokens: row.prompt_tokens,
      completion_tokens: row.completion_tokens,
      cost: renderCost(row.cost),
      last_at: row.last_at,
      expires_at: row.expires_at,
    },
  }
}
