/** Reads the text, calls and usage of a chat response. */
import { isJsonObject, type JsonObject, listObjects, toCount } from '../lib/formats/json.ts'
import type { ChatCompletion, Usage } from '../providers/chat-api.ts'
import type { CallAddition } from './output.ts'
import type { Logprobs, Part, ResponseUsage } from './response-schema.ts'

/** A chat chunk, or a whole completion converted to a single chunk. */
export interface ChatPiece {
  readonly model: string
  readonly service_tier?: unknown
  readonly choices: readonly ChatChoice[]
  readonly usage?: Usage | null | undefined
}

export interface ChatChoice {
  readonly delta: JsonObject
  readonly logprobs?: unknown
  readonly finish_reason?: string | null | undefined
}

export function toPiece({ choices, ...completion }: ChatCompletion): ChatPiece {
  return {
    ...completion,
    choices: choices.map(({ message, ...choice }) => {
      const calls = message.tool_calls?.map((call, index) => ({ ...call, index }))
      return { ...choice, delta: { ...message, tool_calls: calls } }
    }),
  }
}

/** Returns reasoning, text and refusal, in this order. Providers use one of two field names for reasoning. */
export function partsOf({ delta, logprobs }: ChatChoice): Part[] {
  const { content, refusal } = delta
  const thought = delta.reasoning_content || delta.reasoning
  const parts: Part[] = []
  if (isText(thought)) parts.push({ type: 'reasoning_text', text: thought })
  if (isText(content))
    parts.push({ type: 'output_text', text: content, annotations: [], logprobs: toLogprobs(logprobs) })
  if (isText(refusal)) parts.push({ type: 'refusal', refusal })
  return parts
}

export function callsOf({ delta }: ChatChoice): CallAddition[] {
  if (!Array.isArray(delta.tool_calls)) return []
  return delta.tool_calls.map((call) => ({
    index: call.index,
    id: call.id,
    name: call.function?.name,
    arguments: call.function?.arguments ?? '',
  }))
}

export function toResponseUsage(usage: Usage): ResponseUsage {
  const count = (details: unknown, field: string) =>
    (isJsonObject(details) ? toCount(details[field], 0) : undefined) ?? 0
  const { prompt_tokens_details: input, completion_tokens_details: output } = usage
  return {
    input_tokens: usage.prompt_tokens,
    input_tokens_details: {
      cached_tokens: count(input, 'cached_tokens'),
      cache_write_tokens: count(input, 'cache_write_tokens'),
    },
    output_tokens: usage.completion_tokens,
    output_tokens_details: { reasoning_tokens: count(output, 'reasoning_tokens') },
    total_tokens: usage.total_tokens,
  }
}

/** Adds an empty byte list if the provider sends none, because the Responses API requires one. */
function toLogprobs(sent: unknown): Logprobs {
  const toToken = ({ token, logprob, bytes }: JsonObject) => ({
    token: String(token),
    logprob: Number(logprob),
    bytes: Array.isArray(bytes) ? bytes : [],
  })
  return listObjects(isJsonObject(sent) ? sent.content : undefined).map((entry) => ({
    ...toToken(entry),
    top_logprobs: listObjects(entry.top_logprobs).map(toToken),
  }))
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}
