/** Lets visitors upload files, and checks the uploads that their messages contain (ADR 0079). */
import type { z } from 'zod'
import type { Agent } from '../../agents/cache.ts'
import {
  type AgentUploads,
  acceptsUpload,
  extensionOf,
  listUploadExtensions,
} from '../../agents/definition-parts.ts'
import { ServiceError } from '../../lib/errors.ts'
import type { VisitorUpload } from '../dependencies.ts'
import type { CreateUploadInput, CreateUploadResult, SendInput } from '../schema.ts'
import { type Context, requireStoring, requireVisitor } from '../visitors.ts'

/**
 * Reserves an upload, and returns a token for it. @throws ServiceError `invalid_value`, `too_large`,
 * `rate_limit_exceeded`, `storage_full`, `visitor_required`, `conversations_off`
 */
export async function createUpload(
  context: Context,
  { filename, bytes }: z.output<typeof CreateUploadInput>,
): Promise<z.output<typeof CreateUploadResult>> {
  const owner = requireVisitor(context)
  const { agent } = await requireStoring(context)
  const rules = requireUploads(agent, 'filename')
  const extensions = listUploadExtensions(rules)
  if (!extensions.includes(extensionOf(filename)))
    throw new ServiceError('invalid_value', `filename: must end with one of ${extensions.join(', ')}`, {
      param: 'filename',
      code: NOT_ALLOWED,
    })
  if (bytes > rules.maxBytes) throw tooLarge('bytes', bytes, rules)
  const file = { filename, sizeBytes: bytes }
  const { id, token, expiresAt } = await context.deps.visitorUploads.reserve(owner, file, rules.perHour)
  return { id, token, expires_at: expiresAt, upload_url: '/upload' }
}

const NOT_ALLOWED = 'attachment_not_allowed'

function requireUploads({ definition }: Agent, param: string): AgentUploads {
  const rules = definition.attachments?.uploads
  if (rules !== undefined) return rules
  throw new ServiceError('invalid_value', `${param}: this agent does not accept uploads`, {
    param,
    code: NOT_ALLOWED,
  })
}

function tooLarge(param: string, bytes: number, { maxBytes }: AgentUploads): ServiceError {
  return new ServiceError('too_large', `${param}: must be at most ${maxBytes} bytes (got ${bytes})`, {
    param,
  })
}

type Attachments = Pick<SendInput, 'attachments'>

/**
 * Returns the uploads in a message by id. The rules may have changed since the upload was created, and its
 * content is known only now.
 * @throws ServiceError `invalid_value` or `too_large`
 */
export async function findUploads(
  context: Context,
  agent: Agent,
  { attachments = [], conversation }: Attachments & Pick<SendInput, 'conversation'>,
): Promise<ReadonlyMap<string, VisitorUpload>> {
  const found = new Map<string, VisitorUpload>()
  for (const [index, part] of attachments.entries()) {
    if (part.type !== 'upload') continue
    const param = `attachments[${index}]`
    const rules = requireUploads(agent, param)
    const upload = await context.deps.visitorUploads.find(requireVisitor(context), part.upload.id)
    if (upload === undefined)
      throw new ServiceError('invalid_value', `${param}: must be a complete upload of this visitor`, {
        param,
        code: 'upload_not_found',
      })
    if (!acceptsUpload(rules, upload.filename, upload.mediaType))
      throw new ServiceError(
        'invalid_value',
        `${param}: the content (${upload.mediaType}) does not match the extension, or this agent does not accept it`,
        { param, code: NOT_ALLOWED },
      )
    if (upload.sizeBytes > rules.maxBytes) throw tooLarge(param, upload.sizeBytes, rules)
    if (found.has(upload.id)) throw usedTwice(param)
    await assertUnused(context, upload.id, conversation, param)
    found.set(upload.id, upload)
  }
  return found
}

/** A message that is sent again may contain the uploads of an earlier message of its conversation. */
async function assertUnused(
  { deps }: Context,
  id: string,
  conversation: string | undefined,
  param: string,
): Promise<void> {
  const used = await deps.conversations.data.findUploadConversation(id)
  if (used !== undefined && used !== conversation) throw usedTwice(param)
}

function usedTwice(param: string): ServiceError {
  return new ServiceError('invalid_value', `${param}: the upload is already in another message`, {
    param,
    code: 'upload_used',
  })
}
