/** Reads what a chat answers: the pieces of text, calls and numbers that go into a response. */
import type { ChatCompletion, Usage } from '../providers/chat-api.ts'
import type { Logprobs, Part, ResponseUsage } from './answer-schema.ts'
import type { CallAddition } from './output.ts'

type Fields = Readonly<Record<string, unknown>>

/** A chunk of a chat, or a whole completion as the one chunk it could have come in. */
export interface ChatPiece {
  readonly model: string
  readonly service_tier?: unknown
  readonly choices: readonly ChatChoice[]
  readonly usage?: Usage | null | undefined
}

export interface ChatChoice {
  readonly delta: Fields
  readonly logprobs?: unknown
  readonly finish_reason?: string | null | undefined
}

/** A completion, as a chat's stream would have brought it at once. */
export function toPiece({ choices, ...completion }: ChatCompletion): ChatPiece {
  return {
    ...completion,
    choices: choices.map(({ message, ...choice }) => {
      const calls = message.tool_calls?.map((call, index) => ({ ...call, index }))
      return { ...choice, delta: { ...message, tool_calls: calls } }
    }),
  }
}

/** What is thought, said and refused, in this order; backends have two names for thoughts. */
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

/** The calls a piece begins or goes on with. */
export function callsOf({ delta }: ChatChoice): CallAddition[] {
  if (!Array.isArray(delta.tool_calls)) return []
  return delta.tool_calls.map((call) => ({
    index: call.index,
    id: call.id,
    name: call.function?.name,
    arguments: call.function?.arguments ?? '',
  }))
}

/** Tokens by the names of the Responses API; what a backend does not tell counts as none. */
export function toResponseUsage(usage: Usage): ResponseUsage {
  const count = (details: unknown, field: string) => {
    const value = isFields(details) ? details[field] : undefined
    return Number.isSafeInteger(value) ? (value as number) : 0
  }
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

/** Tokens without their bytes get none: the Responses API always has a list there. */
function toLogprobs(sent: unknown): Logprobs {
  const toToken = ({ token, logprob, bytes }: Fields) => ({
    token: String(token),
    logprob: Number(logprob),
    bytes: Array.isArray(bytes) ? bytes : [],
  })
  return listFields(isFields(sent) ? sent.content : undefined).map((entry) => ({
    ...toToken(entry),
    top_logprobs: listFields(entry.top_logprobs).map(toToken),
  }))
}

function listFields(value: unknown): Fields[] {
  return Array.isArray(value) ? value.filter(isFields) : []
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}
