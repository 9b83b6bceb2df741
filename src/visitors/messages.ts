/** Builds visitors' messages and the requests with them to the model, and checks and returns attachments. */
import type { z } from 'zod'
import type { Agent } from '../agents/cache.ts'
import { attachmentBytesOf } from '../agents/definition-parts.ts'
import { assertParts } from '../chat/prepare-turn.ts'
import type { NewItem } from '../conversations/item-store.ts'
import { toChatItems } from '../conversations/items.ts'
import type { History, StoredItem } from '../conversations/reader.ts'
import { findVisibleItem, renderUpload } from '../conversations/visible.ts'
import { ServiceError } from '../lib/errors.ts'
import { isJsonObject } from '../lib/formats/json.ts'
import { chooseRoutes, findRefusal } from '../models/policy.ts'
import type { ChatMessage, ChatRequest, ChatTool } from '../providers/chat-api.ts'
import { toChatRequest } from '../responses/request.ts'
import type { InputItem } from '../responses/schema.ts'
import { findUploads } from './attachments/uploads.ts'
import type { VisitorUpload } from './dependencies.ts'
import type { AttachmentQuery, AttachmentResult, SendInput } from './schema.ts'
import { type Context, findOwnConversation } from './visitors.ts'

type Uploads = ReadonlyMap<string, VisitorUpload>

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
  const { maxCount } = definition.attachments ?? {}
  if (maxCount !== undefined && attachments.length > maxCount) {
    const param = `attachments[${maxCount}]`
    const problem = `a message may have at most ${maxCount} attachments`
    throw new ServiceError('invalid_value', `${param}: ${problem}`, { param })
  }
  const wishes = { policy, ownModel: definition.model }
  // If no model may answer, the turn fails later, so that the owner sees the message.
  if (findRefusal(models, wishes, model) !== undefined) return
  const [route] = chooseRoutes(models, wishes, model)
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

/** The page's fields, which apply to one turn only. */
export interface PageFields {
  readonly context?: string | undefined
  readonly tools?: readonly ChatTool[] | undefined
  readonly model?: string | undefined
}

/** Returns the stored items that the turn sends to the model, without the turns `replaced`. */
export async function readHistory(
  { deps }: Context,
  conversationId: string | undefined,
  limits: { readonly turns: number; readonly tokens: number } | undefined,
  replaced: readonly string[] | undefined,
): Promise<History> {
  if (conversationId === undefined || limits === undefined) return { items: [], leftOut: 0 }
  return deps.conversations.reader.readVisitorHistory(conversationId, limits, replaced)
}

/** Builds the request for the model from the history, the page's fields and the new items. */
export function toRequest(
  page: PageFields,
  history: readonly StoredItem[],
  items: readonly NewItem[],
): ChatRequest {
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
