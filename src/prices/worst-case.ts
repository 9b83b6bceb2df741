/** Computes the highest cost of a request before it is sent, for budgets in US dollars. */
import { DIVISOR } from './cost.ts'
import { divideUp } from './money.ts'
import { listReachableRates, nanoOf, type PriceInForce, tierFactor } from './rates.ts'

/** The largest numbers that the provider can count for a request. */
export interface RequestBounds {
  /** Upper bound of all input tokens, including images, audio and files. */
  readonly inputTokens: number
  readonly imageTokens: number
  readonly audioTokens: number
  readonly images: number
  /** Tokens of a predicted output, which providers charge as output even if the answer does not use them. */
  readonly predictionTokens: number
}

/** The fields of a request on which its price depends. */
export interface PricedFields {
  readonly service_tier?: unknown
  readonly web_search_options?: unknown
  readonly modalities?: unknown
  readonly audio?: unknown
}

/** An amount that grows with the output: `divideUp(fixed + tokens * perToken, divisor) + fees`. */
export interface Need {
  readonly fixed: bigint
  readonly perToken: bigint
  readonly divisor: bigint
  readonly fees: bigint
}

export function amountOf({ fixed, perToken, divisor, fees }: Need, outputTokens: number): bigint {
  return divideUp(fixed + BigInt(outputTokens) * perToken, divisor) + fees
}

/**
 * Returns the most output tokens for which the amount is at most `left`; negative if even 0 tokens exceed it.
 * A need without an amount always fits, also if `left` is negative.
 */
export function tokensWithin({ fixed, perToken, divisor, fees }: Need, left: bigint, most: number): number {
  if (fixed === 0n && perToken === 0n && fees === 0n) return most
  const free = (left - fees) * divisor - fixed
  if (free < 0n) return -1
  if (perToken === 0n) return most
  const tokens = free / perToken
  return tokens >= BigInt(most) ? most : Number(tokens)
}

const nothing: Need = { fixed: 0n, perToken: 0n, divisor: 1n, fees: 0n }

/** Returns the name of a field whose cost the price does not limit. */
export function findUnpricedField({ entry }: PriceInForce, fields: PricedFields): string | undefined {
  const { service_tier: tier, web_search_options: search } = fields
  if (search != null && entry.per_web_search === undefined) return 'web_search_options'
  if (tier != null && (typeof tier !== 'string' || tierFactor(entry, tier) === undefined))
    return 'service_tier'
  return undefined
}

/**
 * Returns the most that a request can cost in nano-dollars: at the highest rates of all windows, of the named
 * tier, and of all steps that the input can reach.
 */
export function worstCase(price: PriceInForce, bounds: RequestBounds, fields: PricedFields): Need {
  if (price.source === 'free') return nothing
  const { entry } = price
  const { inputTokens, imageTokens, audioTokens, images, predictionTokens } = bounds
  const media = { hasAudioOutput: wants(fields, 'audio'), hasImageOutput: wants(fields, 'image') }
  const { input, inputImage, inputAudio, output } = highestRates(price, inputTokens, media)
  const { service_tier: tier } = fields
  const factor = tierFactor(entry, typeof tier === 'string' ? tier : undefined) ?? 0n
  const textTokens = BigInt(inputTokens - imageTokens - audioTokens)
  return {
    fixed:
      factor *
      (textTokens * input +
        BigInt(imageTokens) * inputImage +
        BigInt(audioTokens) * inputAudio +
        BigInt(predictionTokens) * output),
    perToken: factor * output,
    divisor: DIVISOR,
    fees:
      (nanoOf(entry.per_call) ?? 0n) +
      (nanoOf(entry.per_image) ?? 0n) * BigInt(images) +
      (fields.web_search_options == null ? 0n : (nanoOf(entry.per_web_search) ?? 0n)),
  }
}

function wants({ modalities, audio }: PricedFields, kind: 'audio' | 'image'): boolean {
  if (kind === 'audio' && audio != null) return true
  return Array.isArray(modalities) && modalities.includes(kind)
}

interface HighestRates {
  readonly input: bigint
  readonly inputImage: bigint
  readonly inputAudio: bigint
  readonly output: bigint
}

function highestRates(
  { entry }: PriceInForce,
  inputTokens: number,
  { hasAudioOutput, hasImageOutput }: { readonly hasAudioOutput: boolean; readonly hasImageOutput: boolean },
): HighestRates {
  const highest = { input: 0n, inputImage: 0n, inputAudio: 0n, output: 0n }
  for (const rates of listReachableRates(entry, inputTokens)) {
    // A provider decides which input tokens it reads from its cache or writes into it.
    const input = largest(rates.input, rates.cachedInput, rates.cacheWrite, rates.cacheWrite1h)
    highest.input = largest(highest.input, input)
    highest.inputImage = largest(highest.inputImage, input, rates.inputImage)
    highest.inputAudio = largest(highest.inputAudio, input, rates.inputAudio)
    highest.output = largest(
      highest.output,
      rates.output ?? 0n,
      rates.reasoning ?? 0n,
      hasAudioOutput ? (rates.outputAudio ?? 0n) : 0n,
      hasImageOutput ? (rates.outputImage ?? 0n) : 0n,
    )
  }
  return highest
}

function largest(...rates: readonly bigint[]): bigint {
  return rates.reduce((most, rate) => (rate > most ? rate : most), 0n)
}
