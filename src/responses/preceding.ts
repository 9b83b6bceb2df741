/** Finds the stored items that precede the input of a response. */
import type { Dependencies } from '../chat/dependencies.ts'
import { assertMayName, mayRead } from '../chat/stored-chat.ts'
import {
  conversationLocked,
  type ModeState,
  type TurnPlan,
  type TurnRow,
  wrongMode,
} from '../conversations/conversations.ts'
import type { History, HistoryLimits, StoredItem } from '../conversations/reader.ts'
import { ServiceError } from '../lib/errors.ts'
import type { CallContext, Caller } from '../operations/operation.ts'
import { conversationIdOf } from './answer.ts'
import type { InputItem, ResponsesRequest } from './schema.ts'

type Context = CallContext<Caller, Dependencies>
type Input = NonNullable<ResponsesRequest['input']>

/** The stored items before a response's input, and its turn's position in the conversation. */
export interface Preceding {
  readonly place: Pick<TurnPlan, 'conversationId' | 'previous' | 'revision'>
  /** The items before the input, oldest first. */
  readonly history: History
  /** Whether the request has no input and continues an interrupted response. */
  readonly isContinuation: boolean
}

const noHistory: History = { items: [], leftOut: 0 }

interface Search {
  readonly agentId: string
  readonly limits: HistoryLimits
  readonly turn?: TurnRow | undefined
  /** The visitor who sent the request. */
  readonly visitorId: string | undefined
}

/**
 * Reads the response, conversation or `turn` that the request continues.
 * @throws ServiceError if it does not exist, or if the request has no input and there is no answer to
 * continue
 */
export async function findPreceding(
  context: Context,
  request: ResponsesRequest,
  { agentId, limits, turn, visitorId }: Search,
): Promise<Preceding> {
  const { reader } = context.deps.conversations
  const { tenantId } = context.caller
  const conversationId =
    turn === undefined ? await findConversationId(context, request, { agentId, visitorId }) : undefined
  const previous = turn ?? (await findPrevious(context, request, { agentId, visitorId }))
  const named = conversationId ?? previous?.conversation_id
  const main = named === undefined ? undefined : await reader.findMainTurn(tenantId, named)
  // Checked here as well, because a response with `store: false` starts no turn in the conversation.
  if (main !== undefined && main.state.mode !== 'model') throw rejectMode(context.caller, main.state)
  const isContinuation = assertInput(request, previous ?? main?.turn)
  if (named === undefined || main === undefined)
    return { place: { conversationId: undefined, previous: undefined }, history: noHistory, isContinuation }
  // A continuation of the newest answer belongs to the conversation's main line, as that answer does.
  const isMain = conversationId !== undefined || (isContinuation && previous?.id === main.turn?.id)
  const place = isMain
    ? { conversationId: named, previous: undefined, revision: main.revision }
    : { conversationId: undefined, previous }
  const from = isMain || previous === undefined ? { conversationId: named } : { previous }
  return { place, history: await reader.readHistory(from, limits), isContinuation }
}

/** Agent keys are public, so they do not receive the person's name. */
function rejectMode({ kind }: Caller, { mode, assignee }: ModeState): ServiceError {
  return wrongMode({ mode, assignee: kind === 'agent' ? null : assignee })
}

/** Returns the id of the conversation in the request. @throws ServiceError if the caller may not use it */
async function findConversationId(
  { deps, caller }: Context,
  { previous_response_id: previousId, conversation }: ResponsesRequest,
  owner: Pick<Search, 'agentId' | 'visitorId'>,
): Promise<string | undefined> {
  const id = conversationIdOf(conversation)
  if (id === undefined) return undefined
  if (previousId != null)
    throw new ServiceError(
      'invalid_value',
      'conversation: must not be used together with previous_response_id',
      { param: 'conversation' },
    )
  assertMayName(caller)
  await deps.conversations.reader.assertUsable(caller.tenantId, owner, id)
  return id
}

/** Returns the turn of the previous response. @throws ServiceError */
async function findPrevious(
  context: Context,
  { previous_response_id: id }: ResponsesRequest,
  { agentId, visitorId }: Pick<Search, 'agentId' | 'visitorId'>,
): Promise<TurnRow | undefined> {
  if (id == null) return undefined
  const { deps, caller } = context
  const param = 'previous_response_id'
  const previous = await deps.conversations.reader.findTurn(caller.tenantId, 'response_id', id)
  if (previous === undefined || !mayRead(context, previous))
    throw new ServiceError('invalid_value', `${param}: '${id}' does not exist`, {
      param,
      code: 'previous_response_not_found',
    })
  if (previous.agent_id !== agentId)
    throw new ServiceError('invalid_value', `${param} belongs to a different agent`, {
      param,
      code: 'agent_mismatch',
    })
  const isOthers = previous.visitor_id !== null && previous.visitor_id !== visitorId
  if (isOthers && visitorId !== undefined)
    throw new ServiceError('invalid_value', `${param} belongs to a different visitor`, {
      param,
      code: 'visitor_mismatch',
    })
  if (previous.status === 'in_progress')
    throw new ServiceError('conflict', `${param}: this response is still running; try again`, {
      param,
      code: 'response_in_progress',
      retryAfterSeconds: 1,
    })
  return previous
}

/**
 * Returns whether the request continues an interrupted response. @throws ServiceError if it has no input but
 * does not continue such a response.
 */
function assertInput({ input }: ResponsesRequest, last: TurnRow | undefined): boolean {
  if (input != null && input.length > 0) return false
  if (last?.status === 'incomplete' || last?.status === 'cancelled') return true
  if (last?.status === 'in_progress') throw conversationLocked()
  throw new ServiceError(
    'invalid_value',
    'input: is required, unless the response to continue is incomplete or cancelled',
    { param: 'input' },
  )
}

/**
 * Replaces references with the stored items, and drops references to items in the history.
 * @throws ServiceError
 */
export async function resolveReferences(
  context: Context,
  input: Input,
  history: readonly StoredItem[],
): Promise<Input> {
  if (typeof input === 'string') return input
  const known = new Set(history.map(({ id }) => id))
  const resolved: InputItem[] = []
  for (const [index, item] of input.entries()) {
    if (item.type !== 'item_reference') resolved.push(item)
    else if (!known.has(item.id)) resolved.push(await findItem(context, item.id, `input[${index}].id`))
  }
  return resolved
}

async function findItem(context: Context, id: string, param: string): Promise<InputItem> {
  const { deps } = context
  const item = await deps.conversations.reader.findItem(context.caller.tenantId, id)
  if (item !== undefined && mayRead(context, item)) return JSON.parse(item.body)
  throw new ServiceError('invalid_value', `${param}: no item with this id is stored`, { param })
}

/** Returns whether the request needs stored items. */
export function hasReference(request: ResponsesRequest): boolean {
  const { previous_response_id: previousId, conversation, input } = request
  const hasItem = Array.isArray(input) && input.some(({ type }) => type === 'item_reference')
  return previousId != null || conversation != null || hasItem
}

/** @throws ServiceError `conversations_off` for a field that needs a store. */
export function assertIndependent(
  { deps }: Context,
  request: ResponsesRequest,
  agentId: string | undefined,
  turn: TurnRow | undefined,
): void {
  const { previous_response_id: previous, conversation, background } = request
  const items = Array.isArray(request.input) ? request.input : []
  const referring = items.findIndex(({ type }) => type === 'item_reference')
  const named: [string, string, boolean][] = [
    ['turn_id', 'cannot be continued', turn !== undefined],
    ['previous_response_id', 'must be null', previous != null],
    ['conversation', 'must be null', conversation != null],
    ['background', 'must be false', background === true],
    [`input[${referring}].type`, 'must not be item_reference', referring >= 0],
  ]
  const [param, demand] = named.find(([, , isSet]) => isSet) ?? []
  if (param === undefined) return
  const reason = !deps.config.conversations.isAllowed
    ? 'the server stores no conversations'
    : request.store === false && background === true
      ? 'the request sets store to false'
      : agentId === undefined
        ? 'the server stores no conversations without an agent'
        : `the agent ${agentId} stores no conversations`
  throw new ServiceError('invalid_value', `${param}: ${demand}, because ${reason}`, {
    param,
    code: 'conversations_off',
  })
}
