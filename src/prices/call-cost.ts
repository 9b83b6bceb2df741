/** Adds up the costs and the kinds of tokens of a call, which can make several requests to providers. */
import { isJsonObject, listObjects } from '../lib/formats/json.ts'
import { costOf, noTokens, readTokens, type TokenCounts } from './cost.ts'
import type { PriceBook } from './lookup.ts'
import { NANO_PER_USD } from './money.ts'
import type { PriceInForce } from './rates.ts'

/** The largest cost that the database stores exactly, in nano-dollars. */
const MOST_NANO = BigInt(Number.MAX_SAFE_INTEGER)

/** Sums of all requests of a call. */
interface CallTokens {
  readonly cached: number
  readonly cacheWrite: number
  readonly reasoning: number
  readonly audio: number
  readonly image: number
}

export class CallCost {
  /** Nano-dollars; only of the requests that have a price. */
  total = 0n
  input = 0n
  output = 0n
  other = 0n
  /** Number of answers. */
  rounds = 0
  /** The price of the last request; undefined if it has none. */
  price: PriceInForce | undefined
  /** Whether a request that used tokens has no price. */
  isUnpriced = false
  tokens: CallTokens = { cached: 0, cacheWrite: 0, reasoning: 0, audio: 0, image: 0 }
  private readonly prices: PriceBook
  private atMs = 0
  private request: object = {}

  constructor(prices: PriceBook) {
    this.prices = prices
  }

  /** Whether all requests of the call have a price, and at least one is not free. */
  get isPriced(): boolean {
    return !this.isUnpriced && this.price !== undefined && this.price.source !== 'free'
  }

  /** Finds the price of the next request, which is admitted at `atMs`. */
  begin(provider: string, model: string, request: object, atMs: number): void {
    this.price = this.prices.find(provider, model, atMs)
    this.atMs = atMs
    this.request = request
  }

  /**
   * Adds the tokens of a request, and returns its cost; 0 without a price. `usage` is the provider's, if the
   * server trusts its totals.
   */
  add({ prompt, completion }: Pick<TokenCounts, 'prompt' | 'completion'>, usage: unknown): bigint {
    const reported = usage === undefined ? undefined : readTokens(usage)
    const tokens = { ...(reported ?? noTokens), prompt, completion }
    this.addTokens(tokens)
    const { price } = this
    const hasTokens = prompt > 0 || completion > 0
    // Providers charge fees for an answer even if they report no tokens.
    if (price?.source === 'free' || (!hasTokens && reported === undefined)) return 0n
    const cost = price && costOf(price, tokens, { atMs: this.atMs, ...this.readFees(price, usage) })
    if (cost === undefined) {
      this.isUnpriced ||= hasTokens
      return 0n
    }
    if (this.total + cost.total <= MOST_NANO) {
      this.total += cost.total
      this.input += cost.input
      this.output += cost.output
      this.other += cost.other
    }
    return cost.total
  }

  private addTokens({ cached, cacheWrite, reasoning, ...media }: TokenCounts): void {
    if (cached + cacheWrite + reasoning + media.audioInput + media.audioOutput === 0)
      if (media.imageInput + media.imageOutput === 0) return
    const sum = this.tokens
    this.tokens = {
      cached: sum.cached + cached,
      cacheWrite: sum.cacheWrite + cacheWrite,
      reasoning: sum.reasoning + reasoning,
      audio: sum.audio + media.audioInput + media.audioOutput,
      image: sum.image + media.imageInput + media.imageOutput,
    }
  }

  private readFees({ entry }: PriceInForce, usage: unknown) {
    const { service_tier, web_search_options } = this.request as Record<string, unknown>
    return {
      tier: typeof service_tier === 'string' ? service_tier : undefined,
      images: entry.per_image === undefined ? 0 : countImages(this.request),
      webSearches: web_search_options == null ? 0 : countSearches(usage),
    }
  }
}

/** Returns the number of web searches that the provider reports; 1 if it does not report any number. */
function countSearches(usage: unknown): number {
  const reported = isJsonObject(usage) ? usage.num_search_queries : undefined
  return Number.isSafeInteger(reported) && (reported as number) >= 0 ? (reported as number) : 1
}

function countImages(request: { messages?: unknown }): number {
  const parts = listObjects(request.messages).flatMap(({ content }) => listObjects(content))
  return parts.filter(({ type }) => type === 'image_url').length
}

/** Converts nano-dollars for JSON numbers, metrics and traces. */
export function toUsd(nano: bigint): number {
  return Number(nano) / Number(NANO_PER_USD)
}

/** Returns a usage object with the cost in US dollars. */
export function addCost<U extends object>(
  usage: U,
  { total, input, output, other }: CallCost,
): U & ShownCost {
  return {
    ...usage,
    cost: toUsd(total),
    cost_details: { input: toUsd(input), output: toUsd(output), other: toUsd(other) },
  }
}

/** Costs in US dollars, as in the usage of a response. */
interface ShownCost {
  readonly cost: number
  readonly cost_details: { readonly input: number; readonly output: number; readonly other: number }
}

/** Returns the fields that `addCost` adds, if a usage object has them. */
export function pickCost(usage: Partial<ShownCost> | object): Partial<ShownCost> {
  const { cost, cost_details } = usage as Partial<ShownCost>
  // A provider's own details have other fields.
  const isOwn = typeof cost === 'number' && typeof cost_details?.other === 'number'
  return isOwn ? { cost, cost_details } : {}
}

/** Matches the fields in which providers such as OpenRouter report costs. */
const costField = /cost/i

/** Returns a usage object without the costs that a provider reports; undefined if it has none. */
export function hideCost<U extends object>(usage: U): U | undefined {
  if (!Object.keys(usage).some((name) => costField.test(name))) return undefined
  return Object.fromEntries(Object.entries(usage).filter(([name]) => !costField.test(name))) as U
}
