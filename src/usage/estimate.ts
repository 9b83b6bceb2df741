/** Guesses tokens where a backend has not counted them: before a call, and after one that was cut off. */

/** Of ordinary text; languages and models differ. */
const CHARACTERS_PER_TOKEN = 4
/** What an answer may take when its caller sets no bound. */
const UNBOUNDED_ANSWER_TOKENS = 4_096

/** What of a request decides how many tokens it takes. */
export interface Promptlike {
  readonly messages: readonly object[]
  readonly tools?: readonly object[] | null | undefined
  readonly max_tokens?: number | null | undefined
  readonly max_completion_tokens?: number | null | undefined
  readonly n?: number | null | undefined
}

export function estimateTokens(characters: number): number {
  return Math.ceil(characters / CHARACTERS_PER_TOKEN)
}

/** Tokens of the conversation and of the tools offered with it; images and sound count as nothing. */
export function estimatePromptTokens({ messages, tools }: Promptlike): number {
  const characters = messages.reduce((sum, message) => sum + charactersOf(message), 0)
  return estimateTokens(characters + (tools?.length ? JSON.stringify(tools).length : 0))
}

/** Tokens a call can take at most, as far as that is known before it. */
export function estimateCallTokens(request: Promptlike): number {
  const { max_completion_tokens, max_tokens, n } = request
  const perAnswer = max_completion_tokens ?? max_tokens ?? UNBOUNDED_ANSWER_TOKENS
  return estimatePromptTokens(request) + perAnswer * (n ?? 1)
}

function charactersOf(message: { content?: unknown; tool_calls?: unknown }): number {
  const { content, tool_calls: calls } = message
  const called = Array.isArray(calls) ? JSON.stringify(calls).length : 0
  if (typeof content === 'string') return content.length + called
  if (!Array.isArray(content)) return called
  return content.reduce((sum, part) => sum + (typeof part?.text === 'string' ? part.text.length : 0), called)
}
