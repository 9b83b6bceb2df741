/** Sends the messages and tool results of visitors, and continues and stops their turns. */
import { conversationLocked, wrongMode } from '../conversations/conversations.ts'
import type { NewItem } from '../conversations/item-store.ts'
import { continuationItem } from '../conversations/items.ts'
import { toShownTurn } from '../conversations/visible.ts'
import { ServiceError } from '../lib/errors.ts'
import { sendToPerson } from './handover.ts'
import { checkAttachments, extraBytesOf, toMessageItem } from './messages.ts'
import type {
  ContinueInput,
  SendInput,
  SendResult,
  StartedResult,
  ToolResultsInput,
  VisitorTurn,
} from './schema.ts'
import { edit } from './turns/replace.ts'
import {
  findLast,
  findLatest,
  findRepeated,
  isChanged,
  missingOutputs,
  renderMessage,
  renderSent,
  renderStarted,
  retry,
  type Start,
  start,
  toOutputs,
} from './turns/start.ts'
import { type Context, findOwnConversation, findOwnTurn, requireStoring } from './visitors.ts'

/** A log entry number that no turn reaches; the largest value that the PostgreSQL column can store. */
const AFTER_THE_LAST = 2_147_483_647
const CANCEL_WAIT_MS = 2_000
/** Sends a message; starts a new conversation if `conversation` is absent. @throws ServiceError */
export async function send(context: Context, input: SendInput): Promise<SendResult> {
  const { client_id: clientId, text, attachments, conversation: conversationId, replaces } = input
  if (replaces !== undefined) return edit(context, { ...input, replaces })
  const content = attachments === undefined ? text : JSON.stringify([text, attachments])
  const attempt = async () => {
    const repeated = await findRepeated(context, { clientId, conversationId, content, text })
    if (repeated.turn !== undefined) return renderSent(context, repeated.turn)
    if (repeated.message !== undefined) return renderMessage(context, repeated.message)
    const conversation =
      conversationId === undefined
        ? undefined
        : (await findOwnConversation(context, conversationId)).conversation
    if (conversation === undefined || conversation.mode === 'model')
      return sendToModel(context, input, { conversation, idempotency: repeated.idempotency })
    return renderMessage(context, await sendToPerson(context, { ...input, conversation: conversation.id }))
  }
  // A message can be sent in each mode, so one that meets a change of the mode is sent again.
  return retry(attempt, (error) => isChanged(error) || (error as ServiceError).code === 'wrong_mode')
}

async function sendToModel(
  context: Context,
  input: SendInput,
  { conversation, idempotency }: Pick<Start, 'conversation' | 'idempotency'>,
): Promise<SendResult> {
  const { agent } = await requireStoring(context)
  const uploads = await checkAttachments(context, agent, input)
  const last = conversation && (await findLast(context, conversation.id))
  const items = [...(await missingOutputs(context, last, new Set())), toMessageItem(context, input, uploads)]
  await context.deps.visitorUploads.keep([...uploads.keys()])
  const turn = await start(context, {
    ...{ conversation, page: input, items, kind: 'model', idempotency },
    extraBytes: extraBytesOf(agent, input),
  })
  return renderSent(context, turn)
}

/** Continues an interrupted answer. @throws ServiceError */
export function continueTurn(context: Context, input: ContinueInput): Promise<StartedResult> {
  return retry(async () => {
    const { conversation, last } = await findLatest(context, input.turn)
    if (last.status === 'in_progress') throw conversationLocked()
    if (last.status !== 'incomplete' && last.status !== 'cancelled')
      throw new ServiceError('invalid_value', 'turn: must be incomplete or cancelled', {
        param: 'turn',
        code: 'not_continuable',
      })
    const outputs = await missingOutputs(context, last, new Set())
    const items = [...outputs, continuationItem(context.deps.random)]
    const plan = { conversation, page: input, items, kind: 'continuation', idempotency: undefined } as const
    return renderStarted(context, await start(context, plan))
  })
}

/** Starts the next turn with the results of page tools. @throws ServiceError */
export function sendToolResults(context: Context, input: ToolResultsInput): Promise<StartedResult> {
  const { client_id: clientId, results } = input
  const content = JSON.stringify(results)
  return retry(async () => {
    const calling = await findOwnTurn(context, input.turn)
    const conversationId = calling.conversation_id
    const { idempotency, turn } = await findRepeated(context, { clientId, conversationId, content })
    if (turn !== undefined) return renderStarted(context, turn)
    const { conversation, last } = await findLatest(context, input.turn)
    // Check the mode before the calls: a handover adds a result to each open call, so `assertOpen` would
    // report the wrong error.
    if (conversation.mode !== 'model') throw wrongMode({ mode: conversation.mode, assignee: null })
    const pending = await context.deps.conversations.reader.listOpenCalls(last)
    assertOpen(results, pending)
    const given = toOutputs(context, results, 'page')
    const missing = await missingOutputs(context, last, new Set(results.map(({ call_id: id }) => id)))
    const [first, ...others] = given
    const items = [{ ...(first as NewItem), clientId }, ...others, ...missing]
    const plan = { conversation, page: input, items, kind: 'model', idempotency } as const
    return renderStarted(context, await start(context, plan))
  })
}

/** @throws ServiceError if a result belongs to a call that is not in `pending` */
function assertOpen(results: ToolResultsInput['results'], pending: readonly string[]): void {
  const unknown = results.findIndex(({ call_id: id }) => !pending.includes(id))
  if (unknown < 0) return
  const param = `results[${unknown}].call_id`
  throw new ServiceError('invalid_value', `${param}: must be an unanswered call of the turn`, { param })
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
