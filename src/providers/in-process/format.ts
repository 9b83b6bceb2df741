/** Holds answers to the format a caller asked for. */
import type { LlamaGrammar } from 'node-llama-cpp'
import { callersMistake } from '../failures.ts'
import type { LocalModel } from '../load-model.ts'
import { BackendFailure } from '../provider.ts'
import { toGrammarSchema } from './grammar-schema.ts'
import type { AnswerFormat } from './request.ts'

/** A format a model can be held to. */
export interface HeldFormat {
  readonly grammar: LlamaGrammar
  /**
   * Looks at a whole answer: a grammar lets some things pass.
   * @throws BackendFailure `protocol`
   */
  assertKept(text: string): void
}

/**
 * The grammar of a format; undefined for plain text.
 * @throws BackendFailure 400 for a schema that no grammar can be made of.
 */
export async function holdFormat(
  { llama }: Pick<LocalModel, 'llama'>,
  format: AnswerFormat,
): Promise<HeldFormat | undefined> {
  if (format.type === 'text') return undefined
  if (format.type === 'json')
    return { grammar: await llama.getGrammarFor('json'), assertKept: keeping(JSON.parse) }
  // The library's types want to know the schema when this is compiled.
  const schema = toGrammarSchema(format.schema) as { type: 'object' }
  const grammar = await llama.createGrammarForJsonSchema(schema).catch(() => {
    throw callersMistake('response_format', 'has a schema this model cannot be held to')
  })
  return { grammar, assertKept: keeping((text) => grammar.parse(text)) }
}

function keeping(read: (text: string) => unknown): HeldFormat['assertKept'] {
  return (text) => {
    try {
      read(text)
    } catch (cause) {
      throw new BackendFailure('protocol', 'The model did not keep to the format asked for.', { cause })
    }
  }
}
