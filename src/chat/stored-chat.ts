/** Answers chat requests with stored turns, whose streams can be resumed. */
import { toSeconds } from '../agents/definition-parts.ts'
import {
  countResume,
  digestOf,
  type LogEntry,
  type RunModel,
  type StartedTurn,
  type TurnPlan,
  type TurnReports,
  type TurnRow,
  withoutAssignee,
} from '../conversations/conversations.ts'
import { answerInterrupted, parseEventId, toChatStream } from '../conversations/events.ts'
import { toChatItems } from '../conversations/items.ts'
import { endOf, type LoggedEnd } from '../conversations/turn-output.ts'
import { mapConstraintError } from '../db/open.ts'
import type { Latin1 } from '../http/response.ts'
import { unixSeconds } from '../lib/clock.ts'
import { type Reason, reasons, ServiceError } from '../lib/errors.ts'
import { logFailure, renderError } from '../operations/errors.ts'
import {
  type CallContext,
  type Caller,
  type CallVisitor,
  EventStream,
  JsonBytes,
} from '../operations/operation.ts'
import type { ChatRequest } from '../providers/chat-api.ts'
import { requestPersonTool } from '../tools/request-person.ts'
import { REQUEST_PERSON } from '../tools/tools.ts'
import type { Dependencies } from './dependencies.ts'
import type { Turn } from './prepare-turn.ts'
import { withinStreamLimit } from './stream-quotas.ts'

type Context = CallContext<Caller, Dependencies>

const DAY_SECONDS = 86_400
const AGENT_KEY_SECONDS = DAY_SECONDS

export type Storing = Pick<TurnPlan, 'keepSeconds' | 'onDisconnect' | 'toolData'>

/**
 * Returns the storage settings of a turn; undefined if it is not stored. `store` is the request's field;
 * `byDefault` is its default for turns without an agent.
 */
export function findStoring(
  { deps }: Pick<Context, 'deps'>,
  turn: Pick<Turn, 'agentId' | 'conversations'>,
  store: boolean | null | undefined,
  byDefault = false,
): Storing | undefined {
  const { isAllowed, maxDays, withoutAgent, withoutAgentDays } = deps.config.conversations
  if (!isAllowed || store === false) return undefined
  if (turn.agentId === undefined) {
    const isWanted = withoutAgent === 'default' ? (store ?? byDefault) : store === true
    if (withoutAgent === 'off' || !isWanted) return undefined
    const keepSeconds = Math.min(withoutAgentDays, maxDays) * DAY_SECONDS
    return { keepSeconds, onDisconnect: 'cancel', toolData: 'full' }
  }
  if (turn.conversations === undefined) return undefined
  const { keep, onDisconnect, toolData } = turn.conversations
  return { keepSeconds: Math.min(toSeconds(keep), maxDays * DAY_SECONDS), onDisconnect, toolData }
}

interface StoredChat {
  readonly turn: Turn
  readonly request: ChatRequest
  readonly storing: Storing
  readonly run: (
    context: Context,
    turn: Turn,
    client: AbortSignal,
    reports: TurnReports,
  ) => AsyncGenerator<Uint8Array, void, void>
}

/**
 * Answers a request with a new stored turn, or with the turn of an earlier request with the same idempotency
 * key. @throws ServiceError
 */
export async function chatStored(
  context: Context,
  { turn, request, storing, run }: StoredChat,
  client: AbortSignal,
): Promise<JsonBytes | EventStream> {
  const { deps, caller, metadata } = context
  const idempotency = readIdempotency(context, request)
  const earlier = idempotency && (await findEarlier(context, idempotency))
  if (earlier !== undefined) return attach(context, earlier, turn.isStream, client)
  const visitor = await turn.findVisitor()
  const { store: _store, ...body } = turn.request
  const stored = withRequestPerson({ ...turn, request: body as ChatRequest })
  const plan: TurnPlan = {
    ...storing,
    tenantId: caller.tenantId,
    agentId: turn.agentId ?? '',
    agentVersion: turn.agentVersion,
    conversationId: await findConversationId(context, turn.agentId ?? '', visitor),
    visitor,
    previous: undefined,
    responseId: undefined,
    idempotency,
    isStream: turn.isStream,
    isBackground: false,
    kind: 'model',
    request: { stream: turn.isStream },
    ...toChatItems(request.messages, deps.random),
    requestId: metadata.requestId,
    renderFailure: (failure) => renderLogged(context, failure),
  }
  const started = await startOrJoin(context, plan, (signal, reports) => run(context, stored, signal, reports))
  if (!('read' in started)) return attach(context, started, turn.isStream, client)
  return turn.isStream
    ? toStream(startedEvents(context, started, client))
    : readCompletion(started.read(0, client), async () => nameStored(context, started))
}

const requestPersonDefinition = {
  type: 'function',
  function: {
    name: REQUEST_PERSON,
    description: requestPersonTool.description,
    parameters: requestPersonTool.inputSchema,
  },
}

/** Adds the tool `request_person` to a stored turn of an agent with `handover.tool`. */
export function withRequestPerson(turn: Turn): Turn {
  const { tools, request, conversations } = turn
  if (tools === undefined || !conversations?.handover?.tool) return turn
  const others = (request.tools ?? []).filter((tool) => tool.function?.name !== REQUEST_PERSON)
  const callers = new Set(tools.callers)
  callers.delete(REQUEST_PERSON)
  const own = new Map(tools.own).set(REQUEST_PERSON, { tool: requestPersonTool, agentSchema: undefined })
  return {
    ...turn,
    request: { ...request, tools: [...others, requestPersonDefinition] },
    tools: { ...tools, callers, own },
  }
}

/** Continues a stream after the event in the `Last-Event-ID` header. @throws ServiceError */
export async function resumeChat(context: Context, client: AbortSignal): Promise<EventStream> {
  const { deps, caller, metadata } = context
  const id = parseEventId(String(metadata.headers['last-event-id']))
  if (id === undefined)
    throw new ServiceError('invalid_value', 'Last-Event-ID: must be the id of an event that this server sent')
  const turn = await deps.conversations.reader.findTurn(
    caller.tenantId,
    'stream_digest',
    digestOf(id.capability),
  )
  if (turn === undefined || !mayRead(context, turn) || deps.conversations.reader.isReplayOver(turn))
    throw new ServiceError('not_found', 'Last-Event-ID: the stream does not exist or is no longer stored', {
      code: 'stream_not_found',
    })
  nameTurn(context, turn.id, turn.conversation_id)
  deps.metrics.conversations.streamResumed('chat')
  noteResume(context, turn)
  const batches = withinStreamLimit(context, deps.conversations.followRuns(turn, 0, client))
  return toStream(toChatStream(batches, { capability: id.capability, after: id.number }))
}

/** Counts a resumed stream without delaying it; a failure must not end the stream. */
export function noteResume({ deps, metadata }: Context, turn: TurnRow): void {
  countResume(deps.conversations, turn.id).catch((error) =>
    deps.log.warn({ err: error, requestId: metadata.requestId }, 'failed to count a resumed stream'),
  )
}

/**
 * Returns whether the caller may read a turn. Agent keys are public, so they can read their agent's turns for
 * only a day, and a visitor's turn only with the visitor's token.
 */
export function mayRead(
  { deps, caller, visitor }: Context,
  { agent_id: agentId, visitor_id: visitorId, created_at: createdAt }: Owned,
): boolean {
  if (caller.kind === 'parent') return true
  const isRecent = createdAt + AGENT_KEY_SECONDS >= unixSeconds(deps.clock)
  return isRecent && agentId === caller.agentId && (visitorId === null || visitorId === visitor?.id)
}

type Owned = Pick<TurnRow, 'agent_id' | 'visitor_id' | 'created_at'>

export function nameTurn(context: Context, turnId: string, conversationId: string): void {
  context.setHeader('X-Parley-Stored', 'true')
  context.setHeader('X-Parley-Turn', turnId)
  if (context.caller.kind === 'parent') context.setHeader('X-Parley-Conversation', conversationId)
}

function toStream(events: AsyncGenerator<Latin1, void, void>): EventStream {
  return new EventStream(events, renderFailure)
}

function startedEvents(
  context: Context,
  started: StartedTurn,
  client: AbortSignal,
): AsyncGenerator<Latin1, void, void> {
  const capability = nameStored(context, started).then((isStored) =>
    isStored ? started.capability : undefined,
  )
  return toChatStream(started.readRuns(0, client), { capability, after: -1 })
}

async function nameStored(context: Context, { id, conversationId, isStored }: StartedTurn): Promise<boolean> {
  if (await isStored) {
    nameTurn(context, id, conversationId)
    return true
  }
  context.setHeader('X-Parley-Stored', 'false')
  return false
}

/** Reads the completion of a turn that is not streamed. @throws ServiceError if the turn ended without one */
async function readCompletion(
  entries: AsyncIterable<LogEntry>,
  onFirst: () => Promise<unknown>,
): Promise<JsonBytes> {
  const pieces: Uint8Array[] = []
  let failure: LoggedEnd['failure']
  for await (const entry of entries) {
    if (entry.kind === 'completion') pieces.push(entry.bytes)
    failure ??= endOf(entry)?.failure
  }
  await onFirst()
  if (pieces.length > 0) return new JsonBytes(pieces)
  if (failure === undefined) throw answerInterrupted()
  const { code, message } = failure
  const reason = Object.hasOwn(reasons, code) ? (code as Reason) : 'backend_error'
  throw new ServiceError(reason, message, { code })
}

function renderLogged(context: Context, failure: ServiceError): Uint8Array {
  const { deps, metadata } = context
  logFailure(deps, { ...metadata.instrumentation.line, path: '/v1/chat/completions' }, failure)
  return renderFailure(failure)
}

function renderFailure(failure: ServiceError): Uint8Array {
  return Buffer.from(`data: ${JSON.stringify(renderError(failure, 'openai'))}\n\n`)
}

/**
 * Returns the id of the conversation in the `X-Parley-Conversation` header. @throws ServiceError if the
 * caller may not use it.
 */
async function findConversationId(
  { deps, caller, metadata }: Context,
  agentId: string,
  visitor: CallVisitor | undefined,
): Promise<string | undefined> {
  const id = metadata.headers['x-parley-conversation']
  if (id === undefined) return undefined
  assertMayName(caller)
  await deps.conversations.reader.assertUsable(
    caller.tenantId,
    { agentId, visitorId: visitor?.id },
    String(id),
  )
  return String(id)
}

/**
 * Rejects agent keys, which are public and must not give access to a conversation by its id alone.
 * @throws ServiceError
 */
export function assertMayName(caller: Caller): void {
  if (caller.kind === 'agent')
    throw new ServiceError('insufficient_permissions', 'conversation: requires a parent key', {
      param: 'conversation',
      code: 'visitor_required',
    })
}

type Idempotency = NonNullable<TurnPlan['idempotency']>

/** Reads the `Idempotency-Key` header (draft-ietf-httpapi-idempotency-key-header). @throws ServiceError */
export function readIdempotency(context: Context, request: object): Idempotency | undefined {
  const key = context.metadata.headers['idempotency-key']
  if (key === undefined) return undefined
  if (typeof key !== 'string' || !/^[\x21-\x7e]{1,255}$/.test(key))
    throw new ServiceError('invalid_value', 'Idempotency-Key: must be 1 to 255 visible ASCII characters')
  const { caller } = context
  const scope = caller.kind === 'agent' ? caller.agentId : ''
  return {
    digest: digestOf(JSON.stringify([caller.tenantId, scope, key])),
    requestDigest: digestOf(JSON.stringify(request)),
  }
}

/**
 * Returns the turn of an earlier request with the same key. `field` names the key in the error. @throws
 * ServiceError `idempotency_key_reused`
 */
export async function findEarlier(
  { deps, caller }: Context,
  { digest, requestDigest }: Idempotency,
  field = 'Idempotency-Key',
): Promise<TurnRow | undefined> {
  const turn = await deps.conversations.reader.findTurn(caller.tenantId, 'idempotency_digest', digest)
  if (turn === undefined || deps.conversations.reader.isKeyOver(turn)) return undefined
  if (turn.request_digest === requestDigest) return turn
  throw new ServiceError(
    'idempotency_key_reused',
    `${field}: was used for a different request within the last 24 hours; send a new value`,
    { param: field },
  )
}

/**
 * Starts a turn, or returns the turn that a concurrent request with the same idempotency key started. `field`
 * names the key in errors.
 * @throws ServiceError
 */
export async function startOrJoin(
  context: Context,
  plan: TurnPlan,
  model: RunModel,
  field?: string,
): Promise<StartedTurn | TurnRow> {
  const { conversations } = context.deps
  const { idempotency } = plan
  const start = () =>
    conversations.start(plan, model).catch((error) => {
      // Agent keys are public, so they do not receive the name of the person who answers.
      throw context.caller.kind === 'agent' ? withoutAssignee(error) : error
    })
  if (idempotency === undefined) return start()
  for (;;) {
    try {
      const started = await conversations.keyedStarts.run(idempotency.digest, start)
      // Nothing is found if the concurrent turn failed before its first event; its key is free again, so this
      // retries.
      const found = started ?? (await findEarlier(context, idempotency, field))
      if (found !== undefined) return found
    } catch (error) {
      // Another process has stored a turn with this key.
      const isTaken = mapConstraintError(error) === 'unique'
      const winner = isTaken ? await findEarlier(context, idempotency, field) : undefined
      if (winner === undefined) throw error
      return winner
    }
  }
}

/** Answers with the turn of an earlier request, whether that turn is running or has ended. */
async function attach(
  context: Context,
  turn: TurnRow,
  isStream: boolean,
  client: AbortSignal,
): Promise<JsonBytes | EventStream> {
  nameTurn(context, turn.id, turn.conversation_id)
  const { conversations } = context.deps
  if (!isStream) return readCompletion(conversations.follow(turn, 0, client), async () => {})
  const batches = withinStreamLimit(context, conversations.followRuns(turn, 0, client))
  return toStream(toChatStream(batches, { capability: conversations.capabilityOf(turn.id), after: -1 }))
}
