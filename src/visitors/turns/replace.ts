/** Changes earlier messages of visitors, and requests other answers to them (ADR 0076). */
import { getOwnAgent } from '../../agents/cache.ts'
import { attachmentBytesOf } from '../../agents/definition-parts.ts'
import { type TurnRow, withoutAssignee, wrongMode } from '../../conversations/conversations.ts'
import type { ItemRow, NewItem } from '../../conversations/item-store.ts'
import { toChatItems } from '../../conversations/items.ts'
import {
  findReplacedTurns,
  isAttachment,
  type Replacing,
  removeExchange,
  toReplacementItem,
} from '../../conversations/visible.ts'
import { newId } from '../../lib/ids.ts'
import { checkAttachments, extraBytesOf, type PageFields, toMessageItem } from '../messages.ts'
import type { RegenerateInput, SendInput, SendResult } from '../schema.ts'
import { type Context, findOwnConversation, findOwnTurn } from '../visitors.ts'
import { findLast, findRepeated, missingOutputs, renderSent, retry, start } from './start.ts'

const ID_LENGTH = 24

/**
 * Sends a message that replaces the one that the turn `replaces` answers, and everything after it. Without
 * `attachments`, the message keeps its attachments.
 * @throws ServiceError
 */
export async function edit(
  context: Context,
  { replaces, ...input }: SendInput & { readonly replaces: string },
): Promise<SendResult> {
  const { text, attachments, client_id: clientId } = input
  return replace(context, {
    ...{ how: 'edited', turn: replaces, clientId, page: input },
    content: JSON.stringify(['edited', replaces, text, attachments ?? null]),
    async toItem(question) {
      const agent = await getOwnAgent(context.deps, context.caller)
      const given = { ...input, conversation: question.conversation_id }
      const uploads = await checkAttachments(context, agent, given)
      await context.deps.visitorUploads.keep([...uploads.keys()])
      const own = attachments === undefined ? copyWithText(context, question, input) : undefined
      const item = own ?? toMessageItem(context, input, uploads)
      const bytes = attachmentBytesOf(agent.definition.attachments)
      return { item, extraBytes: own === undefined ? extraBytesOf(agent, input) : bytes }
    },
  })
}

/** Requests another answer to the visitor's last message. @throws ServiceError */
export async function regenerate(context: Context, input: RegenerateInput): Promise<SendResult> {
  const { turn, client_id: clientId } = input
  return replace(context, {
    ...{ how: 'regenerated', turn, clientId, page: input },
    content: JSON.stringify(['regenerated', turn]),
    async toItem(question) {
      const { definition } = await getOwnAgent(context.deps, context.caller)
      const item = copyItem(context, JSON.parse(question.body), clientId)
      return { item, extraBytes: attachmentBytesOf(definition.attachments) }
    },
  })
}

/** Removes a message and its answer; the owner's log keeps both. @throws ServiceError */
export async function removeMessage(context: Context, turnId: string): Promise<void> {
  const turn = await findOwnTurn(context, turnId)
  await removeExchange(context.deps, turn).catch((error) => {
    throw withoutAssignee(error)
  })
}

interface Request {
  readonly how: Exclude<Replacing, 'removed'>
  readonly turn: string
  readonly clientId: string
  /** Identifies the request, so that a repeated one must be the same. */
  readonly content: string
  readonly page: PageFields
  /** Returns the message of the new turn, and the bytes by which it may exceed the usual limits. */
  readonly toItem: (question: ItemRow) => Promise<{ readonly item: NewItem; readonly extraBytes: number }>
}

async function replace(context: Context, request: Request): Promise<SendResult> {
  const { conversation_id: conversationId } = await findOwnTurn(context, request.turn)
  const { clientId, content } = request
  const repeated = await findRepeated(context, { clientId, conversationId, content })
  if (repeated.turn !== undefined) return renderSent(context, repeated.turn)
  try {
    const turn = await retry(() => startOnce(context, request, repeated.idempotency))
    return await renderSent(context, turn)
  } catch (error) {
    throw withoutAssignee(error)
  }
}

async function startOnce(
  context: Context,
  { how, turn: turnId, page, toItem }: Request,
  idempotency: Parameters<typeof start>[1]['idempotency'],
): Promise<TurnRow> {
  const { deps } = context
  const target = await findOwnTurn(context, turnId)
  // Reads the revision before the turns, so that the transaction detects changes in between.
  const { read, conversation } = await findOwnConversation(context, target.conversation_id)
  if (conversation.mode !== 'model') throw wrongMode(conversation)
  // Rejects the change while a turn runs.
  await findLast(context, conversation.id)
  const { replacement, turns, question, before } = await findReplacedTurns(read, target, how)
  const asked = await deps.conversations.reader.listTurnItems(question)
  const { item, extraBytes } = await toItem(asked.find(isQuestion) as ItemRow)
  const earlier =
    before === undefined
      ? undefined
      : await deps.conversations.reader.findTurn(context.caller.tenantId, 'id', before)
  const outputs = await missingOutputs(context, earlier, new Set())
  return start(context, {
    ...{ conversation, page, kind: 'model', idempotency, extraBytes },
    items: [toReplacementItem({ how, turns }, deps.random), ...outputs, item],
    replaced: { replacement, turns },
  })
}

function isQuestion({ author, type }: ItemRow): boolean {
  return author === 'visitor' && type === 'message'
}

/** Returns a message with another text and the attachments of `question`; undefined if it has none. */
function copyWithText(
  context: Context,
  question: ItemRow,
  { text, client_id: clientId }: Pick<SendInput, 'text' | 'client_id'>,
): NewItem | undefined {
  const body = JSON.parse(question.body) as { readonly content?: unknown }
  const attached = Array.isArray(body.content) ? body.content.filter(isAttachment) : []
  if (attached.length === 0) return undefined
  const { input } = toChatItems([{ role: 'user', content: text }], context.deps.random)
  const [item] = input as readonly { readonly body: { readonly content?: readonly object[] } }[]
  const written = text === '' ? [] : (item?.body.content ?? [])
  return copyItem(context, { ...body, content: [...written, ...attached] }, clientId)
}

function copyItem({ deps }: Context, body: object, clientId: string): NewItem {
  const id = newId('msg_', ID_LENGTH, deps.random)
  return {
    ...{ id, type: 'message', role: 'user', author: 'visitor', status: 'completed', clientId },
    body: { ...body, id },
    isForVisitor: true,
  }
}
