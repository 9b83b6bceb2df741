/** Computes upper bounds on the number of tokens that a provider can count for a request and its answer. */

import type { RequestBounds } from '../../prices/worst-case.ts'
import { chatApiFields } from '../../providers/chat-api.ts'
import { countBytes } from './bytes.ts'
import { countMedia, type MediaBounds, withoutMedia } from './media.ts'

/** Overhead tokens of each message: its role and separators. */
const MESSAGE_TOKENS = 16
/** Tokens for the instructions that a provider adds if a request has tools. */
const TOOL_TOKENS = 512
/** Maximum number of bytes that one token covers in practice; only runs of spaces can exceed it. */
export const BYTES_PER_TOKEN = 32

export type Promptlike = Conversation | Inputs

interface Conversation {
  readonly messages: readonly object[]
  readonly tools?: readonly object[] | null | undefined
  readonly functions?: unknown
  readonly prediction?: unknown
  readonly max_tokens?: number | null | undefined
  readonly max_completion_tokens?: number | null | undefined
  readonly n?: number | null | undefined
}

/** An embeddings request's inputs; numbers are token ids. */
interface Inputs {
  readonly input: string | readonly (string | number | readonly number[])[]
}

export interface TokenNeed extends RequestBounds {
  /** Bytes of text in the messages, used to detect providers that report far too few tokens. */
  readonly textBytes: number
  /** The number of output tokens that the client requests for each choice; 0 for embeddings. */
  readonly outputTokens: number
  readonly choices: number
  /** Path of the first part or tool whose tokens have no known bound, if any. */
  readonly unbounded: string | undefined
}

/** `defaultOutputTokens` applies to a chat without a token limit. `bounds` are those of the model's price. */
export async function boundTokens(
  request: Promptlike,
  defaultOutputTokens: number,
  bounds: MediaBounds = {},
): Promise<TokenNeed> {
  if (!('messages' in request)) return boundInputs(request)
  const { messages, tools, functions, max_tokens, max_completion_tokens, n, prediction } = request
  const texts = messages.map(withoutMedia)
  const media = countMedia(messages, bounds)
  const hasTools = (tools?.length ?? 0) > 0 || functions != null
  const inputTokens =
    (await countBytes(JSON.stringify({ ...pickPromptFields(request), messages: texts }))) +
    MESSAGE_TOKENS * messages.length +
    media.tokens +
    (hasTools ? (bounds.overhead_tokens ?? TOOL_TOKENS) : 0)
  return {
    inputTokens,
    imageTokens: media.imageTokens,
    audioTokens: media.audioTokens,
    images: media.images,
    predictionTokens: prediction == null ? 0 : await countBytes(JSON.stringify(prediction)),
    unbounded: media.unbounded ?? findHostedTool(tools ?? []),
    textBytes: messages.reduce((sum, message) => sum + contentBytes(message), 0),
    outputTokens: max_completion_tokens ?? max_tokens ?? defaultOutputTokens,
    choices: n ?? 1,
  }
}

const promptFields: ReadonlySet<string> = new Set(['tools', 'functions', 'response_format'])

/** Returns the fields that a provider can add to the prompt, including all unknown ones. */
function pickPromptFields(request: object): object {
  const isPrompt = (name: string) => promptFields.has(name) || !chatApiFields.has(name)
  return Object.fromEntries(Object.entries(request).filter(([name]) => isPrompt(name)))
}

/** Finds a tool that runs at the provider, which can add any number of tokens to the input. */
function findHostedTool(tools: readonly { readonly type?: unknown }[]): string | undefined {
  const index = tools.findIndex(({ type }) => type !== 'function' && type !== 'custom')
  return index === -1 ? undefined : `tools[${index}]`
}

/**
 * Returns whether a reported token count is plausible. One token rarely covers more than 32 bytes, so a lower
 * count for the text is wrong.
 */
export function areTokensPlausible(tokens: number, textBytes: number): boolean {
  return tokens * BYTES_PER_TOKEN >= textBytes
}

async function boundInputs({ input }: Inputs): Promise<TokenNeed> {
  const items = typeof input === 'string' ? [input] : input
  let inputTokens = 0
  let textBytes = 0
  for (const item of items) {
    if (typeof item === 'string') {
      inputTokens += (await countBytes(item)) + MESSAGE_TOKENS
      textBytes += Buffer.byteLength(item)
    } else inputTokens += typeof item === 'number' ? 1 : item.length
  }
  const noMedia = { imageTokens: 0, audioTokens: 0, images: 0, predictionTokens: 0, unbounded: undefined }
  return { inputTokens, textBytes, outputTokens: 0, choices: 1, ...noMedia }
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
