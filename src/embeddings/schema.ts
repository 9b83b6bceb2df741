/** Defines the schemas of embedding requests and responses. */
import { z } from 'zod'
import { label, longText, modelId } from '../lib/schema-bounds.ts'

const MAX_INPUTS = 2048
const MAX_INPUT_BYTES = 2 * 1024 * 1024
const BYTES_PER_TOKEN = 4

const MAX_TOKENS = MAX_INPUT_BYTES / BYTES_PER_TOKEN
/** Maximum number of JSON values in a request; enough for `MAX_TOKENS` tokens in arrays. */
export const MAX_EMBEDDINGS_VALUES = 600_000

const text = longText().min(1)
const tokens = z.array(z.int().min(0)).min(1).max(MAX_TOKENS)

const input = z
  .union([text, z.array(text).min(1).max(MAX_INPUTS), tokens, z.array(tokens).min(1).max(MAX_INPUTS)], {
    error: 'must be a string, or an array of strings, tokens or token arrays; none may be empty',
  })
  .meta({ description: 'One text or token array, or up to 2048 of them; at most 2 MiB in total.' })

/** Checks the fields that the service uses or must limit; other fields pass through. */
export const EmbeddingsRequest = z
  .looseObject({
    model: modelId().nullish(),
    // Checks the limits and tokens first, because the union would check every item and report an invalid
    // token once per branch.
    input: z.preprocess((value, context) => {
      const message = findExcess(value)
      const wrongToken = message === undefined ? findWrongToken(value) : undefined
      if (message !== undefined) context.addIssue(message)
      else if (wrongToken !== undefined)
        context.addIssue({
          code: 'custom',
          path: wrongToken,
          message: 'must be a whole number of at least 0',
        })
      else return value
      return z.NEVER
    }, input),
    dimensions: z.int().positive().nullish(),
    encoding_format: z.enum(['float', 'base64']).nullish(),
    user: label().nullish(),
  })
  .meta({ id: 'EmbeddingsRequest' })
export type EmbeddingsRequest = z.infer<typeof EmbeddingsRequest>

function findExcess(value: unknown): string | undefined {
  const items: readonly unknown[] = Array.isArray(value) ? value : [value]
  if (items.length > MAX_INPUTS) return `must have at most ${MAX_INPUTS} items`
  let sizeBytes = 0
  for (const item of items) {
    if (typeof item === 'string') sizeBytes += Buffer.byteLength(item)
    else sizeBytes += BYTES_PER_TOKEN * (Array.isArray(item) ? item.length : 1)
  }
  return sizeBytes > MAX_INPUT_BYTES ? `must be at most ${MAX_INPUT_BYTES} bytes` : undefined
}

function findWrongToken(value: unknown): [item: number, token: number] | undefined {
  if (!Array.isArray(value)) return undefined
  for (const [index, item] of value.entries()) {
    if (!Array.isArray(item)) continue
    const at = item.findIndex((token) => !Number.isSafeInteger(token) || token < 0)
    if (at !== -1) return [index, at]
  }
  return undefined
}

/** Returns the number of vectors that an input requests. An array of numbers is one tokenized text. */
export function countInputs(given: EmbeddingsRequest['input']): number {
  return typeof given === 'string' || typeof given[0] === 'number' ? 1 : given.length
}

export const EmbeddingsUsage = z
  .looseObject({ prompt_tokens: z.int(), total_tokens: z.int() })
  .meta({ id: 'EmbeddingsUsage' })
export type EmbeddingsUsage = z.infer<typeof EmbeddingsUsage>

export const EmbeddingList = z
  .looseObject({
    object: z.literal('list'),
    data: z.array(
      z.looseObject({
        object: z.literal('embedding'),
        index: z.int(),
        embedding: z.union([z.array(z.number()), z.base64()]).meta({
          description:
            'An array of numbers. With `encoding_format: base64`, a Base64 string of little-endian float32 values.',
        }),
      }),
    ),
    model: z.string(),
    usage: EmbeddingsUsage,
  })
  .meta({ id: 'EmbeddingList' })
export type EmbeddingList = z.infer<typeof EmbeddingList>
