/**
 * Writes `prices/prices.json` from the prices in `@pydantic/genai-prices`; with `--check`, fails if the file
 * is out of date. Imports only exact model ids, because a rule for prefixes would give new models old prices.
 */
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { ConditionalPrice, MatchLogic, ModelInfo, ModelPrice, Provider } from '@pydantic/genai-prices'
import { waitForUpdate } from '@pydantic/genai-prices'
import { PriceList, SHIPPED_PRICES } from '../src/prices/list.ts'
import type { PriceEntry, PriceRates } from '../src/prices/schema.ts'
import { root } from './web-folder.ts'

/** Date on which the version of the package in package.json was published. */
const PUBLISHED = '2026-09-23'

const rateNames: Readonly<Record<string, keyof PriceRates>> = {
  input_mtok: 'input',
  cache_read_mtok: 'cached_input',
  cache_write_mtok: 'cache_write',
  cache_write_1h_mtok: 'cache_write_1h',
  output_mtok: 'output',
  output_reasoning_mtok: 'reasoning',
  input_audio_mtok: 'input_audio',
  output_audio_mtok: 'output_audio',
  input_image_mtok: 'input_image',
  output_image_mtok: 'output_image',
}

/** Discounts and fees that a chat or embeddings request cannot cause, or that cost at least the other rate. */
const unused = new Set(['cache_audio_read_mtok', 'cache_image_read_mtok', 'storage_searches_kcount'])

const fees: Readonly<Record<string, 'per_web_search' | 'per_call'>> = {
  web_searches_kcount: 'per_web_search',
  requests_kcount: 'per_call',
}

const providers = (await waitForUpdate()) ?? []
const { version } = JSON.parse(
  await readFile(join(root, 'node_modules/@pydantic/genai-prices/package.json'), 'utf8'),
) as { version: string }
const vendors = Object.fromEntries(providers.map((provider) => [provider.id, toVendor(provider)]))
const list = PriceList.parse({ source: '@pydantic/genai-prices', version, date: PUBLISHED, vendors })
const text = render(list)
if (process.argv.includes('--check')) {
  if ((await readFile(SHIPPED_PRICES, 'utf8')) !== text) {
    process.stderr.write('prices/prices.json is out of date; run `npm run prices`\n')
    process.exitCode = 1
  }
} else await writeFile(SHIPPED_PRICES, text)

function toVendor({ api_pattern, models }: Provider) {
  const priced: [string, PriceEntry[] | string][] = []
  const seen = new Set<string>()
  for (const model of models) {
    const entries = toEntries(model)
    let first: string | undefined
    for (const name of listExactIds(model, models)) {
      if (seen.has(name)) continue
      seen.add(name)
      if (entries === undefined) continue
      priced.push([name, first ?? entries])
      first ??= name
    }
  }
  const sorted = Object.fromEntries(priced.toSorted(([one], [other]) => (one < other ? -1 : 1)))
  return {
    url: api_pattern,
    models: sorted,
  }
}

/** Lists the ids that a rule names exactly, and the model's own id if no earlier model matches it. */
function listExactIds(model: ModelInfo, models: readonly ModelInfo[]): string[] {
  const isFirst = models.find(({ match }) => matches(match, model.id)) === model
  return [...new Set([...(isFirst ? [model.id] : []), ...listEqual(model.match)])]
}

function listEqual(match: MatchLogic): string[] {
  if ('equals' in match) return [match.equals]
  return 'or' in match ? match.or.flatMap(listEqual) : []
}

function matches(match: MatchLogic, id: string): boolean {
  const given = id.toLowerCase()
  if ('or' in match) return match.or.some((one) => matches(one, id))
  if ('and' in match) return match.and.every((one) => matches(one, id))
  if ('equals' in match) return given === match.equals.toLowerCase()
  if ('starts_with' in match) return given.startsWith(match.starts_with.toLowerCase())
  if ('ends_with' in match) return given.endsWith(match.ends_with.toLowerCase())
  if ('contains' in match) return given.includes(match.contains.toLowerCase())
  return new RegExp(match.regex).test(id)
}

/** Returns the dated entries; undefined if any price is missing, zero or in a unit that entries lack. */
function toEntries({ prices }: ModelInfo): PriceEntry[] | undefined {
  const given: readonly ConditionalPrice[] = Array.isArray(prices) ? prices : [{ prices }]
  const windows: NonNullable<PriceEntry['windows']> = []
  const dated: PriceEntry[] = []
  for (const { constraint, prices: price } of given) {
    const entry = toEntry(price)
    if (entry === undefined) return undefined
    if (constraint === undefined) dated.push(entry)
    else if ('start_date' in constraint) dated.push({ since: constraint.start_date, ...entry })
    else {
      const [from, to] = [toTime(constraint.start_time), toTime(constraint.end_time)]
      windows.push({ from, to, per_million: entry.per_million })
    }
  }
  return dated.map((entry) => (windows.length === 0 ? entry : { ...entry, windows }))
}

function toTime(text: string): string {
  if (!/^\d{2}:\d{2}:00Z$/.test(text)) throw new Error(`${text} is not a whole minute in UTC`)
  return text.slice(0, 5)
}

function toEntry(price: ModelPrice): PriceEntry | undefined {
  const rates: PriceRates = {}
  const other: { per_call?: string; per_web_search?: string } = {}
  const steps = new Map<number, PriceRates>()
  for (const [unit, value] of Object.entries(price)) {
    const [name, fee] = [rateNames[unit], fees[unit]]
    if (value === undefined || unused.has(unit)) continue
    if (fee !== undefined && typeof value === 'number') {
      if (value > 0) other[fee] = toAmount(value / 1000)
      continue
    }
    if (name === undefined) return undefined
    const { base, tiers } = typeof value === 'number' ? { base: value, tiers: [] } : value
    if (base > 0) rates[name] = toAmount(base)
    for (const { start, price: above } of tiers)
      steps.set(start, { ...steps.get(start), [name]: toAmount(above) })
  }
  const { input, ...others } = rates
  if (input === undefined) return undefined
  const above = [...steps].toSorted(([one], [next]) => one - next)
  return {
    per_million: { input, ...others },
    ...other,
    ...(above.length > 0 && {
      above: above.map(([input_tokens, per_million]) => ({ input_tokens, per_million })),
    }),
  }
}

/** Rounds up to nine decimals. */
function toAmount(value: number): string {
  const nano = Math.ceil(Number((value * 1e9).toFixed(3)))
  return (nano / 1e9).toFixed(9).replace(/\.?0+$/, '')
}

/** Renders one model on each line, so that a price change is one changed line. */
function render({ vendors: all, ...head }: PriceList): string {
  const lines = Object.entries(all).map(([name, { models, ...vendor }]) => {
    const rows = Object.entries(models).map(
      ([model, entries]) => `      ${JSON.stringify(model)}: ${JSON.stringify(entries)}`,
    )
    const opening = JSON.stringify(vendor).slice(0, -1)
    return `    ${JSON.stringify(name)}: ${opening},"models":{\n${rows.join(',\n')}\n    }}`
  })
  return `${JSON.stringify(head).slice(0, -1)},"vendors":{\n${lines.join(',\n')}\n}}\n`
}
