/**
 * Selects the stored items that precede a turn's input. The main line of a conversation consists of its first
 * turn and of the turns that name the conversation; a response that names a previous response is a branch
 * (ADR 0056).
 */
import { sql } from 'kysely'
import type { ConversationDb } from '../../db/open.ts'
import { listFailedTurns } from '../feed/rows.ts'
import { readHandovers, toModelItem } from '../handover/model-items.ts'
import { MAX_INLINE_LENGTH } from '../inline-data/inline-data.ts'
import {
  type ItemHead,
  type ItemRow,
  listItemHeadsOfTurns,
  listItemHeadsOutsideTurns,
  listItems,
  listMainItemHeads,
} from '../item-store.ts'
import type { StoredItem } from '../items.ts'
import type { TurnRow } from '../store.ts'
import { MAX_TURNS } from './statements.ts'

/** The maximum size of the history that a model receives; it always contains whole turns. */
export interface HistoryLimits {
  readonly turns: number
  /** Estimated from the length of the items. */
  readonly tokens: number
}

const BYTES_PER_TOKEN = 4
/** Estimate for an image or a file, whose bytes do not correspond to tokens. */
const TOKENS_PER_BLOB = 1_000
const UNKNOWN_OUTCOME = 'Error: the result is unknown, because the server stopped while the tool was running.'

const NOT_REPORTED = 'Error: the result is unknown, because the page did not report it.'

export interface History {
  readonly items: readonly StoredItem[]
  /** Number of older items that are not sent. */
  readonly leftOut: number
}

/**
 * Returns the items of the chain of turns that ends with `previous`, and the earlier items without a turn,
 * oldest first.
 */
export async function readChain(
  db: ConversationDb,
  previous: TurnRow,
  limits: HistoryLimits,
): Promise<History> {
  const chain = await listChain(db, previous.id)
  const main = chain.filter((turn) => turn.is_branch === 0)
  const heads = await listItemHeadsOfTurns(db, toIds(chain))
  const others = await listItemHeadsOutsideTurns(db, previous.conversation_id, toIds(main))
  const all = [...heads, ...others].sort((one, other) => one.position - other.position)
  return select(db, all, limits)
}

/** Returns the items of a conversation's main line, oldest first. */
export async function readConversation(
  db: ConversationDb,
  conversationId: string,
  limits: HistoryLimits,
): Promise<History> {
  return select(db, await listMainItemHeads(db, conversationId), limits)
}

/**
 * Returns the items of a visitor's conversation, oldest first. Omits the messages of failed turns, because
 * the visitor sends them again, and because a message that a provider rejects would make every later turn
 * fail. Also omits the turns `replaced`.
 */
export async function readVisitorConversation(
  db: ConversationDb,
  conversationId: string,
  limits: HistoryLimits,
  replaced: readonly string[],
): Promise<History> {
  const failed = new Set(await listFailedTurns(db, conversationId))
  const left = new Set(replaced)
  const heads = await listMainItemHeads(db, conversationId)
  const isUseful = ({ turn_id: turnId, type }: ItemHead) =>
    turnId === null || (!left.has(turnId) && (!failed.has(turnId) || type === 'function_call_output'))
  return select(db, heads.filter(isUseful), limits, true)
}

function toIds(turns: readonly { readonly id: string }[]): string[] {
  return turns.map(({ id }) => id)
}

/** Chooses by size before it reads the items, which can be far larger than the limits. */
async function select(
  db: ConversationDb,
  rows: readonly ItemHead[],
  { turns, tokens }: HistoryLimits,
  isVisitors = false,
): Promise<History> {
  // The arguments of an interrupted call are not valid JSON, so providers would reject them.
  const isUsable = (row: ItemHead) =>
    row.for_model === 1 && !(row.type === 'function_call' && row.status === 'incomplete')
  const usable = rows.filter(isUsable)
  const groups = groupByTurn(usable)
  const dataBytes = await sumDataBytes(db, rows)
  const chosen: ItemHead[][] = []
  let leftBytes = tokens * BYTES_PER_TOKEN
  for (const group of groups.reverse()) {
    leftBytes -= group.reduce((sum, { n, bytes }) => sum + bytes - (dataBytes.get(n) ?? 0), 0)
    if (chosen.length === turns || (leftBytes < 0 && chosen.length > 0)) break
    chosen.push(group)
  }
  const sent = chosen.reverse().flat()
  const items = await toModelItems(db, await listItems(db, sent), isVisitors)
  return { items, leftOut: usable.length - sent.length }
}

/** Maps items to the number of bytes by which their data exceeds the estimate. */
async function sumDataBytes(db: ConversationDb, rows: readonly ItemHead[]): Promise<Map<number, number>> {
  // The model receives a tool's result as text, so all of its bytes count.
  const isMedia = ({ bytes, type }: ItemHead) => bytes > MAX_INLINE_LENGTH && type !== 'function_call_output'
  const large = rows.filter(isMedia).map(({ n }) => n)
  if (large.length === 0) return new Map()
  const found = await db
    .selectFrom('items')
    .innerJoin('item_data', 'item_data.item_id', 'items.id')
    .select(['items.n', 'item_data.bytes'])
    .where('items.n', 'in', large)
    .execute()
  const sums = new Map<number, number>()
  for (const { n, bytes } of found)
    sums.set(n, (sums.get(n) ?? 0) + Math.max(0, bytes - TOKENS_PER_BLOB * BYTES_PER_TOKEN))
  return sums
}

/** Each item without a turn is a separate group. */
function groupByTurn(rows: readonly ItemHead[]): ItemHead[][] {
  const groups: ItemHead[][] = []
  const byTurn = new Map<string, ItemHead[]>()
  for (const row of rows) {
    const known = row.turn_id === null ? undefined : byTurn.get(row.turn_id)
    if (known !== undefined) known.push(row)
    else {
      const group = [row]
      groups.push(group)
      if (row.turn_id !== null) byTurn.set(row.turn_id, group)
    }
  }
  return groups
}

async function toModelItems(
  db: ConversationDb,
  rows: readonly ItemRow[],
  isVisitors: boolean,
): Promise<StoredItem[]> {
  const handovers = await readHandovers(db, rows)
  return withOutcomes(
    rows.map((row) => ({ row, item: toModelItem(row, handovers) })),
    isVisitors,
  )
}

/**
 * Adds an outcome to each call of a server tool that was interrupted, because models require one. In a
 * visitor's conversation, also adds one to calls of page tools whose result was in a replaced turn; the
 * results of the last turn's calls follow with the next turn.
 */
function withOutcomes(
  items: readonly { readonly row: ItemRow; readonly item: StoredItem }[],
  isVisitors: boolean,
): StoredItem[] {
  const lastTurn = items.findLast(({ row }) => row.turn_id !== null)?.row.turn_id
  const answered = new Set(
    items.flatMap(({ item }) => (item.type === 'function_call_output' ? [item.call_id] : [])),
  )
  return items.flatMap(({ row, item }) => {
    const mayBeLost = row.for_visitor === 0 || (isVisitors && row.turn_id !== lastTurn)
    const isLost = item.type === 'function_call' && mayBeLost && !answered.has(item.call_id)
    if (!isLost) return [item]
    const output = {
      type: 'function_call_output',
      id: `${item.id}_outcome`,
      call_id: item.call_id,
      output: row.for_visitor === 0 ? UNKNOWN_OUTCOME : NOT_REPORTED,
    }
    return [item, output]
  })
}

/** Lists a turn and the turns before it in its chain, newest first. */
async function listChain(db: ConversationDb, turnId: string): Promise<{ id: string; is_branch: number }[]> {
  const { rows } = await sql<{ id: string; is_branch: number }>`
    with recursive chain (id, previous_id, is_branch, depth) as (
      select id, previous_id, is_branch, 1 from turns where id = ${turnId}
      union all
      select turns.id, turns.previous_id, turns.is_branch, chain.depth + 1
      from chain join turns on turns.id = chain.previous_id where chain.depth < ${MAX_TURNS}
    ) select id, is_branch from chain order by depth`.execute(db)
  return rows
}

/** Returns the newest turn of a conversation's main line, which its next turn follows. */
export function findMainTurn(db: ConversationDb, conversationId: string): Promise<TurnRow | undefined> {
  return db
    .selectFrom('turns')
    .selectAll()
    .where('conversation_id', '=', conversationId)
    .where('is_branch', '=', 0)
    .orderBy('number', 'desc')
    .limit(1)
    .executeTakeFirst()
}
