/** Answers a chat request with an in-process model: evaluates the prompt, then generates the answer. */
import type { LlamaChat, Token } from 'node-llama-cpp'
import { callersMistake } from '../../../src/providers/failures.ts'
import { BackendFailure } from '../../../src/providers/provider.ts'
import { toGrammarSchema } from './grammar-schema.ts'
import type { LocalModel, Place } from './load-model.ts'
import type { AnswerFormat, LocalChatRequest } from './request.ts'
import { CALL_MARGIN_TOKENS, type ChattingModel, withToolChoice, writePrompt } from './template.ts'

export interface LocalAnswer {
  readonly finish: 'stop' | 'length' | 'tool_calls'
  readonly promptTokens: number
  /** Number of sampled tokens, including the one that ends the turn. */
  readonly completionTokens: number
}

/** A tool call; `arguments` is JSON unless the answer was truncated inside it. */
export interface LocalCall {
  readonly name: string
  readonly arguments: string
}

/** Receives an answer while it is generated; exceptions from its methods are ignored. */
export interface Listener {
  onText(text: string): void
  onThought(text: string): void
  onCall(call: LocalCall): void
}

interface AnswerOptions {
  readonly model: ChattingModel
  readonly place: Place
  readonly signal: AbortSignal
  readonly listener: Listener
  readonly monotonic: () => number
}

type GenerateOptions = NonNullable<Parameters<LlamaChat['generateResponse']>[1]>

/**
 * @throws BackendFailure if the model does not support the prompt or format, or its answer is invalid; the
 * signal's reason if it aborts.
 */
export async function generateAnswer(
  request: LocalChatRequest,
  options: AnswerOptions,
): Promise<LocalAnswer> {
  const { model, place, signal } = options
  const { sequence } = place
  const prompt = writePrompt(model, request)
  const format = await toGrammar(model, request.format)
  await readPrompt(place, prompt.tokens, signal, options.monotonic)
  const chatWrapper = withToolChoice(model, request.tools)
  const chat = new model.library.LlamaChat({ contextSequence: sequence, chatWrapper })
  const before = sequence.tokenMeter.getState()
  const generation = new Generation(options)
  try {
    const stopReason = await generation.run(chat, request, {
      ...toGenerateOptions(request, prompt.freeTokens),
      ...(format !== undefined && { grammar: format.grammar }),
    } as GenerateOptions)
    const completionTokens = sequence.tokenMeter.diff(before).usedOutputTokens
    const isCut = stopReason === 'maxTokens'
    if (!isCut && stopReason !== 'customStopTrigger') assertParses(format, generation.text)
    const finish = isCut ? 'length' : generation.hasCalls ? 'tool_calls' : 'stop'
    return { finish, promptTokens: prompt.tokens.length, completionTokens }
  } finally {
    chat.dispose({ disposeSequence: false })
  }
}

async function toGrammar({ llama }: LocalModel, format: AnswerFormat) {
  if (format.type === 'text') return undefined
  if (format.type === 'json') return { grammar: await llama.getGrammarFor('json'), parse: JSON.parse }
  // The library's types require a schema that is known at compile time.
  const schema = toGrammarSchema(format.schema) as { type: 'object' }
  const grammar = await llama.createGrammarForJsonSchema(schema).catch(() => {
    throw callersMistake('response_format', 'has a JSON Schema that this model does not support')
  })
  return { grammar, parse: (text: string): unknown => grammar.parse(text) }
}

/** Parses the answer, because a grammar does not enforce every rule of a schema. */
function assertParses(format: Awaited<ReturnType<typeof toGrammar>>, text: string): void {
  try {
    format?.parse(text)
  } catch (cause) {
    throw new BackendFailure('protocol', 'The model did not follow the requested format.', { cause })
  }
}

/** Sets every option, because the library's defaults differ from the chat API's. */
function toGenerateOptions(
  { sampling, stops, maxTokens, tools }: LocalChatRequest,
  freeTokens: number,
): object {
  const { frequencyPenalty, presencePenalty, ...chosen } = sampling
  const hasPenalty = frequencyPenalty !== 0 || presencePenalty !== 0
  return {
    ...chosen,
    topK: 0,
    minP: 0,
    repeatPenalty: hasPenalty && { penalty: 1, frequencyPenalty, presencePenalty },
    maxTokens: Math.min(maxTokens ?? freeTokens, freeTokens),
    customStopTriggers: stops,
    ...(tools && {
      functions: tools.functions,
      documentFunctionParams: true,
      maxParallelFunctionCalls: tools.mostCalls,
    }),
  }
}

/**
 * Target duration of a step. A longer step halves the step size, and a full step that takes less than a third
 * of this time doubles it.
 */
const LONGEST_STEP_MS = 250

const [FEWEST_TOKENS, MOST_TOKENS] = [8, 512]

/**
 * Evaluates the prompt in steps, because the library checks the signal only between evaluations. Omits the
 * last token, because generation starts with it.
 */
async function readPrompt(
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
    const { stepTokens } = place
    const from = sequence.nextTokenIndex
    const since = monotonic()
    await sequence.evaluateWithoutGeneratingNewTokens(prompt.slice(from, Math.min(from + stepTokens, end)))
    const tookMs = monotonic() - since
    // A short last step is fast because of its size, so it must not increase the step size.
    const isFullStep = from + stepTokens <= end
    if (tookMs > LONGEST_STEP_MS) place.stepTokens = Math.max(FEWEST_TOKENS, stepTokens >> 1)
    else if (isFullStep && tookMs < LONGEST_STEP_MS / 3)
      place.stepTokens = Math.min(MOST_TOKENS, stepTokens * 2)
  }
  signal.throwIfAborted()
}

class Generation {
  text = ''
  hasCalls = false
  private unfinishedCall: { readonly name: string; text: string } | undefined
  private readonly overflow = new AbortController()
  private readonly options: AnswerOptions

  constructor(options: AnswerOptions) {
    this.options = options
  }

  /**
   * Returns the library's stop reason, or `maxTokens` if the context is full. @throws BackendFailure; the
   * signal's reason if it aborts.
   */
  async run(
    chat: LlamaChat,
    { history, tools }: LocalChatRequest,
    options: GenerateOptions,
  ): Promise<string> {
    const { signal } = this.options
    try {
      const { metadata } = await chat.generateResponse(history, {
        ...options,
        signal: AbortSignal.any([signal, this.overflow.signal]),
        onResponseChunk: ({ type, text }) => this.addText(type === 'segment', text),
        ...(tools !== undefined && {
          onFunctionCallParamsChunk: (chunk) => this.addArguments(chunk.functionName, chunk.paramsChunk),
          onFunctionCall: ({ functionName, params }) =>
            this.addCall(functionName, JSON.stringify(params ?? {})),
        }),
      } as GenerateOptions)
      this.addUnfinishedCall()
      return metadata.stopReason
    } catch (thrown) {
      if (signal.aborted) throw signal.reason
      return this.toStopReason(thrown)
    }
  }

  /**
   * Returns the stop reason if the error is a normal end of the answer, and throws a BackendFailure
   * otherwise.
   */
  private toStopReason(thrown: unknown): string {
    const { model } = this.options
    this.addUnfinishedCall()
    if (this.overflow.signal.aborted) return 'maxTokens'
    // The library may reject arguments that match the grammar; the server checks them again before the tool
    // runs.
    const isInvalidCall = thrown instanceof model.library.LlamaJsonSchemaValidationError
    if (isInvalidCall && this.hasCalls) return 'functionCalls'
    if (thrown instanceof Error && thrown.message === 'Failed to parse grammar') {
      throw callersMistake('tools', 'contain a JSON Schema that this model does not support')
    }
    const cause = new Error(model.complaints.join(' '), { cause: thrown })
    throw new BackendFailure('protocol', 'The model failed while generating the answer.', { cause })
  }

  private addText(isThought: boolean, text: string): void {
    if (text === '') return
    if (!isThought) this.text += text
    const { listener } = this.options
    if (isThought) listener.onThought(text)
    else listener.onText(text)
  }

  /** Collects arguments until the call ends, because a chunk may end inside a multi-byte character. */
  private addArguments(name: string, piece: string): void {
    this.unfinishedCall ??= { name, text: '' }
    this.unfinishedCall.text += piece
    const { sequence } = this.options.place
    // Stops before the context is full, because the library would then silently drop the oldest messages.
    if (sequence.nextTokenIndex > sequence.contextSize - CALL_MARGIN_TOKENS) this.overflow.abort()
  }

  private addCall(name: string, text: string): void {
    this.unfinishedCall = undefined
    this.hasCalls = true
    this.options.listener.onCall({ name, arguments: text })
  }

  private addUnfinishedCall(): void {
    const { unfinishedCall: call } = this
    if (call !== undefined) this.addCall(call.name, call.text.trimEnd())
  }
}
