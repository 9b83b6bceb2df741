/** Finds the price of a model: an override, the configuration, then the price list. */
import { createHash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { findEntries, findVendor, type PriceList } from './list.ts'
import type { PriceInForce, PriceSource } from './rates.ts'
import { findEntryAt, type PriceEntry } from './schema.ts'

export interface PriceBook {
  /** Returns the price of a provider's model at `atMs` (Unix milliseconds); undefined if it is unpriced. */
  find(provider: string, model: string, atMs: number): FoundPrice | undefined
}

interface FoundPrice extends PriceInForce {
  /**
   * The day (UTC) on which the price was set or confirmed: that of the price list, of the override, or of the
   * entry's `since`. Null if the configuration does not state it, and for free models.
   */
  readonly date: string | null
}

/** A provider, as far as its prices depend on it. */
export interface PricedProvider {
  readonly kind: 'mock' | 'gateway' | 'local' | 'local-model'
  readonly url?: string | undefined
  /** A vendor in the price list; found by the URL if it is not set. */
  readonly vendor?: string | undefined
}

/** The prices that administrators have set for one model. */
export interface PriceOverride {
  readonly entries: readonly PriceEntry[]
  /** The day (UTC) of the last change. */
  readonly date: string
}

interface PriceSources {
  findProvider(name: string): PricedProvider | undefined
  /** Finds an override by `provider/model`; returns the same object until the override changes. */
  findOverride(key: string): PriceOverride | undefined
  /** Entries of the configuration file by `provider/model`. */
  readonly configured: Readonly<Record<string, readonly PriceEntry[]>>
  /** Called only for a provider that is not free. */
  list(): PriceList
}

/** Limits the number of models, because clients may send any model id. */
const MOST_MODELS = 2_000

/** The price of models that cost nothing. */
const freeEntry: PriceEntry = { per_million: { input: '0', output: '0' } }

interface Candidate {
  readonly source: PriceSource
  readonly entries: readonly PriceEntry[]
  /** The day of the source; null if only the entries have dates. */
  readonly date: string | null
}

interface Remembered {
  readonly provider: PricedProvider | undefined
  readonly override: PriceOverride | undefined
  readonly candidates: readonly Candidate[]
}

/** Creates a price book that remembers prices until the override or the settings of the provider change. */
export function createPriceBook(sources: PriceSources): PriceBook {
  const remembered = new LRUCache<string, Remembered>({ max: MOST_MODELS })
  return {
    find(providerName, model, atMs) {
      const key = `${providerName}/${model}`
      const provider = sources.findProvider(providerName)
      const override = sources.findOverride(key)
      let known = remembered.get(key)
      if (known === undefined || known.provider !== provider || known.override !== override) {
        const candidates = listCandidates(sources, { provider, override, key, model })
        known = { provider, override, candidates }
        remembered.set(key, known)
      }
      for (const candidate of known.candidates) {
        const entry = findEntryAt(candidate.entries, atMs)
        if (entry !== undefined) return toPrice(entry, candidate)
      }
      return undefined
    },
  }
}

interface Wanted extends Pick<Remembered, 'provider' | 'override'> {
  readonly key: string
  readonly model: string
}

function listCandidates(sources: PriceSources, { provider, override, key, model }: Wanted): Candidate[] {
  const candidates: Candidate[] = []
  if (override !== undefined) candidates.push({ source: 'override', ...override })
  const configured = Object.hasOwn(sources.configured, key) ? sources.configured[key] : undefined
  if (configured !== undefined) candidates.push({ source: 'config', entries: configured, date: null })
  if (provider === undefined) return candidates
  if (provider.vendor !== undefined || provider.kind === 'gateway') {
    const list = sources.list()
    const vendor = provider.vendor ?? findVendor(list, provider.url ?? '')
    const entries = vendor === undefined ? undefined : findEntries(list, vendor, model)
    if (entries !== undefined) candidates.push({ source: 'shipped', entries, date: list.date })
  }
  if (provider.kind !== 'gateway') candidates.push({ source: 'free', entries: [freeEntry], date: null })
  return candidates
}

const prices = new WeakMap<PriceEntry, FoundPrice>()

function toPrice(entry: PriceEntry, { source, date }: Candidate): FoundPrice {
  let price = prices.get(entry)
  if (price === undefined) {
    price = { id: digestOf(entry), source, entry, date: latest(date, entry.since) }
    prices.set(entry, price)
  }
  return price
}

/** Returns the later of two days; `since` may also contain a time. */
function latest(date: string | null, since: string | undefined): string | null {
  const day = since?.slice(0, 10) ?? null
  if (day === null || date === null) return date ?? day
  return day > date ? day : date
}

/** Renders an entry with sorted keys, so that equal entries have equal text. */
export function renderEntry(entry: PriceEntry): string {
  return JSON.stringify(entry, (_key, value) =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).toSorted(([one], [other]) => (one < other ? -1 : 1)))
      : value,
  )
}

function digestOf(entry: PriceEntry): string {
  return createHash('sha256').update(renderEntry(entry)).digest('hex')
}
