/** Defines the API schemas of prices. */
import { z } from 'zod'
import { ModelMeter } from '../../budgets/meter-operations.ts'
import { jsonObject, modelId, reference, searchText, singleLine } from '../../lib/schema-bounds.ts'
import { PriceEntries, PriceEntry } from '../../prices/schema.ts'

const provider = z
  .string()
  .max(64)
  .meta({ description: 'Name of the provider.', examples: ['openai'] })
const model = singleLine(modelId()).meta({ description: "The provider's model id; can contain `/`." })
const seconds = z.int().meta({ description: 'Unix seconds.' })

const sources = ['override', 'config', 'shipped', 'free'] as const
const source = z.enum(sources).nullable().meta({
  description:
    '`override`: set by an administrator; `config`: the configuration file; `shipped`: the price list; `free`: a mock or local model; null without a price.',
})
const date = z.string().nullable().meta({
  description:
    'Day (UTC) when the price was set or took effect, or the day of the price list if it is later; null if unknown.',
})
const entry = jsonObject().meta({ description: 'The price, with amounts in US dollars as text.' })
const priceId = z
  .string()
  .nullable()
  .meta({ description: 'Id of this price; matches the `price_id` of calls at this price.' })

export const ModelPriceQuery = z.object({
  model: modelId().meta({ description: 'Model id, with or without its provider, such as `far/small`.' }),
})

export const ModelPrice = z
  .strictObject({
    object: z.literal('price'),
    provider: z.string(),
    model: z.string().meta({ description: "The provider's model id." }),
    priced: z.boolean(),
    source,
    price_id: priceId,
    entry: entry.nullable(),
    date,
    at: z.int().meta({ description: 'Time for which the price was looked up, in Unix seconds.' }),
  })
  .meta({ id: 'ModelPrice' })

export const PriceReference = z.strictObject({ provider, model })

/** An entry, or a list of dated entries in `entries`. */
export const PriceBody = z
  .strictObject({
    ...PriceEntry.shape,
    per_million: PriceEntry.shape.per_million.optional(),
    entries: PriceEntries.optional().meta({
      description: 'Prices with different `since` values; used instead of all other fields.',
    }),
  })
  .meta({ id: 'PriceBody', description: 'A price, or several dated prices in `entries`.' })

const settableModel = model.refine((id) => !/^\/|\/$/.test(id), 'must not start or end with /')

export const PriceReplacement = PriceBody.extend({ provider, model: settableModel }).superRefine(
  ({ provider: _, model: __, entries, ...fields }, context) => {
    const names = Object.keys(fields).filter((name) => fields[name as keyof typeof fields] !== undefined)
    if (entries === undefined && fields.per_million === undefined)
      context.addIssue({ code: 'custom', path: ['per_million'], message: 'is required' })
    if (entries !== undefined && names[0] !== undefined)
      context.addIssue({ code: 'custom', path: [names[0]], message: 'cannot be combined with entries' })
  },
)

export const PriceOverride = z
  .strictObject({
    object: z.literal('price_override'),
    provider: z.string(),
    model: z.string(),
    entries: z.array(entry),
    updated_by: z.string().meta({ description: 'Who set the price, as in the audit log.' }),
    updated_at: seconds,
  })
  .meta({ id: 'PriceOverride' })
export type PriceOverride = z.output<typeof PriceOverride>

export const PriceDeleted = z
  .strictObject({ provider: z.string(), model: z.string(), deleted: z.literal(true) })
  .meta({ id: 'PriceDeleted' })

const MOST_ON_PAGE = 200

export const PriceTableQuery = z.strictObject({
  q: searchText().optional().meta({ description: 'Returns only models whose id contains this text.' }),
  source: z
    .enum([...sources, 'none'], { error: 'must be override, config, shipped, free or none' })
    .optional()
    .meta({ description: 'Returns only models with this source; `none` for models without a price.' }),
  limit: z.int().min(1).max(MOST_ON_PAGE).default(50).meta({ description: 'Maximum number of models.' }),
  after: reference().optional().meta({ description: 'Id of a model; returns only models after it.' }),
})
export type PriceTableQuery = z.output<typeof PriceTableQuery>

export const TablePrice = z
  .strictObject({
    id: z.string().meta({ description: 'The provider and the model, such as `far/small`.' }),
    provider: z.string(),
    model: z.string(),
    source,
    price_id: priceId,
    entry: entry.nullable(),
    date,
    unpriced_requests: z.int().meta({
      description: 'Number of calls without a price in the last 30 days, across all parent keys.',
    }),
    override: PriceOverride.nullable(),
    meter: ModelMeter.nullable().meta({
      description: 'Set while budgets measure the answers of the model in bytes.',
    }),
  })
  .meta({ id: 'TablePrice' })
export type TablePrice = z.output<typeof TablePrice>

export const PriceTable = z
  .strictObject({
    object: z.literal('list'),
    data: z.array(TablePrice).meta({
      description: 'Models that were called without a price come first, then all others by id.',
    }),
    has_more: z.boolean(),
  })
  .meta({ id: 'PriceTable' })
export type PriceTable = z.output<typeof PriceTable>
