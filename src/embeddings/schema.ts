/** Schemas of embeddings: the request and the list of vectors. */
import { z } from 'zod'

const MAX_INPUTS = 2048
const MAX_INPUT_BYTES = 2 * 1024 * 1024
/** What a token counts against the limit. */
const BYTES_PER_TOKEN = 4

const text = z.string().min(1)
const tokens = z.array(z.int().min(0)).min(1)

const input = z
  .union([text, z.array(text).min(1), tokens, z.array(tokens).min(1)], {
    error: 'must be a text or an array of texts, tokens or token arrays, none of them empty',
  })
  .meta({ description: 'One text or token array, or up to 2048 of them; 2 MiB in all.' })

/** Checks what the service uses or must limit; other fields pass through. */
export const EmbeddingsRequest = z
  .looseObject({
    model: z.string().min(1).nullish(),
    // The limits come first, so that no item of a long list is checked.
    input: z.preprocess((value, context) => {
      const message = findExcess(value)
      if (message === undefined) return value
      context.addIssue(message)
      return z.NEVER
    }, input),
    dimensions: z.int().positive().nullish(),
    encoding_format: z.enum(['float', 'base64']).nullish(),
    user: z.string().nullish(),
  })
  .meta({ id: 'EmbeddingsRequest' })
export type EmbeddingsRequest = z.infer<typeof EmbeddingsRequest>

function findExcess(value: unknown): string | undefined {
  const items: readonly unknown[] = Array.isArray(value) ? value : [value]
  if (items.length > MAX_INPUTS) return `has more than ${MAX_INPUTS} items`
  let sizeBytes = 0
  for (const item of items) {
    if (typeof item === 'string') sizeBytes += Buffer.byteLength(item)
    else sizeBytes += BYTES_PER_TOKEN * (Array.isArray(item) ? item.length : 1)
  }
  return sizeBytes > MAX_INPUT_BYTES ? `is larger than ${MAX_INPUT_BYTES} bytes` : undefined
}

/** How many vectors an input asks for. An array of numbers is one text in tokens. */
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
        embedding: z
          .union([z.array(z.number()), z.base64()])
          .meta({ description: 'Numbers, or with `encoding_format: base64` little-endian float32.' }),
      }),
    ),
    model: z.string(),
    usage: EmbeddingsUsage,
  })
  .meta({ id: 'EmbeddingList' })
export type EmbeddingList = z.infer<typeof EmbeddingList>
