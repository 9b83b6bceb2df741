/** Checks the attachments of visitors' messages, and returns stored ones. */
import type { z } from 'zod'
import type { Agent } from '../../agents/cache.ts'
import { attachmentBytesOf } from '../../agents/definition-parts.ts'
import { assertParts } from '../../chat/prepare-turn.ts'
import type { NewItem } from '../../conversations/item-store.ts'
import { toChatItems } from '../../conversations/items.ts'
import { findVisibleItem, renderUpload } from '../../conversations/visible.ts'
import { ServiceError } from '../../lib/errors.ts'
import { isJsonObject } from '../../lib/formats/json.ts'
import { chooseRoutes } from '../../models/policy.ts'
import type { VisitorUpload } from '../dependencies.ts'
import type { AttachmentQuery, AttachmentResult, SendInput } from '../schema.ts'
import { type Context, findOwnConversation } from '../visitors.ts'
import { findUploads } from './uploads.ts'

export type Uploads = ReadonlyMap<string, VisitorUpload>

/**
 * Checks the attachments of a message, and returns its uploads. @throws ServiceError `invalid_value` or
 * `too_large` for an attachment that the agent or its model does not accept
 */
export async function checkAttachments(
  context: Context,
  agent: Agent,
  input: Pick<SendInput, 'attachments' | 'conversation' | 'model'>,
): Promise<Uploads> {
  const { attachments = [], model } = input
  if (attachments.length === 0) return new Map()
  assertInline(context, agent, attachments, model)
  return findUploads(context, agent, input)
}

function assertInline(
  { deps: { models } }: Context,
  { definition, policy }: Agent,
  attachments: NonNullable<SendInput['attachments']>,
  model: string | undefined,
): void {
  const maxCount = definition.attachments?.maxCount ?? 0
  if (definition.attachments !== undefined && attachments.length > maxCount)
    throw new ServiceError(
      'invalid_value',
      `attachments[${maxCount}]: a message may have at most ${maxCount} attachments`,
      {
        param: `attachments[${maxCount}]`,
      },
    )
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
  uploads: Uploads,
): NewItem {
  const attached = attachments.map((part) =>
    part.type === 'upload' ? toText(uploads, part.upload.id) : part,
  )
  const parts = [...(text === '' ? [] : [{ type: 'text' as const, text }]), ...attached]
  const content = attachments.length === 0 ? text : parts
  const { input } = toChatItems([{ role: 'user', content }], deps.random)
  return { ...(input[0] as NewItem), clientId, uploadIds: [...uploads.keys()] }
}

function toText(uploads: Uploads, id: string) {
  const { filename: name, mediaType, sizeBytes } = uploads.get(id) as VisitorUpload
  return { type: 'text' as const, text: renderUpload({ artifactId: id, name, mediaType, sizeBytes }) }
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
