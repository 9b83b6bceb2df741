/** Rates turns on behalf of visitors. */
import { mayRead } from '../chat/stored-chat.ts'
import {
  findRatedTurn,
  type NewRating,
  type Rating,
  rateTurn,
  type TurnRow,
  unrateTurn,
} from '../conversations/visible.ts'
import { ServiceError } from '../lib/errors.ts'
import { assertAllowed, type Context, requireVisitor } from './visitors.ts'

/** Rates a turn; null deletes the visitor's rating. @throws ServiceError */
export async function rateOwn(
  context: Context,
  id: string,
  rating: NewRating | null,
): Promise<Rating | null> {
  const turn = await findOwnRated(context, id)
  await assertAllowed(context, 'rate')
  if (rating !== null) return rateTurn(context.deps, turn, 'visitor', rating)
  await unrateTurn(context.deps, turn, 'visitor')
  return null
}

/**
 * Returns one of the calling visitor's turns. Without a visitor, accepts only a response id, which is known
 * only to clients that received the response.
 * @throws ServiceError
 */
async function findOwnRated(context: Context, id: string): Promise<TurnRow> {
  const { deps, caller, metadata } = context
  const isByResponse = id.startsWith('resp_') && metadata.headers['x-parley-visitor'] === undefined
  const visitorId = isByResponse ? null : requireVisitor(context).visitorId
  const turn = await findRatedTurn(deps, caller.tenantId, id)
  const isOwn = isByResponse
    ? mayRead(context, turn)
    : turn.visitor_id === visitorId && turn.agent_id === caller.agentId
  if (isOwn) return turn
  throw new ServiceError('not_found', `Turn with id '${id}' not found.`, { param: 'turn_id' })
}
