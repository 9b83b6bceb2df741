/**
 * Lists the prices of all models: those that providers list, those with a set price, and those that were
 * called.
 */
import { renderMeter } from '../../budgets/meter-operations.ts'
import type { ModelMeters } from '../../budgets/model-meters.ts'
import type { Config } from '../../config/config.ts'
import type { Database } from '../../db/database.ts'
import type { Clock } from '../../lib/clock.ts'
import { ServiceError } from '../../lib/errors.ts'
import { toPage } from '../../lib/page.ts'
import type { PriceBook } from '../../prices/lookup.ts'
import { listUnpricedModels } from '../../usage/usage.ts'
import type { ModelCatalogue } from '../catalogue.ts'
import type { LivePrices } from '../live-prices.ts'
import { type PricedModel, type StoredOverride, splitId } from '../price-overrides.ts'
import type { PriceOverride, PriceTable, PriceTableQuery, TablePrice } from './schema.ts'

export interface TableDeps {
  readonly config: Pick<Config, 'prices'>
  readonly db: Database
  readonly clock: Clock
  readonly models: Pick<ModelCatalogue, 'list'>
  readonly prices: PriceBook
  readonly priceOverrides: Pick<LivePrices, 'list'>
  readonly meters: Pick<ModelMeters, 'list'>
}

/** @throws ServiceError `invalid_value` if `after` is not the id of a listed model. */
export async function readPriceTable(deps: TableDeps, query: PriceTableQuery): Promise<PriceTable> {
  const { limit, after } = query
  const listed = (await listPrices(deps)).filter((price) => matches(price, query))
  const start = after === undefined ? 0 : listed.findIndex(({ id }) => id === after) + 1
  if (after !== undefined && start === 0)
    throw new ServiceError('invalid_value', 'after: must be the id of an item in this list', {
      param: 'after',
    })
  const { rows, hasMore } = toPage(listed.slice(start, start + limit + 1), limit)
  return { object: 'list', data: [...rows], has_more: hasMore }
}

/** Lists models without a price that were called first, then all others by id. */
export async function listPrices(deps: TableDeps): Promise<TablePrice[]> {
  const { config, clock, models, prices, priceOverrides } = deps
  const meters = new Map(deps.meters.list().map((one) => [`${one.provider}/${one.model}`, one]))
  const unpriced = new Map(
    (await listUnpricedModels(deps)).map((one) => [`${one.provider}/${one.model}`, one]),
  )
  const overrides = new Map(priceOverrides.list().map((one) => [`${one.provider}/${one.model}`, one]))
  const named = new Map<string, PricedModel>([...unpriced, ...overrides, ...meters])
  for (const { provider, backendId } of models.list())
    named.set(`${provider}/${backendId}`, { provider, model: backendId })
  for (const id of Object.keys(config.prices.configured)) named.set(id, splitId(id))
  const listed = [...named].map(([id, { provider, model }]): TablePrice => {
    const price = prices.find(provider, model, clock.now())
    const override = overrides.get(id)
    const meter = meters.get(id)
    return {
      ...{ id, provider, model, source: price?.source ?? null, price_id: price?.id ?? null },
      ...{ entry: price?.entry ?? null, date: price?.date ?? null },
      unpriced_requests: unpriced.get(id)?.requests ?? 0,
      override: override === undefined ? null : renderOverride(override),
      meter: meter === undefined ? null : renderMeter(meter),
    }
  })
  return listed.toSorted((one, other) => missingOf(other) - missingOf(one) || (one.id < other.id ? -1 : 1))
}

/** Returns the number of calls that a model's missing price affects. */
function missingOf({ source, unpriced_requests }: TablePrice): number {
  return source === null ? unpriced_requests : 0
}

function matches({ id, source }: TablePrice, query: PriceTableQuery): boolean {
  if (query.source !== undefined && query.source !== (source ?? 'none')) return false
  return query.q === undefined || id.toLowerCase().includes(query.q.toLowerCase())
}

export function renderOverride({ provider, model, entries, ...changed }: StoredOverride): PriceOverride {
  return {
    ...{ object: 'price_override', provider, model, entries: [...entries] },
    ...{ updated_by: changed.updatedBy, updated_at: changed.updatedAt },
  }
}
