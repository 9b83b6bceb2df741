/** Creates responses that are stored, or that continue stored ones; they may run in the background. */
import type { Agent } from '../agents/cache.ts'
import { runTurn } from '../chat/chat.ts'
import type { Dependencies } from '../chat/dependencies.ts'
import { findTurnAgent, prepareTurn } from '../chat/prepare-turn.ts'
import {
  findEarlier,
  findStoring,
  nameTurn,
  readIdempotency,
  type Storing,
  startOrJoin,
  withRequestPerson,
} from '../chat/stored-chat.ts'
import {
  ConversationChanged,
  type RunModel,
  type StartedTurn,
  type TurnPlan,
  type TurnRow,
} from '../conversations/conversations.ts'
import type { NewItem } from '../conversations/item-store.ts'
import { continuationItem, toInputItems } from '../conversations/items.ts'
import type { HistoryLimits } from '../conversations/reader.ts'
import type { ResponseObject } from '../conversations/response-schema.ts'
import { findTurnVisitor } from '../conversations/visible.ts'
import { newId } from '../lib/ids.ts'
import { logFailure } from '../operations/errors.ts'
import type { CallContext, Caller, CallVisitor, EventStream } from '../operations/operation.ts'
import type { ChatRequest } from '../providers/chat-api.ts'
import {
  assertIndependent,
  findPreceding,
  hasReference,
  type Preceding,
  resolveReferences,
} from './preceding.ts'
import { toChatRequest } from './request.ts'
import type { InputItem, ResponsesRequest } from './schema.ts'
import { type ResponseView, readResponse, renderQueued, streamResponse, toView } from './turn-response.ts'

type Context = CallContext<Caller, Dependencies>

/** Turns without an agent have no configured limits. */
const DEFAULT_HISTORY: HistoryLimits = { turns: 200, tokens: 1_000_000 }
const RESPONSE_ID_LENGTH = 24
/** Maximum number of attempts to start a turn in a conversation that other requests are changing. */
const MAX_STARTS = 5

/**
 * Starts the request's stored turn, or joins the turn of an earlier request with the same idempotency key.
 * Continues `turn` if it is given. If the response must not be stored, returns the chat request instead.
 * @throws ServiceError
 */
export async function respondStored(
  context: Context,
  request: ResponsesRequest,
  client: AbortSignal,
  turn?: TurnRow,
): Promise<ResponseObject | EventStream | { readonly unstored: ChatRequest }> {
  const agent = await findTurnAgent(context.deps, context.caller, request.model)
  const settings = { agentId: agent?.row.id, conversations: agent?.definition.conversations }
  const storing = findStoring(context, settings, request.store, true)
  if (storing === undefined) {
    // `store: false` excludes the response from the store, but it may still continue a stored one.
    const isReadable = request.store === false && findStoring(context, settings, true) !== undefined
    if (!isReadable || request.background === true || !hasReference(request)) {
      assertIndependent(context, request, agent?.row.id, turn)
      return { unstored: toChatRequest(request) }
    }
    const visitor = await findTurnVisitor(context, request)
    return { unstored: (await prepare(context, request, { agent, visitor })).chat }
  }
  const idempotency = readIdempotency(context, turn === undefined ? request : { ...request, turn: turn.id })
  const earlier = idempotency && (await findEarlier(context, idempotency))
  if (earlier !== undefined) return attach(context, earlier, request, client)
  const visitor = await findTurnVisitor(context, request)
  for (let starts = 1; ; starts++) {
    const prepared = await prepare(context, request, { agent, visitor, turn })
    const asked = await prepareTurn(context, prepared.chat)
    const chat = { ...withRequestPerson(asked), history: prepared.preceding.history }
    const plan = toPlan(context, request, { agent, storing, idempotency, prepared, visitor })
    const run: RunModel = (signal, reports) => runTurn(context, chat, signal, reports)
    const started = await startOrJoin(context, plan, run).catch((error: unknown) => {
      chat.endSpan(error)
      // Starts again with the new history, because another turn has extended it.
      if (error instanceof ConversationChanged && starts < MAX_STARTS) return undefined
      throw error
    })
    if (started === undefined) continue
    if ('read' in started) return answer(context, { request, plan, started }, client)
    chat.endSpan(undefined)
    return attach(context, started, request, client)
  }
}

interface Prepared {
  readonly preceding: Preceding
  /** The items that the request adds. */
  readonly items: readonly NewItem[]
  readonly chat: ChatRequest
}

/** Builds the chat request from the stored history and the input. @throws ServiceError */
async function prepare(
  context: Context,
  request: ResponsesRequest,
  {
    agent,
    visitor,
    turn,
  }: { agent: Agent | undefined; visitor: CallVisitor | undefined; turn?: TurnRow | undefined },
): Promise<Prepared> {
  const { random } = context.deps
  const preceding = await findPreceding(context, request, {
    agentId: agent?.row.id ?? '',
    limits: agent?.definition.conversations?.history ?? DEFAULT_HISTORY,
    ...{ turn, visitorId: visitor?.id },
  })
  const { isContinuation } = preceding
  const { items: history } = preceding.history
  const given = await resolveReferences(context, request.input ?? [], history)
  const items = isContinuation ? [continuationItem(random)] : toInputItems(given, random)
  const input = isContinuation ? items.map(({ body }) => body) : given
  const asked = { ...request, input: input as InputItem[], stream: isStreamed(request) }
  return { preceding, items, chat: toChatRequest(asked, history as InputItem[]) }
}

/** Clients can read a background response while it runs, so the model always streams it. */
function isStreamed({ stream, background }: ResponsesRequest): boolean {
  return stream === true || background === true
}

function toPlan(
  { deps, caller, metadata }: Context,
  request: ResponsesRequest,
  {
    agent,
    storing,
    idempotency,
    prepared,
    visitor,
  }: {
    agent: Agent | undefined
    storing: Storing
    idempotency: TurnPlan['idempotency']
    prepared: Prepared
    visitor: CallVisitor | undefined
  },
): TurnPlan {
  const { input: _input, ...echo } = request
  return {
    ...storing,
    ...prepared.preceding.place,
    tenantId: caller.tenantId,
    agentId: agent?.row.id ?? '',
    agentVersion: agent?.row.version,
    visitor,
    responseId: newId('resp_', RESPONSE_ID_LENGTH, deps.random),
    idempotency,
    isStream: isStreamed(request),
    isBackground: request.background === true,
    kind: prepared.preceding.isContinuation ? 'continuation' : 'model',
    request: echo,
    input: prepared.items,
    inputField: { name: 'input', first: 0 },
    requestId: metadata.requestId,
    renderFailure(failure) {
      logFailure(deps, { ...metadata.instrumentation.line, path: '/v1/responses' }, failure)
      return Buffer.alloc(0)
    },
  }
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
  if (await isStored) nameTurn(context, id, conversationId)
  else context.setHeader('X-Parley-Stored', 'false')
  const entries = started.read(0, client)
  return request.stream ? streamResponse(view, entries, -1) : readResponse(view, entries)
}

/** Answers with the response to an earlier request that had the same idempotency key. */
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
