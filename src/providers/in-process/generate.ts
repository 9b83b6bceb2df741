/** Has a model answer one chat request: reads its prompt, then writes until the answer ends. */

import type { Token } from 'node-llama-cpp'
import type { Place } from '../load-model.ts'
import { holdFormat } from './format.ts'
import type { LocalChatRequest } from './request.ts'
import { type AnswerOptions, type GenerateOptions, Writing } from './sampling.ts'
import { withToolChoice, writePrompt } from './template.ts'

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

/** A step that took longer is halved; one that took a third of it is doubled. */
const LONGEST_STEP_MS = 250

const [FEWEST_TOKENS, MOST_TOKENS] = [8, 512]

/**
 * Reads all of a prompt but its last token, which the answer begins with. What the place has read before is kept as far as it is the
 * same. The library itself looks at a signal only after the whole prompt, which a processor may take minutes for.
 * @throws the signal's reason, within a step of its abort.
 */
export async function readPrompt(
  place: Place,
  prompt: readonly Token[],
  signal: AbortSignal,
  monotonic: () => number,
): Promise<void> {
  const { sequence } = place
  const end = prompt.length - 1
  await sequence.adaptStateToTokens(prompt.slice(0, end), false)
  while (sequence.nextTokenIndex < end) {
    signal.throwIfAborted()
    const from = sequence.nextTokenIndex
    const since = monotonic()
    await sequence.evaluateWithoutGeneratingNewTokens(
      prompt.slice(from, Math.min(from + place.stepTokens, end)),
    )
    const isWhole = from + place.stepTokens <= end
    place.stepTokens = nextStep(place.stepTokens, monotonic() - since, isWhole)
  }
  signal.throwIfAborted()
}

function nextStep(stepTokens: number, tookMs: number, isWhole: boolean): number {
  if (tookMs > LONGEST_STEP_MS) return Math.max(FEWEST_TOKENS, stepTokens >> 1)
  // The rest of a prompt says nothing of a whole step.
  return isWhole && tookMs < LONGEST_STEP_MS / 3 ? Math.min(MOST_TOKENS, stepTokens * 2) : stepTokens
}
