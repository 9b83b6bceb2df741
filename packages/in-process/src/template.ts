/** Writes conversations into prompts, as the model's own chat template does. */
import type { ChatWrapper, LlamaText, Token } from 'node-llama-cpp'
import { callersMistake } from '../../../src/providers/failures.ts'
import type { BackendFailure } from '../../../src/providers/provider.ts'
import type { LocalChat, LocalModel } from './load-model.ts'
import type { LocalChatRequest, OfferedTools } from './request.ts'

/** Tokens left free for what a template puts around a call. */
export const CALL_MARGIN_TOKENS = 128
/** Longer texts are rejected before they are tokenized, which blocks the whole process. */
export const MOST_LETTERS_PER_TOKEN = 32

export type ChattingModel = LocalModel & { readonly chat: LocalChat }

/** @throws BackendFailure status 400 when the prompt does not fit the context, or the template rejects the conversation. */
export function writePrompt(
  { chat: { wrapper }, model, contextTokens }: ChattingModel,
  { history, tools }: LocalChatRequest,
): { tokens: readonly Token[]; room: number } {
  const offered = tools && { availableFunctions: tools.functions, documentFunctionParams: true }
  if (JSON.stringify(history).length > contextTokens * MOST_LETTERS_PER_TOKEN) {
    throw tooLong(`are too long for a context of ${contextTokens} tokens`)
  }
  let text: LlamaText
  try {
    text = wrapper.generateContextState({ chatHistory: history, ...offered }).contextText
  } catch (thrown) {
    const reason = thrown instanceof Error ? thrown.message : String(thrown)
    throw callersMistake('messages', `cannot be written by the chat template of this model (${reason})`)
  }
  const tokens = text.tokenize(model.tokenizer)
  const room = contextTokens - 1 - tokens.length - (tools === undefined ? 0 : CALL_MARGIN_TOKENS)
  if (room >= 1) return { tokens, room }
  throw tooLong(
    `have ${tokens.length} tokens, which leaves no room for an answer in a context of ${contextTokens}`,
  )
}

function tooLong(rule: string): BackendFailure {
  return callersMistake('messages', rule, 'context_length_exceeded')
}

/** A required call begins the model's turn. */
export function withToolChoice(
  { chat: { wrapper }, library }: ChattingModel,
  tools: OfferedTools | undefined,
): ChatWrapper {
  if (!tools?.isRequired) return wrapper
  const inject = library.LlamaText([])
  return Object.create(wrapper, {
    generateContextState: {
      value: (options: Parameters<ChatWrapper['generateContextState']>[0]) => ({
        ...wrapper.generateContextState(options),
        noPrefixTrigger: { type: 'functionCall', inject },
      }),
    },
  })
}
