/** Computes the exact cost of the usage that a provider reports for one request. */
import { isJsonObject } from '../lib/formats/json.ts'
import { divideUp } from './money.ts'
import { nanoOf, type PriceInForce, ratesAt, TIER_UNIT, tierFactor } from './rates.ts'
import type { PriceEntry } from './schema.ts'

/** Tokens by kind. The counts of kinds are included in `prompt` or `completion`. */
export interface TokenCounts {
  readonly prompt: number
  readonly completion: number
  readonly cached: number
  readonly cacheWrite: number
  /** Tokens written to a cache for an hour; included in `cacheWrite`. */
  readonly cacheWrite1h: number
  readonly reasoning: number
  readonly audioInput: number
  readonly audioOutput: number
  readonly imageInput: number
  readonly imageOutput: number
}

export const noTokens: TokenCounts = {
  ...{ prompt: 0, completion: 0, cached: 0, cacheWrite: 0, cacheWrite1h: 0, reasoning: 0 },
  ...{ audioInput: 0, audioOutput: 0, imageInput: 0, imageOutput: 0 },
}

/**
 * Reads the tokens of a usage object. Returns undefined if the totals are not counts. A detail that is not a
 * count is 0, because providers may send any value.
 */
export function readTokens(usage: unknown): TokenCounts | undefined {
  if (!isJsonObject(usage)) return undefined
  const prompt = toCount(usage.prompt_tokens)
  // Embeddings have no completion.
  const completion = usage.completion_tokens === undefined ? 0 : toCount(usage.completion_tokens)
  if (prompt === undefined || completion === undefined) return undefined
  const input = isJsonObject(usage.prompt_tokens_details) ? usage.prompt_tokens_details : {}
  const output = isJsonObject(usage.completion_tokens_details) ? usage.completion_tokens_details : {}
  const written = isJsonObject(usage.cache_creation) ? usage.cache_creation : {}
  return {
    prompt,
    completion,
    cached: firstCount(
      input.cached_tokens,
      usage.cached_tokens,
      usage.prompt_cache_hit_tokens,
      usage.cache_read_input_tokens,
    ),
    cacheWrite: firstCount(
      input.cache_write_tokens,
      input.cache_creation_tokens,
      usage.cache_creation_input_tokens,
    ),
    cacheWrite1h: firstCount(written.ephemeral_1h_input_tokens),
    reasoning: firstCount(output.reasoning_tokens),
    audioInput: firstCount(input.audio_tokens),
    audioOutput: firstCount(output.audio_tokens),
    imageInput: firstCount(input.image_tokens),
    imageOutput: firstCount(output.image_tokens),
  }
}

function toCount(value: unknown): number | undefined {
  return Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : undefined
}

function firstCount(...values: readonly unknown[]): number {
  for (const value of values) {
    const count = toCount(value)
    if (count !== undefined) return count
  }
  return 0
}

/** Nano-dollars; the parts add up to the total. */
export interface Cost {
  readonly total: bigint
  readonly input: bigint
  readonly output: bigint
  /** Fees for the call, images and web searches. */
  readonly other: bigint
}

interface CostContext {
  /** When the call was admitted, in Unix milliseconds. */
  readonly atMs: number
  /** The tier that the provider reports, or that the client named. */
  readonly tier?: string | null | undefined
  readonly images?: number
  readonly webSearches?: number
}

/** The divisor of token costs: `TIER_UNIT` per million tokens. */
export const DIVISOR = 1_000_000n * TIER_UNIT

/**
 * Returns the cost of one request to a provider, rounded up once. Returns undefined if the price lacks a rate
 * that the usage needs. A tier without a factor costs the price's highest factor.
 */
export function costOf(
  { entry }: PriceInForce,
  tokens: TokenCounts,
  { atMs, tier, images = 0, webSearches = 0 }: CostContext,
): Cost | undefined {
  const rates = ratesAt(entry, atMs, tokens.prompt)
  const perWebSearch = nanoOf(entry.per_web_search)
  if (rates.output === undefined && tokens.completion > 0) return undefined
  if (perWebSearch === undefined && webSearches > 0) return undefined
  const factor = tierFactor(entry, tier) ?? highestFactor(entry)
  const input = factor * sumInput(rates, tokens)
  const output = rates.output === undefined ? 0n : factor * sumOutput(rates, rates.output, tokens)
  const other =
    (nanoOf(entry.per_call) ?? 0n) +
    (nanoOf(entry.per_image) ?? 0n) * BigInt(images) +
    (perWebSearch ?? 0n) * BigInt(webSearches)
  const ofTokens = divideUp(input + output, DIVISOR)
  const ofOutput = input === 0n ? ofTokens : output / DIVISOR
  return { total: ofTokens + other, input: ofTokens - ofOutput, output: ofOutput, other }
}

type CallRates = ReturnType<typeof ratesAt>

/** Counts each token once. Media come first, because their rates are usually the highest. */
function sumInput(rates: CallRates, tokens: TokenCounts): bigint {
  let left = tokens.prompt
  const take = (count: number) => {
    const taken = Math.min(count, left)
    left -= taken
    return BigInt(taken)
  }
  const sum =
    take(tokens.audioInput) * rates.inputAudio +
    take(tokens.imageInput) * rates.inputImage +
    take(tokens.cacheWrite1h) * rates.cacheWrite1h +
    take(tokens.cacheWrite - Math.min(tokens.cacheWrite1h, tokens.cacheWrite)) * rates.cacheWrite +
    take(tokens.cached) * rates.cachedInput
  return sum + BigInt(left) * rates.input
}

function sumOutput(rates: CallRates, rate: bigint, tokens: TokenCounts): bigint {
  let left = tokens.completion
  const take = (count: number) => {
    const taken = Math.min(count, left)
    left -= taken
    return BigInt(taken)
  }
  const sum =
    take(tokens.audioOutput) * (rates.outputAudio ?? rate) +
    take(tokens.imageOutput) * (rates.outputImage ?? rate) +
    take(tokens.reasoning) * (rates.reasoning ?? rate)
  return sum + BigInt(left) * rate
}

function highestFactor({ tiers = {} }: PriceEntry): bigint {
  const factors = Object.values(tiers).map((factor) => nanoOf(factor) ?? 0n)
  return factors.reduce((most, factor) => (factor > most ? factor : most), TIER_UNIT)
}
