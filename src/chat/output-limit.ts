/** Limits the tokens of an answer, and counts the text that a model has produced. */
import { isJsonObject, type JsonObject, listObjects } from '../lib/formats/json.ts'
import type { PriceInForce } from '../prices/rates.ts'
import type { ChatRequest } from '../providers/chat-api.ts'
import type { ChatBackend } from '../providers/provider.ts'

/** Caps the token limits that a request sets; a request without one gets `max_tokens`. */
export function capOutput(request: ChatRequest, most: number | null): ChatRequest {
  return most === null ? request : limitOutput(request, most, 'max_tokens')
}

/**
 * Caps the token limits of a request to a provider. Adds a limit to a request without one, in the field that
 * the price names or that the provider accepts. If `most` is undefined, returns the request unchanged.
 */
export function limitForProvider(
  request: ChatRequest,
  most: number | undefined,
  { address }: Pick<ChatBackend, 'address'>,
  price: PriceInForce | undefined,
): ChatRequest {
  if (most === undefined) return request
  const byHost = openaiHosts.test(address?.host ?? '') ? 'max_completion_tokens' : 'max_tokens'
  return limitOutput(request, most, price?.entry.output_field ?? byHost)
}

/** OpenAI's reasoning models reject `max_tokens`; other servers may ignore `max_completion_tokens`. */
const openaiHosts =
  /(^|\.)(openai\.com|openai\.azure\.com|cognitiveservices\.azure\.com|services\.ai\.azure\.com)$/i

function limitOutput(
  request: ChatRequest,
  most: number,
  byDefault: 'max_tokens' | 'max_completion_tokens',
): ChatRequest {
  const { max_tokens: asked, max_completion_tokens: newer } = request
  if (asked == null && newer == null) return { ...request, [byDefault]: most }
  return {
    ...request,
    ...(asked == null ? {} : { max_tokens: Math.min(asked, most) }),
    ...(newer == null ? {} : { max_completion_tokens: Math.min(newer, most) }),
  }
}

/** Strings under these names are not produced by the model. */
const protocolFields: ReadonlySet<string> = new Set(['role', 'id', 'type', 'format', 'tool_call_id'])

/** Adds up the bytes that a model has produced. */
export class AnswerCounter {
  /** Bytes of text, reasoning and tool calls. */
  textBytes = 0
  /** Bytes of encoded audio and images. */
  mediaBytes = 0

  /** Adds all choices of a completion or chunk. */
  add(answer: unknown, kind: 'message' | 'delta'): void {
    if (!isJsonObject(answer) || !Array.isArray(answer.choices)) return
    for (const choice of listObjects(answer.choices)) {
      const message = choice[kind]
      if (isJsonObject(message)) this.addFields(message, 'text')
    }
  }

  private addFields(fields: JsonObject, within: Content): void {
    for (const [name, value] of Object.entries(fields)) {
      if (protocolFields.has(name)) continue
      const content = name === 'audio' ? 'audio' : name === 'images' ? 'images' : within
      this.addValue(value, content, content === 'images' || (content === 'audio' && name === 'data'))
    }
  }

  private addValue(value: unknown, within: Content, isMedia: boolean): void {
    if (typeof value === 'string') this[isMedia ? 'mediaBytes' : 'textBytes'] += Buffer.byteLength(value)
    else if (Array.isArray(value)) for (const item of value) this.addValue(item, within, isMedia)
    else if (isJsonObject(value)) this.addFields(value, within)
  }
}

/** Audio also contains a transcript, which is text. */
type Content = 'text' | 'audio' | 'images'
