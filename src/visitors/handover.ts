/** Lets visitors ask for a person, and stores their messages while the model does not answer. */
import { getOwnAgent } from '../agents/cache.ts'
import { withoutAssignee } from '../conversations/conversations.ts'
import type { ItemRow } from '../conversations/item-store.ts'
import { type ConversationRow, MAX_MESSAGE } from '../conversations/visible.ts'
import { ServiceError } from '../lib/errors.ts'
import { checkAttachments, toMessageItem } from './messages.ts'
import type { SendInput, VisitorConversation } from './schema.ts'
import {
  type Context,
  findOwnConversation,
  renderConversation,
  requireCallVisitor,
  requireStoring,
} from './visitors.ts'

interface Request {
  readonly conversation: string
  readonly reason?: string | undefined
}

/** @throws ServiceError `not_allowed`, `wrong_mode` */
export async function requestPerson(
  context: Context,
  request: Request,
): Promise<{ conversation: VisitorConversation }> {
  return { conversation: renderConversation(await askForPerson(context, request)) }
}

/** @throws ServiceError `not_allowed`, `wrong_mode` */
export async function askForPerson(
  context: Context,
  { conversation: conversationId, reason }: Request,
): Promise<ConversationRow> {
  await findOwnConversation(context, conversationId)
  const { definition } = await getOwnAgent(context.deps, context.caller)
  if (!definition.conversations?.handover?.button)
    throw new ServiceError('insufficient_permissions', "This agent's visitors may not ask for a person.", {
      code: 'not_allowed',
    })
  const { tenantId } = context.caller
  return context.deps.conversations.handover
    .request({ tenantId, conversationId }, reason)
    .catch(rejectVisitor)
}

/** A visitor's message that the model does not answer. */
export interface SentMessage {
  readonly conversation: ConversationRow
  readonly item: ItemRow
}

/** Stores a visitor's message. @throws ServiceError `wrong_mode` if the model answers */
export async function sendToPerson(
  context: Context,
  input: Pick<SendInput, 'client_id' | 'text' | 'attachments'> & { readonly conversation: string },
): Promise<SentMessage> {
  const { conversation: conversationId, text } = input
  if (text.length > MAX_MESSAGE)
    throw new ServiceError(
      'invalid_value',
      `text: must be at most ${MAX_MESSAGE} characters in a message to or from a person`,
      {
        param: 'text',
      },
    )
  await findOwnConversation(context, conversationId)
  const { agent } = await requireStoring(context)
  const uploads = await checkAttachments(context, agent, input)
  const visitor = requireCallVisitor(context)
  const { tenantId } = context.caller
  const item = toMessageItem(context, input, uploads)
  await context.deps.visitorUploads.keep([...uploads.keys()])
  return context.deps.conversations.handover
    .ask({ tenantId, conversationId }, visitor, { item, text })
    .catch(rejectVisitor)
}

function rejectVisitor(error: unknown): never {
  throw withoutAssignee(error)
}
