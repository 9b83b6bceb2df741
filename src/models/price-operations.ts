/** Defines the operation that returns a model's price. */
import { z } from 'zod'
import type { Clock } from '../lib/clock.ts'
import { unixSeconds } from '../lib/clock.ts'
import { jsonObject, modelId } from '../lib/schema-bounds.ts'
import { operationsOf } from '../operations/operation.ts'
import type { PriceBook } from '../prices/lookup.ts'
import type { ModelCatalogue } from './catalogue.ts'

interface PriceDeps {
  readonly models: ModelCatalogue
  readonly prices: PriceBook
  readonly clock: Clock
}

const { query } = operationsOf<PriceDeps>()('Usage', { callers: ['parent'] })

const ModelPrice = z
  .strictObject({
    object: z.literal('price'),
    provider: z.string(),
    model: z.string().meta({ description: "The provider's model id." }),
    priced: z.boolean(),
    source: z.enum(['config', 'shipped', 'free']).nullable().meta({
      description:
        '`config`: the configuration file; `shipped`: the price list; `free`: a mock or local model; null without a price.',
    }),
    price_id: z.string().nullable().meta({ description: 'The id that calls at this price have.' }),
    entry: jsonObject().nullable().meta({ description: 'The price, with amounts in US dollars as text.' }),
    at: z.int().meta({ description: 'Unix seconds of the price.' }),
  })
  .meta({ id: 'ModelPrice' })

export const priceOperations = {
  get: query({
    http: { method: 'GET', path: '/v1/prices' },
    docs: {
      summary: 'Get the current price of a model',
      failures: { 404: 'The model does not exist.' },
    },
    input: z.object({
      model: modelId().meta({ description: 'Model id, with or without its provider, such as `far/small`.' }),
    }),
    output: ModelPrice,
    run: async ({ context: { deps }, input }) => {
      const { backend, model } = deps.models.route(input.model)
      const price = deps.prices.find(backend.name, model, deps.clock.now())
      return {
        object: 'price' as const,
        ...{ provider: backend.name, model, priced: price !== undefined },
        ...{ source: price?.source ?? null, price_id: price?.id ?? null, entry: price?.entry ?? null },
        at: unixSeconds(deps.clock),
      }
    },
  }),
}
