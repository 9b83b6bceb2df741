/** Has a model answer one chat request: reads its prompt, then writes until the answer ends. */
import { holdFormat } from './format.ts'
import { readPrompt } from './prompt.ts'
import type { LocalChatRequest } from './request.ts'
import { withToolChoice, writePrompt } from './template.ts'
import { type AnswerOptions, type GenerateOptions, Writing } from './writing.ts'

/** How an answer ended. */
export interface LocalAnswer {
  readonly finish: 'stop' | 'length' | 'tool_calls'
  readonly promptTokens: number
  /** What was sampled, the token that ends the turn included. */
  readonly completionTokens: number
}

/**
 * Answers in full.
 * @throws BackendFailure 400 when the prompt does not fit or the format cannot be held to, `protocol` when the answer does not keep
 * to it; the signal's reason once the signal is aborted.
 */
export async function generateAnswer(
  request: LocalChatRequest,
  options: AnswerOptions,
): Promise<LocalAnswer> {
  const { model, place, signal } = options
  const { sequence } = place
  const prompt = writePrompt(model, request)
  const format = await holdFormat(model, request.format)
  await readPrompt(place, prompt.tokens, signal, options.monotonic)
  const chatWrapper = withToolChoice(model, request.tools)
  const chat = new model.library.LlamaChat({ contextSequence: sequence, chatWrapper })
  const before = sequence.tokenMeter.getState()
  const writing = new Writing(options)
  try {
    const stopReason = await writing.run(chat, request, {
      ...toGenerateOptions(request, prompt.room),
      ...(format !== undefined && { grammar: format.grammar }),
    } as GenerateOptions)
    const completionTokens = sequence.tokenMeter.diff(before).usedOutputTokens
    const isCut = stopReason === 'maxTokens'
    if (!isCut && stopReason !== 'customStopTrigger') format?.assertKept(writing.text)
    const finish = isCut ? 'length' : writing.hasCalls ? 'tool_calls' : 'stop'
    return { finish, promptTokens: prompt.tokens.length, completionTokens }
  } finally {
    chat.dispose({ disposeSequence: false })
  }
}

/** Everything is said: what the library takes for granted differs from the chat API. */
function toGenerateOptions({ sampling, stops, maxTokens, tools }: LocalChatRequest, room: number): object {
  const { frequencyPenalty, presencePenalty, ...chosen } = sampling
  const hasPenalty = frequencyPenalty !== 0 || presencePenalty !== 0
  return {
    ...chosen,
    topK: 0,
    minP: 0,
    repeatPenalty: hasPenalty && { penalty: 1, frequencyPenalty, presencePenalty },
    maxTokens: Math.min(maxTokens ?? room, room),
    customStopTriggers: stops,
    ...(tools && {
      functions: tools.functions,
      documentFunctionParams: true,
      maxParallelFunctionCalls: tools.mostCalls,
    }),
  }
}
