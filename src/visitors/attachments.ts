/** Checks the attachments of visitors' messages, and returns stored ones. */
import type { z } from 'zod'
import type { Agent } from '../agents/cache.ts'
import { attachmentBytesOf } from '../agents/definition-parts.ts'
import { assertParts } from '../chat/prepare-turn.ts'
import type { NewItem } from '../conversations/item-store.ts'
import { toChatItems } from '../conversations/items.ts'
import { findVisibleItem } from '../conversations/visible.ts'
import { ServiceError } from '../lib/errors.ts'
import { isJsonObject } from '../lib/formats/json.ts'
import { chooseRoutes } from '../models/policy.ts'
import type { AttachmentQuery, AttachmentResult, SendInput } from './schema.ts'
import { type Context, findOwnConversation } from './visitors.ts'

/**
 * @throws ServiceError `invalid_value` or `too_large` for an attachment that the agent or its model does not
 * accept
 */
export function assertAttachments(
  { deps: { models } }: Context,
  { definition, policy }: Agent,
  { attachments = [], model }: Pick<SendInput, 'attachments' | 'model'>,
): void {
  if (attachments.length === 0) return
  const [route] = chooseRoutes(models, { policy, ownModel: definition.model }, model)
  assertParts(attachments, 'attachments', {
    rules: definition.attachments,
    model: route.model,
    modelTakes: (type) => models.takes(route, type),
  })
}

export function toMessageItem(
  { deps }: Context,
  { text, attachments = [], client_id: clientId }: Pick<SendInput, 'text' | 'attachments' | 'client_id'>,
): NewItem {
  const parts = [...(text === '' ? [] : [{ type: 'text' as const, text }]), ...attachments]
  const content = attachments.length === 0 ? text : parts
  const { input } = toChatItems([{ role: 'user', content }], deps.random)
  return { ...(input[0] as NewItem), clientId }
}

/** Returns the bytes by which an item may exceed the usual limit. */
export function extraBytesOf(
  { definition }: Agent,
  { attachments = [] }: Pick<SendInput, 'attachments'>,
): number {
  return attachments.length === 0 ? 0 : attachmentBytesOf(definition.attachments)
}

/** Returns one attachment of the visitor's own conversation. @throws ServiceError `not_found` */
export async function readAttachment(
  context: Context,
  { conversation, item: itemId, part: position }: z.output<typeof AttachmentQuery>,
): Promise<z.output<typeof AttachmentResult>> {
  const { read } = await findOwnConversation(context, conversation)
  const row = await findVisibleItem(read, conversation, itemId)
  const [item] = row === undefined ? [] : await context.deps.conversations.data.restore([row])
  const content: unknown = item === undefined ? undefined : JSON.parse(item.body).content
  const part: unknown = Array.isArray(content) ? content[position] : undefined
  const data = isJsonObject(part) && (part.image_url ?? part.file_data ?? part.text)
  if (typeof data === 'string') return { data }
  throw new ServiceError('not_found', 'The attachment does not exist.', { param: 'part' })
}
