/** Selects the stored items that precede a turn's input. */
import type { ConversationDb } from '../db/open.ts'
import { listFailedTurns } from './feed/rows.ts'
import { type ItemRow, listItems, listItemsOfTurns } from './item-store.ts'
import { listChain, type TurnRow } from './store.ts'

/** The maximum size of the history that a model receives; it always contains whole turns. */
export interface HistoryLimits {
  readonly turns: number
  /** Estimated from the length of the items. */
  readonly tokens: number
}

const BYTES_PER_TOKEN = 4
const UNKNOWN_OUTCOME = 'Error: the result is unknown, because the server stopped while the tool was running.'

export type StoredItem = Readonly<Record<string, unknown>> & { readonly type: string; readonly id: string }

/** The items of a chain of turns that ends with `previous`, oldest first. */
export async function readChain(
  db: ConversationDb,
  previous: TurnRow,
  limits: HistoryLimits,
): Promise<StoredItem[]> {
  const ids = await listChain(db, previous.id, limits.turns)
  return select(await listItemsOfTurns(db, ids), limits)
}

/** The items of a conversation, oldest first. */
export async function readConversation(
  db: ConversationDb,
  conversationId: string,
  limits: HistoryLimits,
): Promise<StoredItem[]> {
  return select(await listItems(db, conversationId), limits)
}

/**
 * The items of a visitor's conversation, oldest first, without the messages of failed turns: the visitor sends them
 * again, and a message that a provider rejects would make every later turn fail.
 */
export async function readVisitorConversation(
  db: ConversationDb,
  conversationId: string,
  limits: HistoryLimits,
): Promise<StoredItem[]> {
  const failed = new Set(await listFailedTurns(db, conversationId))
  const rows = await listItems(db, conversationId)
  const isUseful = ({ turn_id: turnId, type }: ItemRow) =>
    turnId === null || !failed.has(turnId) || type === 'function_call_output'
  return select(rows.filter(isUseful), limits)
}

function select(rows: readonly ItemRow[], { turns, tokens }: HistoryLimits): StoredItem[] {
  // The arguments of a call that broke off are not valid JSON, which providers reject.
  const isUsable = (row: ItemRow) =>
    row.for_model === 1 && !(row.type === 'function_call' && row.status === 'incomplete')
  const groups = groupByTurn(rows.filter(isUsable))
  const chosen: ItemRow[][] = []
  let leftBytes = tokens * BYTES_PER_TOKEN
  for (const group of groups.reverse()) {
    leftBytes -= group.reduce((sum, { bytes }) => sum + bytes, 0)
    if (chosen.length === turns || (leftBytes < 0 && chosen.length > 0)) break
    chosen.push(group)
  }
  return withOutcomes(chosen.reverse().flat())
}

/** Each item that a client added outside a turn is a separate group. */
function groupByTurn(rows: readonly ItemRow[]): ItemRow[][] {
  const groups: ItemRow[][] = []
  const byTurn = new Map<string, ItemRow[]>()
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

/** Adds an outcome to each call of a server tool that was interrupted, because models require one. */
function withOutcomes(rows: readonly ItemRow[]): StoredItem[] {
  const items = rows.map((row) => ({ row, item: JSON.parse(row.body) as StoredItem }))
  const answered = new Set(
    items.flatMap(({ item }) => (item.type === 'function_call_output' ? [item.call_id] : [])),
  )
  return items.flatMap(({ row, item }) => {
    const isLost = item.type === 'function_call' && row.for_visitor === 0 && !answered.has(item.call_id)
    if (!isLost) return [item]
    const output = {
      type: 'function_call_output',
      id: `${item.id}_outcome`,
      call_id: item.call_id,
      output: UNKNOWN_OUTCOME,
    }
    return [item, output]
  })
}
