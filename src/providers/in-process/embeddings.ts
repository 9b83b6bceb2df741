/** Turns texts into vectors with a model of this process. */
import type { LlamaEmbeddingContext, Token } from 'node-llama-cpp'
import type { JsonObject } from '../../lib/formats/json.ts'
import { callersMistake } from '../failures.ts'
import type { LocalModel } from '../load-model.ts'
import type { BackendFailure } from '../provider.ts'
import { listInputs, renderEmbeddings } from '../render-answer.ts'
import { MOST_LETTERS_PER_TOKEN } from './template.ts'

/** The library adds a token at each end, and needs one to spare. */
const SPARE_TOKENS = 3

/** Embeds with one model; its context is made at the first need. */
export class Embedder {
  private readonly model: LocalModel
  private context: Promise<LlamaEmbeddingContext> | undefined

  constructor(model: LocalModel) {
    this.model = model
  }

  /**
   * Answers an embeddings request with a whole list. Contract: Embedding (response). Decision: 8.
   * @throws BackendFailure 400 for another number of dimensions than the model's, for unknown tokens and for what is too long; the
   * signal's reason, after the input that was being read, once the signal is aborted.
   */
  async embed(body: JsonObject, signal: AbortSignal): Promise<string> {
    const { embeddingVectorSize } = this.model.model
    if (body.dimensions != null && body.dimensions !== embeddingVectorSize) {
      throw callersMistake(
        'dimensions',
        `must be ${embeddingVectorSize}, or left out: this model has no other`,
      )
    }
    const inputs = listInputs(body.input)
    const isList = Array.isArray(body.input) && typeof body.input[0] !== 'number'
    const tokens = inputs.map((input, index) => this.tokenize(input, isList ? `input[${index}]` : 'input'))
    const context = await this.getContext()
    const vectors: Float32Array[] = []
    for (const input of tokens) {
      signal.throwIfAborted()
      vectors.push(toUnitLength((await context.getEmbeddingFor(input)).vector))
    }
    return renderEmbeddings({
      vectors,
      model: typeof body.model === 'string' ? body.model : this.model.id,
      tokens: tokens.reduce((sum, { length }) => sum + length, 0),
      isBase64: body.encoding_format === 'base64',
    })
  }

  private tokenize(input: string | readonly number[], param: string): Token[] {
    const { model, contextTokens } = this.model
    const most = contextTokens - SPARE_TOKENS
    // Counting them takes the whole process some time.
    if (input.length > most * MOST_LETTERS_PER_TOKEN) throw tooLong(param, 'is too long', most)
    const tokens = typeof input === 'string' ? model.tokenize(input) : input.map((token) => token as Token)
    const size = model.fileInfo.metadata.tokenizer.ggml.tokens.length
    if (tokens.some((token) => token >= size)) throw callersMistake(param, `must hold tokens below ${size}`)
    if (tokens.length > most) throw tooLong(param, `has ${tokens.length} tokens`, most)
    return tokens
  }

  private getContext(): Promise<LlamaEmbeddingContext> {
    const { model, contextTokens, threads } = this.model
    this.context ??= model.createEmbeddingContext({ contextSize: contextTokens, threads })
    return this.context
  }
}

function tooLong(param: string, what: string, most: number): BackendFailure {
  return callersMistake(
    param,
    `${what}, more than the ${most} tokens this model reads at once`,
    'context_length_exceeded',
  )
}

/** The library hands out vectors of any length; of a text without any meaning it may be 0. */
function toUnitLength(vector: readonly number[]): Float32Array {
  const length = Math.hypot(...vector) || 1
  return Float32Array.from(vector, (value) => value / length)
}
