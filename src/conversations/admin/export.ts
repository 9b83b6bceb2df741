/** Exports stored conversations with their turns, items and diagnostics, a few rows at a time. */
import type { ConversationDatabase, ConversationDb } from '../../db/open.ts'
import type { ItemData } from '../inline-data/item-data.ts'
import { listItemsOfTurns } from '../item-store.ts'
import { listRatingsOfTurns } from '../ratings/ratings.ts'
import { renderConversations, toOwnedItem } from '../requests.ts'
import type { ConversationObject, ListedItem, TurnObject } from '../schema.ts'
import { type ConversationRow, listTurnPage, type TurnRow } from '../store.ts'
import { readDiagnostics, renderTurn } from '../turns/read-turns.ts'
import { listNoteRows } from './annotation-rows.ts'
import { renderNote } from './annotations.ts'
import { type ConversationFilter, listAnyConversations } from './list.ts'
import type { Note } from './schema.ts'

const CONVERSATIONS_AT_ONCE = 20
const TURNS_AT_ONCE = 10
/** Low, because one row can contain 2 MiB. */
const ITEMS_AT_ONCE = 10

type ExportedTurn = TurnObject & {
  readonly diagnostics: object
  /** The request without its input and its `previous_response_id`. */
  readonly request: object
  readonly items: readonly ListedItem[]
}

type ExportedConversation = ConversationObject & { readonly notes: readonly Note[] }

/** Items that do not belong to a turn, such as the messages of people and mode changes. */
interface ItemsLine {
  readonly object: 'conversation.items'
  readonly items: readonly ListedItem[]
}

export type ConversationLine = ExportedTurn | ItemsLine

type ExportLine =
  | (ConversationLine & { readonly conversation: ExportedConversation })
  | { readonly object: 'export.end'; readonly turns: number }

/** The rows of an export, and the data that their items refer to. */
interface ExportSource {
  readonly database: ConversationDatabase
  readonly data: ItemData
}

/**
 * Yields the turns of conversations, by tenant and creation time of the conversation, and among them the items
 * without a turn. Stops after `limit` turns, and ends with an `export.end` line. Rows that change during the export
 * appear as they were before or after the change.
 */
export async function* exportTurns(
  { database, data }: ExportSource,
  filter: ConversationFilter,
  limit = Number.POSITIVE_INFINITY,
): AsyncGenerator<ExportLine, void, void> {
  let turns = 0
  for await (const row of readConversations(database.read, filter)) {
    if (turns >= limit) break
    for await (const line of exportConversation({ database, data }, row)) {
      yield line
      if (line.object === 'turn') turns += 1
      if (turns >= limit) break
    }
  }
  yield { object: 'export.end', turns }
}

/** Reads one tenant at a time, because the index on positions starts with the tenant. */
async function* readConversations(
  db: ConversationDb,
  filter: ConversationFilter,
): AsyncGenerator<ConversationRow, void, void> {
  for await (const tenantId of readTenants(db, filter.tenantId)) {
    for (let after: ConversationRow | undefined; ; ) {
      const page = { limit: CONVERSATIONS_AT_ONCE, after, order: 'asc' } as const
      const rows = await listAnyConversations(db, { ...filter, tenantId }, page)
      yield* rows
      if (rows.length < CONVERSATIONS_AT_ONCE) break
      after = rows.at(-1)
    }
  }
}

async function* readTenants(
  db: ConversationDb,
  only: string | undefined,
): AsyncGenerator<string, void, void> {
  if (only !== undefined) return yield only
  for (let last = ''; ; ) {
    const { tenant } = await db
      .selectFrom('conversations')
      .select(({ fn }) => fn.min('tenant').as('tenant'))
      .where('tenant', '>', last)
      .executeTakeFirstOrThrow()
    if (tenant === null) return
    yield tenant
    last = tenant
  }
}

async function* exportConversation(
  { database, data }: ExportSource,
  row: ConversationRow,
): AsyncGenerator<ExportLine, void, void> {
  const { read } = database
  const [rendered] = await renderConversations(database, [row])
  if (rendered === undefined) return
  const conversation = { ...rendered, notes: (await listNoteRows(read, row.id)).map(renderNote) }
  for await (const line of readLines({ database, data }, row.id, readTurns(read, row.id)))
    yield { ...line, conversation }
}

async function* readTurns(db: ConversationDb, conversationId: string): AsyncGenerator<TurnRow, void, void> {
  for (let after: number | undefined; ; ) {
    const page = await listTurnPage(db, conversationId, { limit: TURNS_AT_ONCE, after, order: 'asc' })
    yield* page
    if (page.length < TURNS_AT_ONCE) return
    after = page.at(-1)?.number
  }
}

/**
 * Yields turns and the items without a turn in the order of their positions. Skips the items without a turn
 * up to the position `after`.
 */
async function* readLines(
  source: ExportSource,
  conversationId: string,
  turns: AsyncIterable<TurnRow> | Iterable<TurnRow>,
  after = 0,
): AsyncGenerator<ConversationLine, void, void> {
  let read = after
  for await (const turn of turns) {
    const first = await findFirstPosition(source.database.read, turn.id)
    if (first !== undefined) {
      yield* readItemsWithoutTurn(source, conversationId, { after: read, before: first })
      read = Math.max(read, first)
    }
    yield await renderExportedTurn(source, turn)
  }
  yield* readItemsWithoutTurn(source, conversationId, { after: read })
}

/**
 * Returns the last turns of a conversation and the items without a turn among and after them, oldest first,
 * and whether it has earlier turns.
 */
export async function readLastLines(
  source: ExportSource,
  conversationId: string,
  limit: number,
): Promise<{ readonly lines: ConversationLine[]; readonly hasMore: boolean }> {
  const { read } = source.database
  const page = { limit: limit + 1, after: undefined, order: 'desc' } as const
  const rows = await listTurnPage(read, conversationId, page)
  const earlier = rows[limit]
  const after = earlier && (await findFirstPosition(read, earlier.id))
  const lines: ConversationLine[] = []
  for await (const line of readLines(source, conversationId, rows.slice(0, limit).reverse(), after))
    lines.push(line)
  return { lines, hasMore: earlier !== undefined }
}

/** Returns the position of a turn's first item; undefined if all of its items are deleted. */
async function findFirstPosition(db: ConversationDb, turnId: string): Promise<number | undefined> {
  const { first } = await db
    .selectFrom('items')
    .select((eb) => eb.fn.min('position').as('first'))
    .where('turn_id', '=', turnId)
    .executeTakeFirstOrThrow()
  return first ?? undefined
}

/** Omits `previous_response_id`, because a response id gives an agent key access to the response. */
async function renderExportedTurn({ database, data }: ExportSource, row: TurnRow): Promise<ExportedTurn> {
  const { previous_response_id: _id, ...request } = JSON.parse(row.request)
  const items = await data.restore(await listItemsOfTurns(database.read, [row.id]))
  const ratings = await listRatingsOfTurns(database, [row.id])
  return {
    ...renderTurn(row, ratings.get(row.id) ?? []),
    diagnostics: readDiagnostics(row),
    request,
    items: items.map(toOwnedItem),
  }
}

async function* readItemsWithoutTurn(
  { database, data }: ExportSource,
  conversationId: string,
  { after: start, before }: { readonly after: number; readonly before?: number },
): AsyncGenerator<ItemsLine, void, void> {
  for (let after = start; ; ) {
    const rows = await database.read
      .selectFrom('items')
      .selectAll()
      .where('conversation_id', '=', conversationId)
      .where('turn_id', 'is', null)
      .where('position', '>', after)
      .$if(before !== undefined, (query) => query.where('position', '<', before as number))
      .orderBy('position')
      .limit(ITEMS_AT_ONCE)
      .execute()
    if (rows.length > 0)
      yield { object: 'conversation.items', items: (await data.restore(rows)).map(toOwnedItem) }
    if (rows.length < ITEMS_AT_ONCE) return
    after = rows.at(-1)?.position ?? after
  }
}
