/** Computes upper bounds on the number of tokens that a provider can count for a request and its answer. */

/** Overhead tokens, added once for each message (role and separators) and once for the request. */
const MESSAGE_TOKENS = 16
/** Tokens for the instructions that a provider adds if a request has tools. */
const TOOL_TOKENS = 512
/** Tokens for an image, audio or file. */
const MEDIA_TOKENS = 4_096
/** Maximum number of bytes that one token covers in practice; only runs of spaces can exceed it. */
const BYTES_PER_TOKEN = 32

const mediaFields = ['image_url', 'input_audio', 'file', 'video_url', 'audio'] as const

export type Promptlike = Conversation | Inputs

interface Conversation {
  readonly messages: readonly object[]
  readonly tools?: readonly object[] | null | undefined
  readonly functions?: unknown
  readonly max_tokens?: number | null | undefined
  readonly max_completion_tokens?: number | null | undefined
  readonly n?: number | null | undefined
}

/** An embeddings request's inputs; numbers are token ids. */
interface Inputs {
  readonly input: string | readonly (string | number | readonly number[])[]
}

export interface TokenNeed {
  /** Upper bound of the input tokens. */
  readonly inputTokens: number
  /** Bytes of text in the messages, used to detect providers that report far too few tokens. */
  readonly textBytes: number
  /** The number of output tokens that the client requests for each choice; 0 for embeddings. */
  readonly outputTokens: number
  readonly choices: number
}

/** `defaultOutputTokens` applies to a chat without a token limit. */
export function boundTokens(request: Promptlike, defaultOutputTokens: number): TokenNeed {
  if (!('messages' in request)) return boundInputs(request)
  const { messages, tools, functions, max_tokens, max_completion_tokens, n, ...rest } = request
  const texts = messages.map(withoutMedia)
  const hasTools = (tools?.length ?? 0) > 0 || functions != null
  const inputTokens =
    countBytes(JSON.stringify({ ...rest, tools, functions, messages: texts.map(({ message }) => message) })) +
    MESSAGE_TOKENS * (messages.length + 1) +
    MEDIA_TOKENS * texts.reduce((sum, { media }) => sum + media, 0) +
    (hasTools ? TOOL_TOKENS : 0)
  return {
    inputTokens,
    textBytes: messages.reduce((sum, message) => sum + contentBytes(message), 0),
    outputTokens: max_completion_tokens ?? max_tokens ?? defaultOutputTokens,
    choices: n ?? 1,
  }
}

/**
 * Returns whether a reported token count is plausible. One token rarely covers more than 32 bytes, so a lower
 * count for the text is wrong.
 */
export function areTokensPlausible(tokens: number, textBytes: number): boolean {
  return tokens * BYTES_PER_TOKEN >= textBytes
}

function boundInputs({ input }: Inputs): TokenNeed {
  const items = typeof input === 'string' ? [input] : input
  let inputTokens = MESSAGE_TOKENS
  let textBytes = 0
  for (const item of items) {
    if (typeof item === 'string') {
      inputTokens += countBytes(item) + MESSAGE_TOKENS
      textBytes += Buffer.byteLength(item)
    } else inputTokens += typeof item === 'number' ? 1 : item.length
  }
  return { inputTokens, textBytes, outputTokens: 0, choices: 1 }
}

/**
 * Counts bytes, because a token covers at least one byte. Some tokenizers normalize text to NFKC first, which
 * can make it longer.
 */
function countBytes(text: string): number {
  const bytes = Buffer.byteLength(text)
  return bytes === text.length ? bytes : Math.max(bytes, Buffer.byteLength(text.normalize('NFKC')))
}

function withoutMedia(message: object): { message: object; media: number } {
  const { content, ...fields } = message as Record<string, unknown>
  const outer = dropMedia(fields)
  if (!Array.isArray(content)) return { message: { ...outer.kept, content }, media: outer.media }
  const parts = content.map(dropMedia)
  return {
    message: { ...outer.kept, content: parts.map(({ kept }) => kept) },
    media: parts.reduce((sum, part) => sum + part.media, outer.media),
  }
}

/** Removes the media fields and counts them, because their bytes do not show how many tokens they use. */
function dropMedia(fields: Record<string, unknown>): { kept: Record<string, unknown>; media: number } {
  const found = mediaFields.filter((name) => fields[name] != null)
  if (found.length === 0) return { kept: fields, media: 0 }
  const kept = { ...fields }
  for (const name of found) delete kept[name]
  return { kept, media: found.length }
}

function contentBytes(message: object): number {
  const { content } = message as { content?: unknown }
  if (typeof content === 'string') return Buffer.byteLength(content)
  if (!Array.isArray(content)) return 0
  return content.reduce(
    (sum, part) => sum + (typeof part?.text === 'string' ? Buffer.byteLength(part.text) : 0),
    0,
  )
}
