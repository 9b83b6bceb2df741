/** Finds the price of a model: the configuration, then the price list. */
import { createHash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { findEntries, findVendor, type PriceList } from './list.ts'
import type { PriceInForce, PriceSource } from './rates.ts'
import { findEntryAt, type PriceEntry } from './schema.ts'

export interface PriceBook {
  /** Returns the price of a provider's model at `atMs` (Unix milliseconds); undefined if it is unpriced. */
  find(provider: string, model: string, atMs: number): PriceInForce | undefined
}

/** A provider, as far as its prices depend on it. */
export interface PricedProvider {
  readonly kind: 'mock' | 'gateway' | 'local' | 'local-model'
  readonly url?: string | undefined
  /** A vendor in the price list; found by the URL if it is not set. */
  readonly vendor?: string | undefined
}

interface PriceSources {
  findProvider(name: string): PricedProvider | undefined
  /** Entries of the configuration file by `provider/model`. */
  readonly configured: Readonly<Record<string, readonly PriceEntry[]>>
  /** Called only for a provider that is not free. */
  list(): PriceList
}

/** Limits the number of models, because clients may send any model id. */
const MOST_MODELS = 2_000

/** The price of models that cost nothing. */
const freeEntry: PriceEntry = { per_million: { input: '0', output: '0' } }

type Candidate = readonly [source: PriceSource, entries: readonly PriceEntry[]]

interface Remembered {
  readonly provider: PricedProvider | undefined
  readonly candidates: readonly Candidate[]
}

/** Creates a price book that remembers prices until the settings of the provider change. */
export function createPriceBook(sources: PriceSources): PriceBook {
  const remembered = new LRUCache<string, Remembered>({ max: MOST_MODELS })
  return {
    find(provider, model, atMs) {
      const key = `${provider}/${model}`
      const found = sources.findProvider(provider)
      let known = remembered.get(key)
      if (known === undefined || known.provider !== found) {
        known = { provider: found, candidates: listCandidates(sources, provider, model) }
        remembered.set(key, known)
      }
      for (const [source, entries] of known.candidates) {
        const entry = findEntryAt(entries, atMs)
        if (entry !== undefined) return toPrice(entry, source)
      }
      return undefined
    },
  }
}

function listCandidates(sources: PriceSources, name: string, model: string): Candidate[] {
  const candidates: Candidate[] = []
  const key = `${name}/${model}`
  const configured = Object.hasOwn(sources.configured, key) ? sources.configured[key] : undefined
  if (configured !== undefined) candidates.push(['config', configured])
  const provider = sources.findProvider(name)
  if (provider === undefined) return candidates
  if (provider.vendor !== undefined || provider.kind === 'gateway') {
    const list = sources.list()
    const vendor = provider.vendor ?? findVendor(list, provider.url ?? '')
    const entries = vendor === undefined ? undefined : findEntries(list, vendor, model)
    if (entries !== undefined) candidates.push(['shipped', entries])
  }
  if (provider.kind !== 'gateway') candidates.push(['free', [freeEntry]])
  return candidates
}

const prices = new WeakMap<PriceEntry, PriceInForce>()

function toPrice(entry: PriceEntry, source: PriceSource): PriceInForce {
  let price = prices.get(entry)
  if (price === undefined) {
    price = { id: digestOf(entry), source, entry }
    prices.set(entry, price)
  }
  return price
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
