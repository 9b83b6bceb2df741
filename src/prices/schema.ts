/** Defines the schema of a model's price, in the configuration and in price lists. */
import { z } from 'zod'
import { recordOf } from '../lib/schema-bounds.ts'
import { Amount, parseAmount } from './money.ts'

/** Maximum number of dated entries of a model. */
const MOST_ENTRIES = 20

const rates = {
  input: Amount,
  cached_input: Amount,
  cache_write: Amount,
  cache_write_1h: Amount,
  output: Amount,
  reasoning: Amount,
  input_audio: Amount,
  output_audio: Amount,
  input_image: Amount,
  output_image: Amount,
}

const optionalRates = z.strictObject(rates).partial().meta({
  id: 'PriceRates',
  description: 'US dollars per million tokens. Omitted rates keep their normal value.',
})

/** A time in UTC as Unix milliseconds; undefined if `text` is neither a date nor a time with seconds. */
function parseSince(text: string): number | undefined {
  if (!/^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}:\d{2}(\.\d{1,3})?Z)?$/.test(text)) return undefined
  const at = Date.parse(text)
  return Number.isNaN(at) || new Date(at).toISOString().slice(0, 10) !== text.slice(0, 10) ? undefined : at
}

const timeRule = 'must be a time such as "16:30", in UTC'
const timeOfDay = z
  .string(timeRule)
  .max(5, timeRule)
  .regex(/^([01]\d|2[0-3]):[0-5]\d$/, timeRule)

const Window = z
  .strictObject({ from: timeOfDay, to: timeOfDay, per_million: optionalRates })
  .refine(({ from, to }) => from !== to, { path: ['to'], message: 'must differ from `from`' })

const stepRule = 'must be ascending, without duplicates'

const Above = z
  .array(z.strictObject({ input_tokens: z.int().min(0), per_million: optionalRates }))
  .max(8)
  .refine(
    (steps) =>
      steps.every(
        ({ input_tokens: at }, index) => index === 0 || at > (steps[index - 1]?.input_tokens ?? at),
      ),
    stepRule,
  )

const MOST_BOUND = 100_000_000
const bound = z.int().min(0).max(MOST_BOUND)

const Bounds = z
  .strictObject({
    image_tokens: bound,
    audio_tokens_per_kib: bound,
    file_tokens: bound,
    overhead_tokens: bound,
  })
  .partial()
  .meta({
    description:
      'Maximum number of tokens that the provider counts for an image, for 1,024 bytes of audio, for a file, and for the instructions that it adds to requests with tools (512 by default). Budgets reserve them.',
  })

const tierRule = 'must be 1 to 32 lowercase letters, digits, _ and -'

const factor = Amount.refine((text) => (parseAmount(text) ?? 0n) > 0n, 'must be greater than 0')

export const PriceEntry = z
  .strictObject({
    since: z
      .string()
      .max(24)
      .refine(
        (text) => parseSince(text) !== undefined,
        'must be a date such as "2026-11-01" or a time such as "2026-11-01T00:00:00Z"',
      )
      .optional()
      .meta({ description: 'Time from which the price applies. If omitted, the price always applies.' }),
    per_million: z.strictObject(rates).partial().required({ input: true }).meta({
      description:
        'US dollars per million tokens. `cached_input`, `cache_write`, `input_audio` and `input_image` default to `input`; `reasoning`, `output_audio` and `output_image` default to `output`. Without `output`, the price is only for embeddings.',
    }),
    per_call: Amount.optional(),
    per_image: Amount.optional().meta({ description: 'US dollars for each image in the input.' }),
    per_web_search: Amount.optional(),
    above: Above.optional().meta({
      description: 'Rates for the whole request if its input has more tokens than `input_tokens`.',
    }),
    tiers: recordOf(
      z
        .string()
        .max(32, tierRule)
        .regex(/^[a-z0-9_-]{1,32}$/, tierRule),
      factor,
      8,
    )
      .optional()
      .meta({ description: 'Factors for the rates by `service_tier`.' }),
    windows: z
      .array(Window)
      .max(8)
      .optional()
      .meta({ description: 'Rates at times of day, in UTC; the last window that matches applies.' }),
    bounds: Bounds.optional(),
    output_field: z
      .enum(['max_tokens', 'max_completion_tokens'], {
        error: 'must be max_tokens or max_completion_tokens',
      })
      .optional()
      .meta({
        description:
          'Field in which a budget sends its token limit if the request has none. By default `max_completion_tokens` for OpenAI and Azure, and otherwise `max_tokens`.',
      }),
  })
  .meta({ id: 'PriceEntry' })
export type PriceEntry = z.infer<typeof PriceEntry>
export type PriceRates = z.infer<typeof optionalRates>

const sinceOf = ({ since }: PriceEntry) =>
  since === undefined ? Number.NEGATIVE_INFINITY : parseSince(since)

/** The dated entries of a model. */
export const PriceEntries = z
  .array(PriceEntry)
  .min(1, 'must have at least one entry')
  .max(MOST_ENTRIES)
  .refine(
    (entries) => new Set(entries.map(sinceOf)).size === entries.length,
    'must not have two entries with the same `since`',
  )

/** Returns the newest entry that is not in the future. */
export function findEntryAt(entries: readonly PriceEntry[], atMs: number): PriceEntry | undefined {
  let newest: PriceEntry | undefined
  let newestSince = Number.NEGATIVE_INFINITY
  for (const entry of entries) {
    const since = sinceOf(entry) ?? Number.POSITIVE_INFINITY
    if (since > atMs || (newest !== undefined && since < newestSince)) continue
    newest = entry
    newestSince = since
  }
  return newest
}
