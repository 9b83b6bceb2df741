/** Implements the `prices` commands, which list, show, check and import model prices. */
import { randomBytes } from 'node:crypto'
import { readMeters } from '../../../budgets/meter-operations.ts'
import type { Actor } from '../../../identity/audit.ts'
import { StartupError } from '../../../lib/errors.ts'
import { listPrices } from '../../../models/price-operations.ts'
import { listOverrides, setOverrides, splitId } from '../../../models/price-overrides.ts'
import type { PriceBook } from '../../../prices/lookup.ts'
import { commandActor, createDeps, withDatabase } from '../../installation.ts'
import { print, printResult, renderTable } from '../../output.ts'
import { openPriceBook, type PriceDeps, withModels } from './book.ts'
import { findUnpriced, type UnpricedUse } from './check.ts'
import { readPriceFile } from './price-file.ts'

export function list(isJson: boolean): Promise<void> {
  return withPrices((deps, prices) =>
    withModels(deps, async (models) => {
      const overrides = await listOverrides(deps.db)
      const meters = await readMeters(deps.db, deps.clock)
      const stored = { priceOverrides: { list: () => overrides }, meters: { list: () => meters } }
      const listed = await listPrices({ ...deps, models, prices, ...stored })
      if (isJson) return print(JSON.stringify(listed))
      const cells = listed.map(({ id, source, date, entry, unpriced_requests: calls }) => [
        ...[id, rateOf(entry, 'input'), rateOf(entry, 'output')],
        ...[source ?? 'none', date ?? '-', calls === 0 ? '-' : String(calls)],
      ])
      print(renderTable(['MODEL', 'INPUT', 'OUTPUT', 'SOURCE', 'DATE', 'UNPRICED CALLS'], cells))
    }),
  )
}

function rateOf(entry: unknown, name: 'input' | 'output'): string {
  const { per_million: rates } = (entry ?? {}) as { per_million?: Readonly<Record<string, string>> }
  return rates?.[name] ?? '-'
}

export function show(id: string, isJson: boolean): Promise<void> {
  if (!/^[^/]+\/./.test(id))
    throw new StartupError('The model must contain its provider, such as far/my-model.')
  return withPrices(async ({ clock }, prices) => {
    const { provider, model } = splitId(id)
    const price = prices.find(provider, model, clock.now())
    const { source = null, date = null, entry = null } = price ?? {}
    const result = {
      provider,
      model,
      priced: price !== undefined,
      source,
      date,
      entry,
      price_id: price?.id ?? null,
    }
    const text =
      price === undefined
        ? `${id} has no price`
        : `${id}: ${price.source}${date === null ? '' : `, ${date}`}\n${JSON.stringify(entry, null, 2)}`
    printResult(isJson, result, text)
  })
}

/** Exits with code 1 if a budget rejects calls to a model. */
export function check(isJson: boolean): Promise<void> {
  return withPrices((deps, prices) =>
    withModels(deps, async (models) => {
      const unpriced = await findUnpriced(deps, prices, models)
      const isOk = unpriced.every(({ refused_by }) => refused_by.length === 0)
      printResult(isJson, { ok: isOk, unpriced }, renderUnpriced(unpriced))
      if (!isOk) process.exitCode = 1
    }),
  )
}

function renderUnpriced(unpriced: readonly UnpricedUse[]): string {
  if (unpriced.length === 0) return 'every model has a price'
  const cells = unpriced.map(({ provider, model, named_by, unpriced_requests: calls, refused_by }) => [
    `${provider}/${model}`,
    named_by.join(' ') || '-',
    calls === 0 ? '-' : String(calls),
    refused_by.join(' ') || '-',
  ])
  return renderTable(['MODEL WITHOUT PRICE', 'NAMED BY', 'UNPRICED CALLS', 'REFUSED BY'], cells)
}

export function importFrom(path: string, isJson: boolean): Promise<void> {
  return withPrices(async (deps, _prices, actor) => {
    const stored = await setOverrides(deps, actor, await readPriceFile(path))
    const ids = stored.map(({ provider, model }) => `${provider}/${model}`)
    printResult(
      isJson,
      { imported: ids },
      `imported the prices of ${ids.length} models; running servers use them within seconds`,
    )
  })
}

type RunDeps = PriceDeps & ReturnType<typeof createDeps>

function withPrices(run: (deps: RunDeps, prices: PriceBook, actor: Actor) => Promise<void>): Promise<void> {
  return withDatabase(async (db, config, clock) => {
    const deps = { ...createDeps(db, clock), config, random: randomBytes }
    await run(deps, await openPriceBook(deps), commandActor())
  })
}
