/** Defines the operations that return, set and delete model prices. */

import { actorOf } from '../identity/audit.ts'
import { unixSeconds } from '../lib/clock.ts'
import { operationsOf } from '../operations/operation.ts'
import type { ModelCatalogue } from './catalogue.ts'
import type { LivePrices } from './live-prices.ts'
import { deleteOverride, type PriceOverrideDeps, setOverrides } from './price-overrides.ts'
import {
  ModelPrice,
  ModelPriceQuery,
  PriceBody,
  PriceDeleted,
  PriceOverride,
  PriceReference,
  PriceReplacement,
  PriceTable,
  PriceTableQuery,
} from './prices/schema.ts'
import { readPriceTable, renderOverride, type TableDeps } from './prices/table.ts'

export { listPrices } from './prices/table.ts'

interface PriceDeps extends TableDeps, PriceOverrideDeps {
  readonly db: TableDeps['db']
  readonly clock: TableDeps['clock']
  readonly models: ModelCatalogue
  readonly priceOverrides: LivePrices
}

/** Applies a change in this process before the operation returns, and makes other replicas load it. */
async function apply({ priceOverrides }: PriceDeps): Promise<void> {
  priceOverrides.invalidate()
  await priceOverrides.settled()
}

const usage = operationsOf<PriceDeps>()('Usage', { callers: ['parent'] })
const administration = operationsOf<PriceDeps>()('Administration', {
  callers: ['parent'],
  needs: 'administrator',
})

export const priceOperations = {
  get: usage.query({
    http: { method: 'GET', path: '/v1/prices' },
    docs: {
      summary: 'Get the current price of a model',
      failures: { 404: 'The model does not exist.' },
    },
    input: ModelPriceQuery,
    output: ModelPrice,
    run: ({ context: { deps }, input }) => {
      const { backend, model } = deps.models.route(input.model)
      const price = deps.prices.find(backend.name, model, deps.clock.now())
      return {
        object: 'price' as const,
        ...{ provider: backend.name, model, priced: price !== undefined },
        ...{ source: price?.source ?? null, price_id: price?.id ?? null, entry: price?.entry ?? null },
        ...{ date: price?.date ?? null, at: unixSeconds(deps.clock) },
      }
    },
  }),

  list: administration.query({
    http: { method: 'GET', path: '/v1/manager/admin/prices' },
    docs: {
      summary: 'List the current prices of all models',
      description:
        'Contains the models that the providers list, models with a set price, and models that were called without a price.',
    },
    input: PriceTableQuery,
    output: PriceTable,
    run: ({ context: { deps }, input }) => readPriceTable(deps, input),
  }),

  set: administration.mutation({
    http: { method: 'PUT', path: '/v1/manager/admin/prices/{provider}/{model}' },
    request: { takesRest: true, bodySchema: PriceBody },
    docs: {
      summary: 'Set the price of a model',
      description:
        'The price takes precedence over the configuration and the price list. All replicas use it within seconds, without a restart; stored costs do not change.',
      failures: { 409: 'The maximum number of set prices is reached.' },
    },
    input: PriceReplacement,
    output: PriceOverride,
    run: async ({ context, input }) => {
      const { provider, model, entries, per_million, ...fields } = input
      const prices = entries ?? (per_million === undefined ? [] : [{ ...fields, per_million }])
      const [stored] = await setOverrides(context.deps, actorOf(context), [
        { provider, model, entries: prices },
      ])
      await apply(context.deps)
      return renderOverride(stored as NonNullable<typeof stored>)
    },
  }),

  remove: administration.mutation({
    http: { method: 'DELETE', path: '/v1/manager/admin/prices/{provider}/{model}' },
    request: { takesRest: true },
    docs: {
      summary: 'Delete the set price of a model',
      description: 'The model then has the price in the configuration or in the price list, if there is one.',
      failures: { 404: 'No price has been set for the model.' },
    },
    input: PriceReference,
    output: PriceDeleted,
    run: async ({ context, input }) => {
      await deleteOverride(context.deps, actorOf(context), input)
      await apply(context.deps)
      return { ...input, deleted: true as const }
    },
  }),
}
