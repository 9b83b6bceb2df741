/** Finds the rates of a price for one call. */
import { NANO_PER_USD, parseAmount } from './money.ts'
import type { PriceEntry, PriceRates } from './schema.ts'

/** A price that applies at some time. */
export interface PriceInForce {
  /** SHA-256 of the entry. */
  readonly id: string
  readonly source: PriceSource
  readonly entry: PriceEntry
}

export type PriceSource = 'override' | 'config' | 'shipped' | 'free'

/** Nano-dollars per million tokens. */
export interface Rates {
  readonly input: bigint
  readonly cachedInput: bigint
  readonly cacheWrite: bigint
  readonly cacheWrite1h: bigint
  /** Undefined for a price that is only for embeddings. */
  readonly output: bigint | undefined
  readonly reasoning: bigint | undefined
  readonly inputAudio: bigint
  readonly outputAudio: bigint | undefined
  readonly inputImage: bigint
  readonly outputImage: bigint | undefined
}

const DAY_MS = 86_400_000
/** The factor 1 of a tier, in the unit of `tierFactor`. */
export const TIER_UNIT = NANO_PER_USD

/** Rates by window and step, because most calls have the same ones. */
const known = new WeakMap<PriceEntry, Map<number, Rates>>()

/** Returns the rates of a call with `inputTokens` input tokens that is admitted at `atMs`. */
export function ratesAt(entry: PriceEntry, atMs: number, inputTokens: number): Rates {
  return ratesOf(entry, findWindow(entry, atMs), findStep(entry, inputTokens))
}

/** Returns the rates of all windows, for each step that a request with up to `inputTokens` can reach. */
export function listReachableRates(entry: PriceEntry, inputTokens: number): Rates[] {
  const windows = [-1, ...(entry.windows ?? []).keys()]
  const lastStep = findStep(entry, inputTokens)
  const steps = Array.from({ length: lastStep + 2 }, (_, index) => index - 1)
  return windows.flatMap((window) => steps.map((step) => ratesOf(entry, window, step)))
}

function findWindow({ windows }: PriceEntry, atMs: number): number {
  if (windows === undefined) return -1
  const at = new Date(atMs % DAY_MS).toISOString().slice(11, 16)
  return windows.findLastIndex(({ from, to }) => (from < to ? from <= at && at < to : from <= at || at < to))
}

function findStep({ above }: PriceEntry, inputTokens: number): number {
  return above?.findLastIndex((step) => inputTokens > step.input_tokens) ?? -1
}

function ratesOf(entry: PriceEntry, window: number, step: number): Rates {
  let byPlace = known.get(entry)
  if (byPlace === undefined) {
    byPlace = new Map()
    known.set(entry, byPlace)
  }
  const place = window * 16 + step
  let rates = byPlace.get(place)
  if (rates === undefined) {
    const { per_million: base, windows, above } = entry
    rates = toRates({ ...base, ...windows?.[window]?.per_million, ...above?.[step]?.per_million })
    byPlace.set(place, rates)
  }
  return rates
}

function toRates(given: PriceRates): Rates {
  const input = nanoOf(given.input) ?? 0n
  const output = nanoOf(given.output)
  const cacheWrite = nanoOf(given.cache_write) ?? input
  return {
    input,
    cachedInput: nanoOf(given.cached_input) ?? input,
    cacheWrite,
    cacheWrite1h: nanoOf(given.cache_write_1h) ?? cacheWrite,
    output,
    reasoning: nanoOf(given.reasoning) ?? output,
    inputAudio: nanoOf(given.input_audio) ?? input,
    outputAudio: nanoOf(given.output_audio) ?? output,
    inputImage: nanoOf(given.input_image) ?? input,
    outputImage: nanoOf(given.output_image) ?? output,
  }
}

export function nanoOf(amount: string | undefined): bigint | undefined {
  return amount === undefined ? undefined : parseAmount(amount)
}

/**
 * Returns the factor for a tier, in units of `TIER_UNIT`. Returns undefined for a tier without a factor. The
 * tiers `auto`, `default` and `standard` always have the factor 1 if the price does not set another.
 */
export function tierFactor({ tiers }: PriceEntry, tier: string | null | undefined): bigint | undefined {
  const name = tier ?? 'default'
  const factor = tiers !== undefined && Object.hasOwn(tiers, name) ? nanoOf(tiers[name]) : undefined
  return factor ?? (/^(auto|default|standard)$/.test(name) ? TIER_UNIT : undefined)
}
