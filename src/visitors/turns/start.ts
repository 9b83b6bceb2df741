/** Starts the turns of visitors, and finds those of repeated requests. */
import { findEarlier, startOrJoin } from '../../chat/stored-chat.ts'
import {
  ConversationChanged,
  conversationLocked,
  digestOf,
  type TurnPlan,
  type TurnRow,
} from '../../conversations/conversations.ts'
import type { NewItem } from '../../conversations/item-store.ts'
import { toInputItems } from '../../conversations/items.ts'
import {
  assertSameText,
  type ConversationRow,
  findClientItem,
  findClientItemOfTurn,
  findLastPosition,
  findVisitorConversation,
  type Replacement,
  renderCursor,
  toShownTurn,
  toStartedTurn,
  toVisitorItem,
  UNKNOWN_OUTCOME,
} from '../../conversations/visible.ts'
import { ServiceError } from '../../lib/errors.ts'
import { logFailure } from '../../operations/errors.ts'
import type { SentMessage } from '../handover.ts'
import { type PageFields, readHistory, toRequest } from '../messages.ts'
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
import { prepareRun } from './prepare.ts'

/** Maximum number of attempts to start a turn in a conversation that other requests are changing. */
const MAX_TRIES = 5

/** Whether the conversation has changed since the request read it. */
export function isChanged(error: unknown): boolean {
  return error instanceof ConversationChanged
}

/** Repeats `attempt` while it fails with an error for which `isRetryable` is true. @throws ServiceError */
export async function retry<Result>(
  attempt: () => Promise<Result>,
  isRetryable: (error: unknown) => boolean = isChanged,
): Promise<Result> {
  for (let tries = 1; ; tries++) {
    try {
      return await attempt()
    } catch (error) {
      if (!isRetryable(error) || tries === MAX_TRIES) throw error
    }
  }
}

/** The turns that a new turn replaces. */
export interface Replaced {
  readonly replacement: Replacement
  readonly turns: readonly string[]
}

export interface Start {
  /**
   * The conversation before its last turn, its open calls and its history were read, so that the turn starts
   * only if they are still current; undefined for a new conversation.
   */
  readonly conversation: ConversationRow | undefined
  /** The page's fields, which apply to this turn only. */
  readonly page: PageFields
  readonly items: readonly NewItem[]
  readonly kind: TurnPlan['kind']
  readonly idempotency: TurnPlan['idempotency']
  readonly extraBytes?: number
  readonly replaced?: Replaced
}

/** Returns the row of the started turn. @throws ServiceError */
export async function start(context: Context, given: Start): Promise<TurnRow> {
  const { deps, caller, metadata } = context
  const { conversation, page, items, kind, idempotency, extraBytes = 0, replaced } = given
  const { agent, storing } = await requireStoring(context)
  const visitor = requireCallVisitor(context)
  const limits = agent.definition.conversations?.history
  const history = await readHistory(context, conversation?.id, limits, replaced?.turns)
  const { run, endSpan } = await prepareRun(context, agent, toRequest(page, history.items, items), history)
  const plan: TurnPlan = {
    ...storing,
    tenantId: caller.tenantId,
    agentId: caller.agentId,
    agentVersion: agent.row.version,
    conversationId: conversation?.id,
    revision: conversation?.revision,
    previous: undefined,
    replacement: replaced?.replacement,
    visitor,
    isFeedTurn: true,
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
  const started = await startOrJoin(context, plan, run, 'client_id')
    .catch((error) => joinWinner(context, idempotency, error))
    .catch((error) => {
      endSpan(error)
      throw error
    })
  if ('read' in started) return findOwnTurn(context, started.id)
  endSpan(undefined)
  return started
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

/** Returns outputs for the last turn's page tool calls that are not in `answered`. */
export async function missingOutputs(
  context: Context,
  last: TurnRow | undefined,
  answered: ReadonlySet<string>,
): Promise<NewItem[]> {
  const pending = last === undefined ? [] : await context.deps.conversations.reader.listOpenCalls(last)
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

/** Returns the last turn that was not replaced. @throws ServiceError `conversation_locked` if a turn runs */
export async function findLast(context: Context, conversationId: string): Promise<TurnRow | undefined> {
  const last = await context.deps.conversations.reader.findCurrentTurn(conversationId)
  if (last?.status === 'in_progress') throw conversationLocked()
  return last
}

/**
 * Returns the turn if it is the last one of its conversation, and the conversation before the turn was read.
 * @throws ServiceError
 */
export async function findLatest(
  context: Context,
  id: string,
): Promise<{ readonly conversation: ConversationRow; readonly last: TurnRow }> {
  const turn = await findOwnTurn(context, id)
  const { conversation } = await findOwnConversation(context, turn.conversation_id)
  const last = await context.deps.conversations.reader.findCurrentTurn(turn.conversation_id)
  if (last?.id === id) return { conversation, last }
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
