/** Estimates tokens before calls, and after interrupted calls for which the provider reported no usage. */

const CHARACTERS_PER_TOKEN = 4
/** Estimate for a request without a token limit. */
const UNBOUNDED_ANSWER_TOKENS = 4_096

export type Promptlike = Conversation | Inputs

interface Conversation {
  readonly messages: readonly object[]
  readonly tools?: readonly object[] | null | undefined
  readonly max_tokens?: number | null | undefined
  readonly max_completion_tokens?: number | null | undefined
  readonly n?: number | null | undefined
}

/** An embeddings request's inputs; numbers are token ids. */
interface Inputs {
  readonly input: string | readonly (string | number | readonly number[])[]
}

export function estimateTokens(characters: number): number {
  return Math.ceil(characters / CHARACTERS_PER_TOKEN)
}

/** Estimates the tokens in the inputs, or in the conversation and its tools; images and audio count as 0. */
export function estimatePromptTokens(prompt: Promptlike): number {
  if (!('messages' in prompt)) return estimateInputTokens(prompt)
  const { messages, tools } = prompt
  const characters = messages.reduce((sum, message) => sum + charactersOf(message), 0)
  return estimateTokens(characters + (tools?.length ? JSON.stringify(tools).length : 0))
}

/** Estimates the maximum number of tokens that a call can use. */
export function estimateCallTokens(request: Promptlike): number {
  if (!('messages' in request)) return estimateInputTokens(request)
  const { max_completion_tokens, max_tokens, n } = request
  const perAnswer = max_completion_tokens ?? max_tokens ?? UNBOUNDED_ANSWER_TOKENS
  return estimatePromptTokens(request) + perAnswer * (n ?? 1)
}

function estimateInputTokens({ input }: Inputs): number {
  if (typeof input === 'string') return estimateTokens(input.length)
  return input.reduce<number>((sum, item) => {
    if (typeof item === 'number') return sum + 1
    return sum + (typeof item === 'string' ? estimateTokens(item.length) : item.length)
  }, 0)
}

function charactersOf(message: { content?: unknown; tool_calls?: unknown }): number {
  const { content, tool_calls: calls } = message
  const called = Array.isArray(calls) ? JSON.stringify(calls).length : 0
  if (typeof content === 'string') return content.length + called
  if (!Array.isArray(content)) return called
  return content.reduce((sum, part) => sum + (typeof part?.text === 'string' ? part.text.length : 0), called)
}
