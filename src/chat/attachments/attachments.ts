/** Checks the attachments in a request against the agent's rules and the model's capabilities (ADR 0067). */
import type { AgentAttachments, AttachmentType } from '../../agents/definition-parts.ts'
import { ServiceError } from '../../lib/errors.ts'
import { isJsonObject } from '../../lib/formats/json.ts'
import type { ChatMessage } from '../../providers/chat-api.ts'
import { decodedBytes, isImage, isPdf, isText, parseDataUrl } from './content.ts'

/** Starts a text part that contains an attached file; the widget must send the same text. */
const TEXT_MARK = '[Attached file: '
const OMITTED = '[The user attached a file here that cannot be shown to you]'

export interface AttachmentRules {
  /** Undefined if the agent accepts no attachments. */
  readonly rules: AgentAttachments | undefined
  /** The model's name in errors. */
  readonly model: string
  readonly modelTakes: (type: AttachmentType) => boolean
}

type Part = { readonly type: string; readonly [field: string]: unknown }

/**
 * In the messages after the last answer, rejects attachments that break the rules. In earlier messages,
 * replaces such attachments with a note, because the rules or the model can change during a conversation.
 * @throws ServiceError `invalid_value` or `too_large`, with the field
 */
export function checkMessages(messages: readonly ChatMessage[], given: AttachmentRules): ChatMessage[] {
  const firstNew = messages.findLastIndex(({ role }) => role === 'assistant') + 1
  return messages.map((message, index) => {
    const { content } = message
    if (!Array.isArray(content)) return message
    const field = `messages[${index}].content`
    if (index >= firstNew) {
      assertParts(content, field, given)
      return message
    }
    return { ...message, content: replaceBroken(content, given) } as ChatMessage
  })
}

/** @throws ServiceError `invalid_value` or `too_large`; `field` is the list's name in the request */
export function assertParts(parts: readonly Part[], field: string, given: AttachmentRules): void {
  let count = 0
  for (const [index, part] of parts.entries()) {
    const param = `${field}[${index}]`
    if (typeOf(part) === undefined) continue
    count += 1
    const fault = findFault(part, given) ?? findExcess(count, given)
    if (fault === undefined) continue
    const { problem, reason = 'invalid_value', code } = fault
    throw new ServiceError(reason, `${param}: ${problem}`, { param, ...(code !== undefined && { code }) })
  }
}

/** Returns the type of an attachment; undefined for other parts. */
export function typeOf(part: Part): AttachmentType | undefined {
  if (part.type === 'image_url') return 'image'
  if (part.type === 'file') return 'pdf'
  return part.type === 'text' && String(part.text).startsWith(TEXT_MARK) ? 'text' : undefined
}

interface Fault {
  readonly problem: string
  readonly reason?: 'too_large'
  readonly code?: string
}

function findFault(part: Part, { rules, model, modelTakes }: AttachmentRules): Fault | undefined {
  const type = typeOf(part) as AttachmentType
  if (rules === undefined || !rules.types.includes(type))
    return { problem: `this agent does not accept ${names[type]}`, code: 'attachment_not_allowed' }
  if (!modelTakes(type))
    return {
      problem: `the model '${model}' does not accept ${names[type]}`,
      code: 'attachment_not_supported',
    }
  const size = type === 'text' ? Buffer.byteLength(String(part.text)) : decodedBytes(dataOf(part) ?? '')
  if (size > rules.maxBytes)
    return { problem: `must be at most ${rules.maxBytes} bytes (got ${size})`, reason: 'too_large' }
  const problem = findWrongContent(part, type)
  return problem === undefined ? undefined : { problem }
}

function findWrongContent(part: Part, type: AttachmentType): string | undefined {
  if (type === 'text')
    return isText(String(part.text))
      ? undefined
      : 'must be text whose only control characters are tabs and line breaks'
  const data = parseDataUrl(dataOf(part) ?? '')
  if (type === 'image')
    return data !== undefined && isImage(data)
      ? undefined
      : 'must be a base64 data URL of a PNG, JPEG, WebP or GIF image whose content matches its media type'
  return data !== undefined && isPdf(data)
    ? undefined
    : 'must contain a PDF in `file.file_data`, as a base64 data URL'
}

function findExcess(count: number, { rules }: AttachmentRules): Fault | undefined {
  if (rules === undefined || count <= rules.maxCount) return undefined
  return { problem: `a message may have at most ${rules.maxCount} attachments` }
}

const names: Readonly<Record<AttachmentType, string>> = {
  image: 'images',
  pdf: 'PDF files',
  text: 'text files',
}

function dataOf(part: Part): string | undefined {
  const holder = part.type === 'image_url' ? part.image_url : part.file
  const data = isJsonObject(holder) && (part.type === 'image_url' ? holder.url : holder.file_data)
  return typeof data === 'string' ? data : undefined
}

function replaceBroken(parts: readonly Part[], given: AttachmentRules): readonly Part[] {
  let count = 0
  return parts.map((part) => {
    if (typeOf(part) === undefined) return part
    count += 1
    const isBroken = findFault(part, given) !== undefined || findExcess(count, given) !== undefined
    return isBroken ? { type: 'text', text: OMITTED } : part
  })
}
