/** Starts and stops the turns of visitors. */
import { runTurn } from '../chat/chat.ts'
import { prepareTurn } from '../chat/prepare-turn.ts'
import { findEarlier, startOrJoin, withRequestPerson } from '../chat/stored-chat.ts'
import {
  conversationLocked,
  digestOf,
  type RunModel,
  type TurnPlan,
  type TurnRow,
} from '../conversations/conversations.ts'
import type { NewItem } from '../conversations/item-store.ts'
import { continuationItem, toInputItems } from '../conversations/items.ts'
import type { History, StoredItem } from '../conversations/reader.ts'
import {
  assertSameText,
  findClientItem,
  findClientItemOfTurn,
  findLastPosition,
  findVisitorConversation,
  renderCursor,
  toShownTurn,
  toStartedTurn,
  toVisitorItem,
} from '../conversations/visible.ts'
import { ServiceError } from '../lib/errors.ts'
import { logFailure } from '../operations/errors.ts'
import type { ChatMessage, ChatRequest, ChatTool } from '../providers/chat-api.ts'
import { toChatRequest } from '../responses/request.ts'
import type { InputItem } from '../responses/schema.ts'
import { assertAttachments, extraBytesOf, toMessageItem } from './attachments.ts'
import { type SentMessage, sendToPerson } from './handover.ts'
import type {
  ContinueInput,
  SendInput,
  SendResult,
  StartedResult,
  ToolResultsInput,
  VisitorTurn,
} from './schema.ts'
import {
  type Context,
  findOwnConversation,
  findOwnTurn,
  renderConversation,
  requireCallVisitor,
  requireStoring,
  requireVisitor,
} from './visitors.ts'

/** A log entry number that no turn reaches; the largest value that the PostgreSQL column can store. */
const AFTER_THE_LAST = 2_147_483_647
const CANCEL_WAIT_MS = 2_000
/**
 * Maximum number of attempts to send a message whose conversation is handed over or back at the same time.
 */
const MAX_TRIES = 5

const UNKNOWN_OUTCOME = 'The outcome is unknown, because the page that ran this tool has not reported it.'

/** Sends a message; starts a new conversation if `conversation` is absent. @throws ServiceError */
export async function send(context: Context, input: SendInput): Promise<SendResult> {
  const { client_id: clientId, text, attachments, conversation: conversationId } = input
  const content = attachments === undefined ? text : JSON.stringify([text, attachments])
  for (let tries = 1; ; tries++) {
    const repeated = await findRepeated(context, { clientId, conversationId, content, text })
    if (repeated.turn !== undefined) return renderSent(context, repeated.turn)
    if (repeated.message !== undefined) return renderMessage(context, repeated.message)
    try {
      const conversation = conversationId && (await findOwnConversation(context, conversationId)).conversation
      return conversation && conversation.mode !== 'model'
        ? await renderMessage(
            context,
            await sendToPerson(context, { ...input, conversation: conversation.id }),
          )
        : await sendToModel(context, input, repeated.idempotency)
    } catch (error) {
      // The conversation was handed over or back at the same time.
      const isRaced = error instanceof ServiceError && error.code === 'wrong_mode'
      if (!isRaced || tries === MAX_TRIES) throw error
    }
  }
}

async function sendToModel(
  context: Context,
  input: SendInput,
  idempotency: TurnPlan['idempotency'],
): Promise<SendResult> {
  const { conversation: conversationId } = input
  const { agent } = await requireStoring(context)
  assertAttachments(context, agent, input)
  const last = conversationId === undefined ? undefined : await findLast(context, conversationId)
  const items = [...(await missingOutputs(context, last, new Set())), toMessageItem(context, input)]
  const turn = await start(context, {
    ...{ last, page: input, items, kind: 'model', idempotency },
    extraBytes: extraBytesOf(agent, input),
  })
  return renderSent(context, turn)
}

/** Continues an interrupted answer. @throws ServiceError */
export async function continueTurn(context: Context, input: ContinueInput): Promise<StartedResult> {
  const last = await findLatest(context, input.turn)
  if (last.status === 'in_progress') throw conversationLocked()
  if (last.status !== 'incomplete' && last.status !== 'cancelled')
    throw new ServiceError('invalid_value', 'turn: must be incomplete or cancelled', {
      param: 'turn',
      code: 'not_continuable',
    })
  const outputs = await missingOutputs(context, last, new Set())
  const items = [...outputs, continuationItem(context.deps.random)]
  const plan = { last, page: input, items, kind: 'continuation', idempotency: undefined } as const
  return renderStarted(context, await start(context, plan))
}

/** Starts the next turn with the results of page tools. @throws ServiceError */
export async function sendToolResults(context: Context, input: ToolResultsInput): Promise<StartedResult> {
  const { client_id: clientId, results } = input
  const calling = await findOwnTurn(context, input.turn)
  const content = JSON.stringify(results)
  const conversationId = calling.conversation_id
  const repeated = await findRepeated(context, { clientId, conversationId, content })
  if (repeated.turn !== undefined) return renderStarted(context, repeated.turn)
  const last = await findLatest(context, input.turn)
  const pending = await listPendingCalls(context, last)
  const unknown = results.findIndex(({ call_id: id }) => !pending.includes(id))
  if (unknown >= 0)
    throw new ServiceError(
      'invalid_value',
      `results[${unknown}].call_id: must be an unanswered call of the turn`,
      {
        param: `results[${unknown}].call_id`,
      },
    )
  const given = toOutputs(context, results, 'page')
  const missing = await missingOutputs(context, last, new Set(results.map(({ call_id: id }) => id)))
  const [first, ...others] = given
  const items = [{ ...(first as NewItem), clientId }, ...others, ...missing]
  const plan = { last, page: input, items, kind: 'model', idempotency: repeated.idempotency } as const
  return renderStarted(context, await start(context, plan))
}

/** Stops a turn. @throws ServiceError */
export async function cancelTurn(context: Context, id: string): Promise<VisitorTurn> {
  const { conversations } = context.deps
  const turn = await findOwnTurn(context, id)
  if (turn.status === 'in_progress') {
    await conversations.cancel(turn)
    // Waits until the turn's final status is stored, possibly by another replica.
    const stored = conversations.follow(turn, AFTER_THE_LAST, AbortSignal.timeout(CANCEL_WAIT_MS))
    await stored.next()
  }
  return toShownTurn(await findOwnTurn(context, id))
}

interface Page {
  readonly context?: string | undefined
  readonly tools?: readonly ChatTool[] | undefined
  readonly model?: string | undefined
}

interface Start {
  /** The last turn of the conversation; undefined for a new conversation. */
  readonly last: TurnRow | undefined
  /** The page's fields, which apply to this turn only. */
  readonly page: Page
  readonly items: readonly NewItem[]
  readonly kind: TurnPlan['kind']
  readonly idempotency: TurnPlan['idempotency']
  readonly extraBytes?: number
}

/** Returns the row of the started turn. @throws ServiceError */
async function start(context: Context, given: Start): Promise<TurnRow> {
  const { deps, caller, metadata } = context
  const { last, page, items, kind, idempotency, extraBytes = 0 } = given
  const { agent, storing } = await requireStoring(context)
  const visitor = requireCallVisitor(context)
  const history = await readHistory(context, last, agent.definition.conversations?.history)
  const asked = await prepareTurn(context, toRequest(page, history.items, items))
  const turn = { ...withRequestPerson(asked), history }
  const plan: TurnPlan = {
    ...storing,
    tenantId: caller.tenantId,
    agentId: caller.agentId,
    agentVersion: agent.row.version,
    conversationId: last?.conversation_id,
    previous: undefined,
    visitor,
    isFeedTurn: true,
    number: (last?.number ?? 0) + 1,
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
  last: TurnRow | undefined,
  limits: { readonly turns: number; readonly tokens: number } | undefined,
): Promise<History> {
  if (last === undefined || limits === undefined) return { items: [], leftOut: 0 }
  return deps.conversations.reader.readVisitorHistory(last.conversation_id, limits)
}

/** Builds the request for the model from the history, the page's fields and the new items. */
function toRequest(page: Page, history: readonly StoredItem[], items: readonly NewItem[]): ChatRequest {
  const added = items.map(({ body }) => body)
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
async function missingOutputs(
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

function toOutputs(
  { deps }: Context,
  results: readonly { readonly call_id: string; readonly output: string }[],
  author: 'page' | 'service',
): NewItem[] {
  const sent = results.map((result) => ({ type: 'function_call_output' as const, ...result }))
  return toInputItems(sent, deps.random).map((item) => ({ ...item, author, isForVisitor: true }))
}

/** Returns the ids of the page tool calls that the model has written completely in this turn. */
async function listPendingCalls({ deps }: Context, turn: TurnRow): Promise<string[]> {
  const items = await deps.conversations.reader.listTurnItems(turn.id)
  return items
    .filter((item) => item.type === 'function_call' && item.author === 'model' && item.for_visitor === 1)
    .filter(({ status }) => status === 'completed')
    .map(({ body }) => JSON.parse(body).call_id)
}

async function findLast(context: Context, conversationId: string): Promise<TurnRow | undefined> {
  await findOwnConversation(context, conversationId)
  const last = await context.deps.conversations.reader.findLastTurn(conversationId)
  if (last?.status === 'in_progress') throw conversationLocked()
  return last
}

/** Returns the turn if it is the last one of its conversation. @throws ServiceError */
async function findLatest(context: Context, id: string): Promise<TurnRow> {
  const turn = await findOwnTurn(context, id)
  const last = await context.deps.conversations.reader.findLastTurn(turn.conversation_id)
  if (last?.id === id) return turn
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
async function findRepeated(
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

async function renderSent(context: Context, turn: TurnRow): Promise<SendResult> {
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

async function renderMessage(context: Context, { conversation, item }: SentMessage): Promise<SendResult> {
  const last = await context.deps.conversations.reader.findLastTurn(conversation.id)
  const next = last?.status === 'in_progress' ? 0 : 'end'
  return {
    turn: null,
    cursor: renderCursor({ position: item.position, turn: last?.number ?? 0, next }),
    conversation: renderConversation(conversation),
    item: toVisitorItem(item, true),
  }
}

async function renderStarted({ deps }: Context, turn: TurnRow): Promise<StartedResult> {
  const { read } = await deps.conversations.storage.open()
  const position = await findLastPosition(read, turn.id, 'input')
  const shown = turn.status === 'in_progress' ? toStartedTurn(turn) : toShownTurn(turn)
  return { turn: shown, cursor: renderCursor({ position, turn: turn.number, next: 0 }) }
}
