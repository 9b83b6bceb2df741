/**
 * Renders items for the model: marks the messages of people, and replaces the results of requests for a
 * person.
 */
import type { ConversationDb } from '../../db/open.ts'
import { REQUEST_PERSON } from '../../tools/tools.ts'
import type { ItemRow } from '../item-store.ts'
import type { StoredItem } from '../items.ts'
import { findModeEntry, type ModeEntry, renderTime } from './mode-items.ts'

/** New results for the calls that asked for a person, by call id. */
export type Handovers = ReadonlyMap<string, string>

/** Reads the results of the requests for a person that `rows` contain. */
export async function readHandovers(db: ConversationDb, rows: readonly ItemRow[]): Promise<Handovers> {
  const requests = rows.filter(isRequest)
  const [first] = requests
  if (first === undefined) return new Map()
  const changes = await db
    .selectFrom('items')
    .selectAll()
    .where('conversation_id', '=', first.conversation_id)
    .where('author', '=', 'service')
    .where('type', '=', 'message')
    .orderBy('position')
    .execute()
  const entries = changes.flatMap((row) => {
    const entry = findModeEntry(row)
    return entry === undefined ? [] : [{ position: row.position, entry }]
  })
  return new Map(requests.map((row) => [JSON.parse(row.body).call_id, renderHandover(row, entries)]))
}

function isRequest({ type, author, for_visitor: forVisitor, body }: ItemRow): boolean {
  if (type !== 'function_call' || author !== 'model' || forVisitor === 1) return false
  return JSON.parse(body).name === REQUEST_PERSON
}

/** The call is stored at the end of its turn, so the handover has an earlier position. */
function renderHandover(
  call: ItemRow,
  entries: readonly { readonly position: number; readonly entry: ModeEntry }[],
): string {
  const start = entries.findLast(
    ({ position, entry }) => position < call.position && entry.mode === 'waiting',
  )
  const end = entries.find(
    ({ position, entry }) => position > (start?.position ?? 0) && entry.mode === 'model',
  )
  if (start === undefined || end === undefined) return 'The conversation was not handed over to a person.'
  return `Handed over at ${renderTime(start.entry.since)}, handed back at ${renderTime(end.entry.since)}.`
}

/** Marks the messages of people, because the model must not take them for its own. */
export function toModelItem(row: ItemRow, handovers: Handovers): StoredItem {
  const item = JSON.parse(row.body) as StoredItem
  if (row.author === 'person') return markPerson(item, row.author_name)
  const handover = item.type === 'function_call_output' ? handovers.get(String(item.call_id)) : undefined
  return handover === undefined ? item : { ...item, output: handover }
}

function markPerson(item: StoredItem, name: string | null): StoredItem {
  const who = name === null ? 'a person' : `${name}, a person`
  const mark = { type: 'output_text', text: `[Written by ${who}, not by the model]\n` }
  return { ...item, content: [mark, ...(item.content as object[])] }
}
