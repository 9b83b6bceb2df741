/** Renders conversations as prompts with the model's chat template. */
import type { ChatWrapper, LlamaText, Token } from 'node-llama-cpp'
import { callersMistake } from '../../../src/providers/failures.ts'
import type { BackendFailure } from '../../../src/providers/provider.ts'
import type { LocalChat, LocalModel } from './load-model.ts'
import type { LocalChatRequest, OfferedTools } from './request.ts'

/** Tokens reserved for the text that a template adds around a tool call. */
export const CALL_MARGIN_TOKENS = 128
/** Longer texts are rejected before tokenizing, because tokenizing blocks the process. */
export const MOST_LETTERS_PER_TOKEN = 32

export type ChattingModel = LocalModel & { readonly chat: LocalChat }

/**
 * @throws BackendFailure status 400 if the prompt does not fit into the context or the template rejects the
 * conversation.
 */
export function writePrompt(
  { chat: { wrapper }, model, contextTokens }: ChattingModel,
  { history, tools }: LocalChatRequest,
): { tokens: readonly Token[]; freeTokens: number } {
  const offered = tools && { availableFunctions: tools.functions, documentFunctionParams: true }
  if (JSON.stringify(history).length > contextTokens * MOST_LETTERS_PER_TOKEN) {
    throw tooLong(`are too long for the context of ${contextTokens} tokens`)
  }
  let text: LlamaText
  try {
    text = wrapper.generateContextState({ chatHistory: history, ...offered }).contextText
  } catch (thrown) {
    const reason = thrown instanceof Error ? thrown.message : String(thrown)
    throw callersMistake('messages', `are not supported by this model's chat template (${reason})`)
  }
  const tokens = text.tokenize(model.tokenizer)
  const freeTokens = contextTokens - 1 - tokens.length - (tools === undefined ? 0 : CALL_MARGIN_TOKENS)
  if (freeTokens >= 1) return { tokens, freeTokens }
  throw tooLong(
    `have ${tokens.length} tokens, which leaves no space for an answer in the context of ${contextTokens} tokens`,
  )
}

function tooLong(rule: string): BackendFailure {
  return callersMistake('messages', rule, 'context_length_exceeded')
}

/** Returns a wrapper that makes the model start its turn with a tool call if `tool_choice` requires one. */
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
