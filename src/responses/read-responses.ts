/** Reads, replays, cancels and deletes stored responses. */
import type { Dependencies } from '../chat/dependencies.ts'
import { mayRead, noteResume } from '../chat/stored-chat.ts'
import { withinStreamLimit } from '../chat/stream-quotas.ts'
import type { TurnRow } from '../conversations/conversations.ts'
import { isInput, toListedItem } from '../conversations/items.ts'
import type { ResponseObject } from '../conversations/response-schema.ts'
import { ServiceError } from '../lib/errors.ts'
import type { CallContext, Caller, EventStream } from '../operations/operation.ts'
import { renderItems, streamItems } from './item-response.ts'
import { assertReplayable, readResponse, renderResponse, streamResponse, toView } from './turn-response.ts'
import { assertCancellable } from './turns.ts'

type Context = CallContext<Caller, Dependencies>

/** @throws ServiceError `not_found` */
export async function findResponseTurn(context: Context, id: string): Promise<TurnRow> {
  const { deps, caller } = context
  const turn = await deps.conversations.reader.findTurn(caller.tenantId, 'response_id', id)
  if (turn === undefined || !mayRead(context, turn))
    throw new ServiceError('not_found', `Response with id '${id}' not found.`, { param: 'response_id' })
  return turn
}

/**
 * Returns the current response, or its events from the start or after `startingAfter`. @throws ServiceError
 */
export async function getResponse(
  context: Context,
  { id, isStream, startingAfter }: { id: string; isStream: boolean; startingAfter: number | undefined },
  client: AbortSignal,
): Promise<ResponseObject | EventStream> {
  const turn = await findResponseTurn(context, id)
  const { conversations } = context.deps
  const view = toView(turn)
  if (startingAfter !== undefined && !isStream)
    throw new ServiceError('invalid_value', 'starting_after: requires stream=true', {
      param: 'starting_after',
    })
  const isExpired = conversations.reader.isReplayOver(turn)
  if (startingAfter !== undefined) assertReplayable(isExpired)
  if (isExpired) {
    const items = await conversations.reader.listTurnItems(turn.id)
    return isStream ? streamItems(view, turn, items) : renderItems(view, turn, items)
  }
  if (!isStream) return renderResponse(view, await conversations.readSoFar(turn))
  if (startingAfter !== undefined) {
    context.deps.metrics.conversations.streamResumed('responses')
    noteResume(context, turn)
  }
  const entries = withinStreamLimit(context, conversations.follow(turn, 0, client))
  return streamResponse(view, entries, startingAfter ?? -1)
}

/**
 * Stops a running response on any replica and returns it. Returns a cancelled response unchanged.
 * @throws ServiceError `not_cancellable` if the response ended before it was cancelled.
 */
export async function cancelResponse(
  context: Context,
  id: string,
  client: AbortSignal,
): Promise<ResponseObject> {
  const turn = await findResponseTurn(context, id)
  const { conversations } = context.deps
  assertCancellable(turn, 'response')
  if (conversations.reader.isReplayOver(turn))
    return renderItems(toView(turn), turn, await conversations.reader.listTurnItems(turn.id))
  if (turn.status === 'in_progress') await conversations.cancel(turn)
  return readResponse(toView(turn), conversations.follow(turn, 0, client))
}

export async function deleteResponse(context: Context, id: string) {
  await context.deps.conversations.deleteTurn(await findResponseTurn(context, id))
  return { id, object: 'response' as const, deleted: true as const }
}

/** Lists the items that the request added, not those of earlier turns. @throws ServiceError */
export async function listInputItems(
  context: Context,
  {
    id,
    limit,
    order,
    after,
  }: { id: string; limit: number; order: 'asc' | 'desc'; after: string | undefined },
) {
  const turn = await findResponseTurn(context, id)
  const rows = (await context.deps.conversations.reader.listTurnItems(turn.id)).filter(isInput)
  if (order === 'desc') rows.reverse()
  const start = after === undefined ? 0 : rows.findIndex((row) => row.id === after) + 1
  if (after !== undefined && start === 0)
    throw new ServiceError('invalid_value', 'after: must be the id of an item in this list', {
      param: 'after',
    })
  const page = rows.slice(start, start + limit)
  return {
    object: 'list' as const,
    data: page.map(toListedItem),
    first_id: page[0]?.id ?? null,
    last_id: page.at(-1)?.id ?? null,
    has_more: rows.length > start + limit,
  }
}
