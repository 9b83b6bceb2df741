/** Starts the turns of visitors, and finds those of repeated requests. */
import { runTurn } from '../../chat/chat.ts'
import { prepareTurn } from '../../chat/prepare-turn.ts'
import { findEarlier, startOrJoin, withRequestPerson } from '../../chat/stored-chat.ts'
import {
  conversationLocked,
  digestOf,
  type RunModel,
  type TurnPlan,
  type TurnRow,
} from '../../conversations/conversations.ts'
import type { NewItem } from '../../conversations/item-store.ts'
import { toInputItems } from '../../conversations/items.ts'
import type { History, StoredItem } from '../../conversations/reader.ts'
import {
  assertSameText,
  findClientItem,
  findClientItemOfTurn,
  findLastPosition,
  findVisitorConversation,
  type Replacement,
  renderCursor,
  toShownTurn,
  toStartedTurn,
  toVisitorItem,
} from '../../conversations/visible.ts'
import { ServiceError } from '../../lib/errors.ts'
import { logFailure } from '../../operations/errors.ts'
import type { ChatMessage, ChatRequest, ChatTool } from '../../providers/chat-api.ts'
import { toChatRequest } from '../../responses/request.ts'
import type { InputItem } from '../../responses/schema.ts'
import type { SentMessage } from '../handover.ts'
import type { SendResult, StartedResult } from '../schema.ts'
import {
  type Context,
  findOwnConversation,
  findOwnTurn,
  renderConversation,
  requireCallVisitor,
  requireStoring,
  requireVisitor,
} from '../visitors.ts'

const UNKNOWN_OUTCOME = 'The outcome is unknown, because the page that ran this tool has not reported it.'

/** The fields of the page, which apply to one turn. */
export interface Page {
  readonly context?: string | undefined
  readonly tools?: readonly ChatTool[] | undefined
  readonly model?: string | undefined
}

/** The end of a conversation, from which the next turn's input is built. */
export interface ConversationEnd {
  readonly conversationId: string
  /** The number of the last turn; 0 without turns. */
  readonly number: number
  /** The last turn that was not replaced. */
  readonly last: TurnRow | undefined
}

/** The turns that a new turn replaces. */
export interface Replaced {
  readonly replacement: Replacement
  readonly turns: readonly string[]
  /** The revision of the conversation from which these turns were read. */
  readonly revision: number
}

interface Start {
  /** Undefined for a new conversation. */
  readonly end: ConversationEnd | undefined
  readonly page: Page
  readonly items: readonly NewItem[]
  readonly kind: TurnPlan['kind']
  readonly idempotency: TurnPlan['idempotency']
  readonly extraBytes?: number
  readonly replaced?: Replaced
}

/** Returns the row of the started turn. @throws ServiceError */
export async function start(context: Context, given: Start): Promise<TurnRow> {
  const { deps, caller, metadata } = context
  const { end, page, items, kind, idempotency, extraBytes = 0, replaced } = given
  const { agent, storing } = await requireStoring(context)
  const visitor = requireCallVisitor(context)
  const limits = agent.definition.conversations?.history
  const history = await readHistory(context, end?.conversationId, limits, replaced?.turns)
  const asked = await prepareTurn(context, toRequest(page, history.items, items))
  const turn = { ...withRequestPerson(asked), history }
  const plan: TurnPlan = {
    ...storing,
    tenantId: caller.tenantId,
    agentId: caller.agentId,
    agentVersion: agent.row.version,
    conversationId: end?.conversationId,
    previous: undefined,
    replacement: replaced?.replacement,
    revision: replaced?.revision,
    visitor,
    isFeedTurn: true,
    number: (end?.number ?? 0) + 1,
    inputField: { name: 'input', first: 0 },
    responseId: undefined,
    idempotency,
    isStream: true,
    isBackground: false,
    kind,
    request: { stream: true },
    input: items,
    extraBytes,
    requestId: metadata.requestId,
    renderFailure(failure) {
      logFailure(deps, { ...metadata.instrumentation.line, path: '/trpc/visitor.send' }, failure)
      return Buffer.alloc(0)
    },
  }
  const run: RunModel = (signal, reports) => runTurn(context, turn, signal, reports)
  const started = await startOrJoin(context, plan, run, 'client_id').catch((error) =>
    joinWinner(context, idempotency, error),
  )
  return 'read' in started ? findOwnTurn(context, started.id) : started
}

/**
 * Returns the turn that an identical concurrent request has started. @throws `error` if no such request
 * exists
 */
async function joinWinner(
  context: Context,
  idempotency: TurnPlan['idempotency'],
  error: unknown,
): Promise<TurnRow> {
  const winner =
    error instanceof ServiceError && error.reason === 'conflict' && idempotency !== undefined
      ? await findEarlier(context, idempotency, 'client_id')
      : undefined
  if (winner === undefined) throw error
  return winner
}

async function readHistory(
  { deps }: Context,
  conversationId: string | undefined,
  limits: { readonly turns: number; readonly tokens: number } | undefined,
  replaced: readonly string[] | undefined,
): Promise<History> {
  if (conversationId === undefined || limits === undefined) return { items: [], leftOut: 0 }
  return deps.conversations.reader.readVisitorHistory(conversationId, limits, replaced)
}

/** Builds the request for the model from the history, the page's fields and the new items. */
function toRequest(page: Page, history: readonly StoredItem[], items: readonly NewItem[]): ChatRequest {
  const added = items.filter(({ isForModel }) => isForModel !== false).map(({ body }) => body)
  // Omits results whose calls are no longer in the history.
  const { messages } = toChatRequest({ input: [] }, [...history, ...added] as unknown as InputItem[])
  return {
    ...(page.model !== undefined && { model: page.model }),
    ...(page.tools !== undefined && page.tools.length > 0 && { tools: [...page.tools] }),
    messages: withContext(messages, page.context),
    stream: true,
  }
}

/** Adds the page's text before the visitor's newest message. A later step marks the text as untrusted. */
function withContext(messages: readonly ChatMessage[], context: string | undefined): ChatMessage[] {
  if (context === undefined || context === '') return [...messages]
  const newest = messages.findLastIndex(({ role }) => role === 'user')
  return messages.toSpliced(Math.max(0, newest), 0, { role: 'system', content: context })
}

/** Returns outputs for the last turn's page tool calls that are not in `answered`. */
export async function missingOutputs(
  context: Context,
  last: TurnRow | undefined,
  answered: ReadonlySet<string>,
): Promise<NewItem[]> {
  const pending = last === undefined ? [] : await listPendingCalls(context, last)
  const missing = pending.filter((id) => !answered.has(id))
  return toOutputs(
    context,
    missing.map((id) => ({ call_id: id, output: UNKNOWN_OUTCOME })),
    'service',
  )
}

export function toOutputs(
  { deps }: Context,
  results: readonly { readonly call_id: string; readonly output: string }[],
  author: 'page' | 'service',
): NewItem[] {
  const sent = results.map((result) => ({ type: 'function_call_output' as const, ...result }))
  return toInputItems(sent, deps.random).map((item) => ({ ...item, author, isForVisitor: true }))
}

/** Returns the ids of the page tool calls that the model has written completely in this turn. */
export async function listPendingCalls({ deps }: Context, turn: TurnRow): Promise<string[]> {
  const items = await deps.conversations.reader.listTurnItems(turn.id)
  return items
    .filter((item) => item.type === 'function_call' && item.author === 'model' && item.for_visitor === 1)
    .filter(({ status }) => status === 'completed')
    .map(({ body }) => JSON.parse(body).call_id)
}

/** @throws ServiceError `conversation_locked` if a turn runs */
export async function findEnd(context: Context, conversationId: string): Promise<ConversationEnd> {
  const end = await readEnd(context, conversationId)
  if (end.last?.status === 'in_progress') throw conversationLocked()
  return end
}

async function readEnd({ deps }: Context, conversationId: string): Promise<ConversationEnd> {
  const { reader } = deps.conversations
  const last = await reader.findLastTurn(conversationId)
  const current = last?.replaced == null ? last : await reader.findCurrentTurn(conversationId)
  return { conversationId, number: last?.number ?? 0, last: current }
}

/** Returns the turn if it is the last one of its conversation. @throws ServiceError */
export async function findLatest(
  context: Context,
  id: string,
): Promise<{ readonly turn: TurnRow; readonly end: ConversationEnd }> {
  const turn = await findOwnTurn(context, id)
  const end = await readEnd(context, turn.conversation_id)
  if (end.last?.id === id) return { turn, end }
  throw new ServiceError('conflict', 'turn: a later turn of the conversation exists', {
    param: 'turn',
    code: 'turn_not_last',
  })
}

interface Repeatable {
  readonly clientId: string
  readonly conversationId: string | undefined
  /** The client's message or tool results, which a repeated request must contain unchanged. */
  readonly content: string
  readonly text?: string
}

type Idempotency = NonNullable<TurnPlan['idempotency']>

/**
 * Finds the turn of an earlier request with the same client id. @throws ServiceError `idempotency_key_reused`
 */
export async function findRepeated(
  context: Context,
  { clientId, conversationId, content, text = '' }: Repeatable,
): Promise<{ idempotency: Idempotency; turn: TurnRow | undefined; message?: SentMessage }> {
  const { deps } = context
  const visitor = requireVisitor(context)
  const idempotency = {
    digest: digestOf(JSON.stringify([visitor.tenantId, visitor.visitorId, clientId])),
    requestDigest: digestOf(content),
  }
  const earlier = await findEarlier(context, idempotency, 'client_id')
  if (earlier !== undefined || conversationId === undefined) return { idempotency, turn: earlier }
  const { read, conversation } = await findOwnConversation(context, conversationId)
  const item = await findClientItem(read, conversationId, clientId)
  if (item === undefined) return { idempotency, turn: undefined }
  if (item.turn_id === null) {
    assertSameText(item, { text, author: 'visitor' })
    return { idempotency, turn: undefined, message: { conversation, item } }
  }
  // After 24 hours or a failure, only the item still contains the client id.
  const turn = await deps.conversations.reader.findTurn(visitor.tenantId, 'id', item.turn_id)
  if (turn !== undefined && (turn.request_digest ?? idempotency.requestDigest) === idempotency.requestDigest)
    return { idempotency, turn }
  throw new ServiceError(
    'idempotency_key_reused',
    'client_id: was used for a different message in this conversation; send a new client_id.',
    { param: 'client_id' },
  )
}

export async function renderSent(context: Context, turn: TurnRow): Promise<SendResult> {
  const { deps } = context
  const { read } = await deps.conversations.storage.open()
  const conversation = await findVisitorConversation(read, requireVisitor(context), turn.conversation_id)
  const item = await findClientItemOfTurn(read, turn.id)
  if (conversation === undefined || item === undefined)
    throw new ServiceError('not_found', 'The conversation was deleted.', { param: 'conversation' })
  return {
    ...(await renderStarted(context, turn)),
    conversation: renderConversation(conversation),
    item: toVisitorItem(item, true),
  }
}

export async function renderMessage(
  context: Context,
  { conversation, item }: SentMessage,
): Promise<SendResult> {
  const last = await context.deps.conversations.reader.findLastTurn(conversation.id)
  const next = last?.status === 'in_progress' ? 0 : 'end'
  return {
    turn: null,
    cursor: renderCursor({ position: item.position, turn: last?.number ?? 0, next }),
    conversation: renderConversation(conversation),
    item: toVisitorItem(item, true),
  }
}

export async function renderStarted({ deps }: Context, turn: TurnRow): Promise<StartedResult> {
  const { read } = await deps.conversations.storage.open()
  const position = await findLastPosition(read, turn.id, 'input')
  const shown = turn.status === 'in_progress' ? toStartedTurn(turn) : toShownTurn(turn)
  return { turn: shown, cursor: renderCursor({ position, turn: turn.number, next: 0 }) }
}
