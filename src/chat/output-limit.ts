/** Limits the tokens of an answer, and counts the text that a model has produced. */
import { isJsonObject, listObjects } from '../lib/formats/json.ts'
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

const textFields = ['content', 'refusal', 'reasoning', 'reasoning_content'] as const

/** Counts the bytes of text, reasoning and tool calls in the choices of a completion or chunk. */
export function countText(answer: unknown, kind: 'message' | 'delta'): number {
  if (!isJsonObject(answer) || !Array.isArray(answer.choices)) return 0
  return listObjects(answer.choices).reduce((sum, choice) => sum + countMessage(choice[kind]), 0)
}

function countMessage(message: unknown): number {
  if (!isJsonObject(message)) return 0
  const calls = Array.isArray(message.tool_calls) ? listObjects(message.tool_calls) : []
  const texts = [
    ...textFields.map((name) => message[name]),
    ...calls.flatMap(({ function: called }) => (isJsonObject(called) ? [called.name, called.arguments] : [])),
  ]
  return texts.reduce<number>(
    (sum, text) => sum + (typeof text === 'string' ? Buffer.byteLength(text) : 0),
    0,
  )
}
