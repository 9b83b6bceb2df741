/** Finds the rates of a price for one call, and the highest rates that a call can cost. */
import { divideUp, NANO_PER_USD, parseAmount } from './money.ts'
import type { PriceEntry, PriceRates } from './schema.ts'

/** A price that applies at some time. */
export interface PriceInForce {
  /** SHA-256 of the entry. */
  readonly id: string
  readonly source: PriceSource
  readonly entry: PriceEntry
}

export type PriceSource = 'override' | 'config' | 'shipped' | 'free'

/** Nano-dollars for each million tokens. */
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

export interface ReservationNeed {
  /** The client's `service_tier`. */
  readonly tier?: string | null | undefined
  /** Upper bound of the input tokens. */
  readonly inputTokens: number
  /** Whether the input contains audio or images, which have their own rates. */
  readonly hasAudio?: boolean
  readonly hasImages?: boolean
  /** Whether the answer may contain audio or images. */
  readonly mayAnswerAudio?: boolean
  readonly mayAnswerImages?: boolean
}

/** The highest rates that a request can cost, in nano-dollars. */
export interface ReserveRates {
  readonly inputPerMillion: bigint
  /** Undefined for a price that is only for embeddings. */
  readonly outputPerMillion: bigint | undefined
  readonly perCall: bigint
  /** 0 if images cost only their tokens. */
  readonly perImage: bigint
  /** Undefined if web searches have no price. */
  readonly perWebSearch: bigint | undefined
}

/**
 * Returns the highest rates over all windows, and over the steps that `inputTokens` can reach. Returns
 * undefined if the price has no factor for the tier.
 */
export function reserveRates({ entry }: PriceInForce, need: ReservationNeed): ReserveRates | undefined {
  const factor = tierFactor(entry, need.tier)
  if (factor === undefined) return undefined
  const reachable = listReachable(entry, need.inputTokens)
  const scale = (rate: bigint) => divideUp(rate * factor, TIER_UNIT)
  const outputs = reachable.flatMap((rates) => listOutputRates(rates, need))
  return {
    inputPerMillion: scale(highest(reachable.flatMap((rates) => listInputRates(rates, need)))),
    outputPerMillion: outputs.length === 0 ? undefined : scale(highest(outputs)),
    perCall: nanoOf(entry.per_call) ?? 0n,
    perImage: nanoOf(entry.per_image) ?? 0n,
    perWebSearch: nanoOf(entry.per_web_search),
  }
}

function listReachable(entry: PriceEntry, inputTokens: number): Rates[] {
  const reachable: Rates[] = []
  for (let window = -1; window < (entry.windows?.length ?? 0); window++)
    for (let step = -1; step <= findStep(entry, inputTokens); step++)
      reachable.push(ratesOf(entry, window, step))
  return reachable
}

function listInputRates(rates: Rates, { hasAudio, hasImages }: ReservationNeed): bigint[] {
  return [
    ...[rates.input, rates.cachedInput, rates.cacheWrite, rates.cacheWrite1h],
    ...(hasAudio ? [rates.inputAudio] : []),
    ...(hasImages ? [rates.inputImage] : []),
  ]
}

function listOutputRates(rates: Rates, { mayAnswerAudio, mayAnswerImages }: ReservationNeed): bigint[] {
  const { output, reasoning, outputAudio, outputImage } = rates
  const listed = [output, reasoning, mayAnswerAudio && outputAudio, mayAnswerImages && outputImage]
  return listed.filter((rate) => typeof rate === 'bigint')
}

function highest(rates: readonly bigint[]): bigint {
  return rates.reduce((most, rate) => (rate > most ? rate : most), 0n)
}
