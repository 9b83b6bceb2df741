/** Cancels and continues turns by id, regardless of the API that started them. */
import type { Dependencies } from '../chat/dependencies.ts'
import { mayRead } from '../chat/stored-chat.ts'
import type { TurnRow } from '../conversations/conversations.ts'
import type { ResponseObject } from '../conversations/response-schema.ts'
import type { TurnState } from '../conversations/schema.ts'
import { ServiceError } from '../lib/errors.ts'
import { AGENT_PREFIX } from '../models/schema.ts'
import type { CallContext, Caller, EventStream } from '../operations/operation.ts'
import { present } from './answer.ts'
import type { ResponsesRequest, TurnContinuation } from './schema.ts'
import { respondStored } from './stored-responses.ts'

type Context = CallContext<Caller, Dependencies>

/**
 * Stops a running turn on any replica; a cancelled turn is returned unchanged. @throws ServiceError
 * `not_cancellable`
 */
export async function cancelTurn(context: Context, id: string, client: AbortSignal): Promise<TurnState> {
  const turn = await findReadableTurn(context, id)
  const { conversations } = context.deps
  assertCancellable(turn, 'turn')
  if (turn.status === 'in_progress') {
    await conversations.cancel(turn)
    for await (const _entry of conversations.follow(turn, 0, client));
  }
  return renderState(await findReadableTurn(context, id))
}

/**
 * Asks the model to continue an incomplete or cancelled turn. The given settings override those of its
 * request.
 * @throws ServiceError
 */
export async function continueTurn(
  context: Context,
  { turn_id: id, ...changes }: TurnContinuation,
  client: AbortSignal,
): Promise<ResponseObject | EventStream> {
  const turn = await findReadableTurn(context, id)
  const { conversation: _conversation, ...asked }: ResponsesRequest = JSON.parse(turn.request)
  const request: ResponsesRequest = {
    ...asked,
    model: modelOf(turn, asked),
    stream: false,
    background: false,
    ...present(changes),
    store: true,
    input: [],
    previous_response_id: turn.response_id,
  }
  const response = await respondStored(context, request, client, turn)
  if ('unstored' in response) throw new Error('a turn continues only if it is stored')
  return response
}

/** @throws ServiceError `not_cancellable` for a turn that ended before it was cancelled */
export function assertCancellable({ status }: TurnRow, name: 'turn' | 'response'): void {
  if (status === 'in_progress' || status === 'cancelled') return
  throw new ServiceError('invalid_value', `The ${name} has ended: its status is ${status}.`, {
    code: 'not_cancellable',
  })
}

/** @throws ServiceError `not_found` */
async function findReadableTurn(context: Context, id: string): Promise<TurnRow> {
  const { deps, caller } = context
  const turn = await deps.conversations.reader.findTurn(caller.tenantId, 'id', id)
  if (turn === undefined || !mayRead(context, turn))
    throw new ServiceError('not_found', `Turn with id '${id}' not found.`, { param: 'turn_id' })
  return turn
}

function modelOf({ agent_id: agentId, model }: TurnRow, asked: ResponsesRequest): string | undefined {
  return agentId === '' ? (asked.model ?? model ?? undefined) : `${AGENT_PREFIX}${agentId}`
}

/** Omits the ids of the conversation and of the response, which an agent key must not learn from a turn. */
function renderState({ id, status, reason, error_code, created_at, ended_at }: TurnRow): TurnState {
  return { id, object: 'turn', status, reason, error_code, created_at, ended_at }
}
