/** Sends the messages and tool results of visitors, and continues and stops their turns. */
import { conversationLocked, type TurnPlan } from '../conversations/conversations.ts'
import type { NewItem } from '../conversations/item-store.ts'
import { continuationItem } from '../conversations/items.ts'
import { toShownTurn } from '../conversations/visible.ts'
import { ServiceError } from '../lib/errors.ts'
import { assertAttachments, extraBytesOf, toMessageItem } from './attachments.ts'
import { sendToPerson } from './handover.ts'
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
  findEnd,
  findLatest,
  findRepeated,
  listPendingCalls,
  missingOutputs,
  renderMessage,
  renderSent,
  renderStarted,
  start,
  toOutputs,
} from './turns/start.ts'
import { type Context, findOwnConversation, findOwnTurn, requireStoring } from './visitors.ts'

/** A log entry number that no turn reaches; the largest value that the PostgreSQL column can store. */
const AFTER_THE_LAST = 2_147_483_647
const CANCEL_WAIT_MS = 2_000
/**
 * Maximum number of attempts to send a message whose conversation is handed over or back at the same time.
 */
const MAX_TRIES = 5

/** Sends a message; starts a new conversation if `conversation` is absent. @throws ServiceError */
export async function send(context: Context, input: SendInput): Promise<SendResult> {
  const { client_id: clientId, text, attachments, conversation: conversationId, replaces } = input
  if (replaces !== undefined) return edit(context, { ...input, replaces })
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
  const end = conversationId === undefined ? undefined : await findEnd(context, conversationId)
  const items = [...(await missingOutputs(context, end?.last, new Set())), toMessageItem(context, input)]
  const turn = await start(context, {
    ...{ end, page: input, items, kind: 'model', idempotency },
    extraBytes: extraBytesOf(agent, input),
  })
  return renderSent(context, turn)
}

/** Continues an interrupted answer. @throws ServiceError */
export async function continueTurn(context: Context, input: ContinueInput): Promise<StartedResult> {
  const { turn: last, end } = await findLatest(context, input.turn)
  if (last.status === 'in_progress') throw conversationLocked()
  if (last.status !== 'incomplete' && last.status !== 'cancelled')
    throw new ServiceError('invalid_value', 'turn: must be incomplete or cancelled', {
      param: 'turn',
      code: 'not_continuable',
    })
  const outputs = await missingOutputs(context, last, new Set())
  const items = [...outputs, continuationItem(context.deps.random)]
  const plan = { end, page: input, items, kind: 'continuation', idempotency: undefined } as const
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
  const { turn: last, end } = await findLatest(context, input.turn)
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
  const plan = { end, page: input, items, kind: 'model', idempotency: repeated.idempotency } as const
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
