/** Creates stored responses, which may continue others or run in the background. */
import { runTurn } from '../chat/chat.ts'
import type { Dependencies } from '../chat/dependencies.ts'
import { findTurnAgent, prepareTurn } from '../chat/prepare-turn.ts'
import {
  assertMayName,
  findEarlier,
  findStoring,
  findWinner,
  mayRead,
  nameTurn,
  readIdempotency,
} from '../chat/stored-chat.ts'
import {
  conversationLocked,
  type StartedTurn,
  type TurnPlan,
  type TurnRow,
} from '../conversations/conversations.ts'
import type { HistoryLimits, StoredItem } from '../conversations/history.ts'
import { continuationItem, toInputItems } from '../conversations/items.ts'
import type { ResponseObject } from '../conversations/response-schema.ts'
import { ServiceError } from '../lib/errors.ts'
import { newId } from '../lib/ids.ts'
import { logFailure } from '../operations/errors.ts'
import type { CallContext, Caller, EventStream } from '../operations/operation.ts'
import { toChatRequest } from './request.ts'
import type { InputItem, ResponsesRequest } from './schema.ts'
import {
  conversationIdOf,
  type ResponseView,
  readResponse,
  renderQueued,
  streamResponse,
  toView,
} from './turn-response.ts'

type Context = CallContext<Caller, Dependencies>

/** Turns without an agent have no configured limits. */
const DEFAULT_HISTORY: HistoryLimits = { turns: 200, tokens: 1_000_000 }
const RESPONSE_ID_LENGTH = 24

type Reference = { readonly previous: TurnRow } | { readonly conversationId: string }

/** Returns the response if it is stored; undefined if nothing is to be stored. @throws ServiceError */
export async function respondStored(
  context: Context,
  request: ResponsesRequest,
  client: AbortSignal,
): Promise<ResponseObject | EventStream | undefined> {
  const { deps, caller, metadata } = context
  const agent = await findTurnAgent(deps, caller, request.model)
  const settings = agent?.definition.conversations
  const agentId = agent?.row.id ?? ''
  const storing = findStoring(
    context,
    { agentId: agent?.row.id, conversations: settings },
    request.store,
    true,
  )
  if (storing === undefined) {
    assertIndependent(context, request, agent?.row.id)
    return undefined
  }
  const idempotency = readIdempotency(context, request)
  const earlier = idempotency && (await findEarlier(context, idempotency))
  if (earlier !== undefined) return attach(context, earlier, request, client)
  const reference = await findReference(context, request, agentId)
  const history =
    reference === undefined
      ? []
      : await deps.conversations.reader.readHistory(reference, settings?.history ?? DEFAULT_HISTORY)
  const isContinuation = await assertInput(context, request, reference)
  const given = await resolveReferences(context, request.input ?? [], history)
  const items = isContinuation ? [continuationItem(deps.random)] : toInputItems(given, deps.random)
  const input = isContinuation ? items.map(({ body }) => body) : given
  const isBackground = request.background === true
  // A background response is read while it runs, so the model streams it.
  const isStream = request.stream === true || isBackground
  const turn = await prepareTurn(
    context,
    toChatRequest({ ...request, input: input as InputItem[], stream: isStream }, history as InputItem[]),
  )
  const { input: _input, ...echo } = request
  const plan: TurnPlan = {
    ...storing,
    tenantId: caller.tenantId,
    agentId,
    agentVersion: agent?.row.version,
    conversationId: reference && 'conversationId' in reference ? reference.conversationId : undefined,
    previous: reference && 'previous' in reference ? reference.previous : undefined,
    responseId: newId('resp_', RESPONSE_ID_LENGTH, deps.random),
    idempotency,
    isStream,
    isBackground,
    kind: isContinuation ? 'continuation' : 'model',
    request: echo,
    input: items,
    requestId: metadata.requestId,
    renderFailure(failure) {
      logFailure(deps, { ...metadata.instrumentation.line, path: '/v1/responses' }, failure)
      return Buffer.alloc(0)
    },
  }
  const started = await deps.conversations
    .start(plan, (signal, reports) => runTurn(context, turn, signal, reports))
    .catch((error) => findWinner(context, idempotency, error))
  if (!('read' in started)) return attach(context, started, request, client)
  return answer(context, { request, plan, started }, client)
}

async function answer(
  context: Context,
  { request, plan, started }: { request: ResponsesRequest; plan: TurnPlan; started: StartedTurn },
  client: AbortSignal,
): Promise<ResponseObject | EventStream> {
  const { id, createdAt, conversationId, isStored } = started
  const view: ResponseView = {
    turnId: id,
    responseId: plan.responseId ?? '',
    createdAt,
    request: plan.request as ResponsesRequest,
  }
  if (plan.isBackground && request.stream !== true) {
    nameTurn(context, id, conversationId)
    return renderQueued(view)
  }
  // A background response continues without its client.
  if (await isStored) nameTurn(context, id, conversationId)
  else context.setHeader('X-Parley-Stored', 'false')
  const entries = started.read(0, client)
  return request.stream ? streamResponse(view, entries, -1) : readResponse(view, entries)
}

/** Answers with the response of an earlier request that had the same idempotency key. */
async function attach(
  context: Context,
  turn: TurnRow,
  request: ResponsesRequest,
  client: AbortSignal,
): Promise<ResponseObject | EventStream> {
  nameTurn(context, turn.id, turn.conversation_id)
  const view = toView(turn)
  if (request.background === true && request.stream !== true) return renderQueued(view)
  const entries = context.deps.conversations.follow(turn, 0, client)
  return request.stream ? streamResponse(view, entries, -1) : readResponse(view, entries)
}

/** @throws ServiceError `conversations_off` for a field that needs a store. */
function assertIndependent({ deps }: Context, request: ResponsesRequest, agentId: string | undefined): void {
  const { previous_response_id: previous, conversation, background } = request
  const items = Array.isArray(request.input) ? request.input : []
  const referring = items.findIndex(({ type }) => type === 'item_reference')
  const named: [string, string, boolean][] = [
    ['previous_response_id', 'must be null', previous != null],
    ['conversation', 'must be null', conversation != null],
    ['background', 'must be false', background === true],
    [`input[${referring}].type`, 'must not be item_reference', referring >= 0],
  ]
  const [param, demand] = named.find(([, , isSet]) => isSet) ?? []
  if (param === undefined) return
  const reason = !deps.config.conversations.isAllowed
    ? 'the server stores no conversations'
    : request.store === false
      ? 'the request sets store to false'
      : agentId === undefined
        ? 'the server stores no conversations without an agent'
        : `the agent ${agentId} stores no conversations`
  throw new ServiceError('invalid_value', `${param}: ${demand}, because ${reason}`, {
    param,
    code: 'conversations_off',
  })
}

/** Finds what the request continues. @throws ServiceError */
async function findReference(
  context: Context,
  { previous_response_id: previousId, conversation }: ResponsesRequest,
  agentId: string,
): Promise<Reference | undefined> {
  const { deps, caller } = context
  const conversationId = conversationIdOf(conversation)
  if (previousId != null && conversationId !== undefined)
    throw new ServiceError(
      'invalid_value',
      'conversation: must not be used together with previous_response_id',
      { param: 'conversation' },
    )
  if (conversationId !== undefined) {
    assertMayName(caller)
    await deps.conversations.reader.assertUsable(caller.tenantId, agentId, conversationId)
    return { conversationId }
  }
  if (previousId == null) return undefined
  const previous = await deps.conversations.reader.findTurn(caller.tenantId, 'response_id', previousId)
  if (previous === undefined || !mayRead(context, previous))
    throw new ServiceError('invalid_value', `previous_response_id: '${previousId}' does not exist`, {
      param: 'previous_response_id',
      code: 'previous_response_not_found',
    })
  if (previous.agent_id !== agentId)
    throw new ServiceError('invalid_value', 'previous_response_id: belongs to another agent', {
      param: 'previous_response_id',
      code: 'agent_mismatch',
    })
  if (previous.status === 'in_progress')
    throw new ServiceError('conflict', 'previous_response_id: this response is still running; try again', {
      param: 'previous_response_id',
      code: 'response_in_progress',
      retryAfterSeconds: 1,
    })
  return { previous }
}

/** Returns whether the request continues an interrupted response. @throws ServiceError if it has no input and cannot. */
async function assertInput(
  { deps }: Context,
  { input }: ResponsesRequest,
  reference: Reference | undefined,
): Promise<boolean> {
  if (input != null && input.length > 0) return false
  const last =
    reference === undefined
      ? undefined
      : 'previous' in reference
        ? reference.previous
        : await deps.conversations.reader.findLastTurn(reference.conversationId)
  if (last?.status === 'incomplete' || last?.status === 'cancelled') return true
  if (last?.status === 'in_progress') throw conversationLocked()
  throw new ServiceError(
    'invalid_value',
    'input: is required, unless the response to continue is incomplete or cancelled',
    { param: 'input' },
  )
}

/** Replaces references to items by the items; a reference to an item of the history is dropped. @throws ServiceError */
async function resolveReferences(
  context: Context,
  input: NonNullable<ResponsesRequest['input']>,
  history: readonly StoredItem[],
): Promise<NonNullable<ResponsesRequest['input']>> {
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
