/** Creates embeddings with a model that runs in this process. */
import type { LlamaEmbeddingContext, Token } from 'node-llama-cpp'
import type { JsonObject } from '../../../src/lib/formats/json.ts'
import { callersMistake } from '../../../src/providers/failures.ts'
import type { BackendFailure } from '../../../src/providers/provider.ts'
import { listInputs, renderEmbeddings } from '../../../src/providers/render-answer.ts'
import type { LocalModel } from './load-model.ts'
import { MOST_LETTERS_PER_TOKEN } from './template.ts'

/** Context tokens to leave free: node-llama-cpp adds two tokens to each input and requires one more. */
const SPARE_TOKENS = 3

export class Embedder {
  private readonly local: LocalModel
  private context: Promise<LlamaEmbeddingContext> | undefined

  constructor(local: LocalModel) {
    this.local = local
  }

  /**
   * Returns the response as JSON. @throws BackendFailure with status 400 for invalid input; the signal's
   * reason if it aborts, after the current input.
   */
  async embed(body: JsonObject, signal: AbortSignal): Promise<string> {
    const { id, model, contextTokens, threads } = this.local
    const size = model.embeddingVectorSize
    if (body.dimensions != null && body.dimensions !== size) {
      throw callersMistake('dimensions', `must be ${size} or absent; this model supports no other size`)
    }
    const inputs = listInputs(body.input)
    const isList = Array.isArray(body.input) && typeof body.input[0] !== 'number'
    const tokens = inputs.map((input, index) => this.tokenize(input, isList ? `input[${index}]` : 'input'))
    this.context ??= model.createEmbeddingContext({ contextSize: contextTokens, threads })
    const context = await this.context
    const vectors: Float32Array[] = []
    for (const input of tokens) {
      signal.throwIfAborted()
      const { vector } = await context.getEmbeddingFor(input)
      // Prevents a division by zero for a zero vector.
      const length = Math.hypot(...vector) || 1
      vectors.push(Float32Array.from(vector, (value) => value / length))
    }
    return renderEmbeddings({
      vectors,
      model: typeof body.model === 'string' ? body.model : id,
      tokens: tokens.reduce((sum, { length }) => sum + length, 0),
      isBase64: body.encoding_format === 'base64',
    })
  }

  private tokenize(input: string | readonly number[], param: string): Token[] {
    const { model, contextTokens } = this.local
    const most = contextTokens - SPARE_TOKENS
    // Rejects long texts early, because tokenizing blocks the process.
    if (input.length > most * MOST_LETTERS_PER_TOKEN) throw tooLong(param, 'is too long', most)
    const tokens = typeof input === 'string' ? model.tokenize(input) : input.map((token) => token as Token)
    const size = model.fileInfo.metadata.tokenizer.ggml.tokens.length
    if (tokens.some((token) => token >= size))
      throw callersMistake(param, `must contain only token ids below ${size}`)
    if (tokens.length > most) throw tooLong(param, `has ${tokens.length} tokens`, most)
    return tokens
  }
}

function tooLong(param: string, what: string, most: number): BackendFailure {
  const rule = `${what}; this model accepts at most ${most} tokens`
  return callersMistake(param, rule, 'context_length_exceeded')
}
