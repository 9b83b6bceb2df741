/** Finds the calls of page tools that have no result, and gives them an unknown outcome at a handover. */
import type { ConversationDb } from '../../db/open.ts'
import { type EncodedItem, encodeItem, type NewItem } from '../item-store.ts'
import { type ConversationRow, findLastTurn, type TurnRow } from '../store.ts'
import { createItemIds } from '../turn-output.ts'

/** The result of a call that the page has not answered. */
export const UNKNOWN_OUTCOME =
  'The outcome is unknown, because the page that ran this tool has not reported it.'

/** Returns the ids of a turn's complete page tool calls that have no result. */
export async function listOpenCalls(
  db: ConversationDb,
  turn: Pick<TurnRow, 'id' | 'conversation_id'>,
): Promise<string[]> {
  const open = await withoutAnswered(db, turn, await listCalls(db, turn.id))
  return open.map(({ callId }) => callId)
}

/**
 * Returns outputs for the open calls of a visitor's last turn. They must precede the next item outside of a
 * turn, because models reject messages between a call and its output. Clients of the API send the outputs of
 * their calls themselves.
 */
export async function renderOutcomes(trx: ConversationDb, row: ConversationRow): Promise<EncodedItem[]> {
  const turn = row.channel === 'widget' ? await findLastTurn(trx, row.id, true) : undefined
  if (turn === undefined) return []
  const open = await withoutAnswered(trx, turn, await listCalls(trx, turn.id))
  return open.map((call) => encodeItem(toOutcome(call)))
}

interface Call {
  readonly callId: string
  /** Id of the output; the same for each handover. */
  readonly outcomeId: string
  readonly position: number
}

/** Lists the calls that the model has written completely. */
async function listCalls(db: ConversationDb, turnId: string): Promise<Call[]> {
  const newOutcomeId = createItemIds(`${turnId}:outcomes`)
  const items = await db
    .selectFrom('items')
    .select(['position', 'body'])
    .where('turn_id', '=', turnId)
    .where('type', '=', 'function_call')
    .where('author', '=', 'model')
    .where('for_visitor', '=', 1)
    .where('status', '=', 'completed')
    .orderBy('position')
    .execute()
  return items.map(({ body, position }) => ({
    ...{ callId: JSON.parse(body).call_id, position },
    outcomeId: newOutcomeId('fco_'),
  }))
}

/** Only outputs after a call answer it, because providers can use the id of an earlier call again. */
async function withoutAnswered(
  db: ConversationDb,
  { conversation_id: conversationId }: Pick<TurnRow, 'conversation_id'>,
  calls: readonly Call[],
): Promise<Call[]> {
  const [first] = calls
  if (first === undefined) return []
  const outputs = await db
    .selectFrom('items')
    .select(['position', 'body'])
    .where('conversation_id', '=', conversationId)
    .where('turn_id', 'is', null)
    .where('type', '=', 'function_call_output')
    .where('position', '>', first.position)
    .execute()
  const answers = outputs.map(({ position, body }) => ({ position, callId: JSON.parse(body).call_id }))
  return calls.filter(
    (call) => !answers.some(({ position, callId }) => callId === call.callId && position > call.position),
  )
}

function toOutcome({ callId, outcomeId: id }: Call): NewItem {
  return {
    ...{ id, type: 'function_call_output', role: null, author: 'service', status: 'completed' },
    body: {
      ...{ type: 'function_call_output', call_id: callId, output: UNKNOWN_OUTCOME },
      ...{ id, status: 'completed' },
    },
    isForVisitor: true,
  }
}
