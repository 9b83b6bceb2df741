/** One answer in the making: what the model says goes to a listener, until it ends or the context is full. */
import type { LlamaChat } from 'node-llama-cpp'
import { callersMistake } from '../failures.ts'
import type { Place } from '../load-model.ts'
import { BackendFailure } from '../provider.ts'
import type { LocalChatRequest } from './request.ts'
import { CALL_MARGIN_TOKENS, type ChattingModel } from './template.ts'

/** A call of a tool; `arguments` is JSON, unless the answer was cut off in it. */
export interface LocalCall {
  readonly name: string
  readonly arguments: string
}

/** Told of an answer while it is written; what it throws would be lost. */
export interface Listener {
  onText(text: string): void
  /** What the model thinks before it answers. */
  onThought(text: string): void
  onCall(call: LocalCall): void
}

/** What an answer needs besides its request. */
export interface AnswerOptions {
  readonly model: ChattingModel
  readonly place: Place
  readonly signal: AbortSignal
  readonly listener: Listener
  readonly monotonic: () => number
}

/** The library's options, which its types describe at great length. */
export type GenerateOptions = NonNullable<Parameters<LlamaChat['generateResponse']>[1]>

export class Writing {
  text = ''
  hasCalls = false
  /** The arguments of a call under way, as far as they are written. */
  private unfinished: { readonly name: string; text: string } | undefined
  private readonly overflow = new AbortController()
  private readonly options: AnswerOptions

  constructor(options: AnswerOptions) {
    this.options = options
  }

  /**
   * Writes the answer; returns why it ended, in the library's word, or `maxTokens` where the context is full.
   * @throws BackendFailure; the signal's reason once the signal is aborted.
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
        onResponseChunk: ({ type, text }) => this.say(type === 'segment', text),
        ...(tools !== undefined && {
          onFunctionCallParamsChunk: (chunk) => this.takeArguments(chunk.functionName, chunk.paramsChunk),
          onFunctionCall: ({ functionName, params }) => this.call(functionName, JSON.stringify(params ?? {})),
        }),
      } as GenerateOptions)
      this.handOnUnfinished()
      return metadata.stopReason
    } catch (thrown) {
      if (signal.aborted) throw signal.reason
      return this.endAfter(thrown)
    }
  }

  /** Some failures are ends like others; the rest is thrown. */
  private endAfter(thrown: unknown): string {
    const { model } = this.options
    this.handOnUnfinished()
    if (this.overflow.signal.aborted) return 'maxTokens'
    // Arguments the grammar let pass and the library's own check did not: whoever runs the tool refuses them.
    const isJudged = thrown instanceof model.library.LlamaJsonSchemaValidationError
    if (isJudged && this.hasCalls) return 'functionCalls'
    if (thrown instanceof Error && thrown.message === 'Failed to parse grammar') {
      throw callersMistake('tools', 'have a schema this model cannot be held to')
    }
    const cause = new Error(model.complaints.join(' '), { cause: thrown })
    throw new BackendFailure('protocol', 'The model failed in its answer.', { cause })
  }

  private say(isThought: boolean, text: string): void {
    const { listener } = this.options
    if (text === '') return
    if (isThought) {
      listener.onThought(text)
    } else {
      this.text += text
      listener.onText(text)
    }
  }

  /** In pieces they are only kept: a letter of several bytes may be cut in two by them. */
  private takeArguments(name: string, piece: string): void {
    this.unfinished ??= { name, text: '' }
    this.unfinished.text += piece
    const { sequence } = this.options.place
    // Where there is no room left the library would forget the oldest messages and say nothing of it.
    if (sequence.nextTokenIndex > sequence.contextSize - CALL_MARGIN_TOKENS) this.overflow.abort()
  }

  private call(name: string, text: string): void {
    this.unfinished = undefined
    this.hasCalls = true
    this.options.listener.onCall({ name, arguments: text })
  }

  /** A call that was cut off is handed on as far as it goes. */
  private handOnUnfinished(): void {
    if (this.unfinished !== undefined) this.call(this.unfinished.name, this.unfinished.text.trimEnd())
  }
}
