/** Computes what a request to a provider needs of budgets in tokens and in US dollars. */
import type { PriceInForce } from '../../prices/rates.ts'
import { findUnpricedField, type Need, type PricedFields, worstCase } from '../../prices/worst-case.ts'
import type { Metering } from '../../providers/provider.ts'
import type { Asked, Unpriced } from '../reservations/decide.ts'
import { boundTokens, type Promptlike, type TokenNeed } from './tokens.ts'

/** Reasoning models spend their first tokens on thoughts, so that short answers would be empty. */
const FEWEST_REASONING_TOKENS = 1_024

/** Bytes that a request gets for each token that it asks for, if budgets measure answers in bytes. */
const BYTES_FOR_TOKEN = 4

/** Fields that let a provider use other models, or add to the input or to the number of answers. */
const unboundedFields = ['models', 'plugins', 'search_parameters', 'best_of'] as const

interface BoundRequest {
  /** With the metering `bytes`, output tokens are bytes. */
  readonly asked: Asked
  readonly need: TokenNeed
  /** The highest cost, which grows with the output tokens of all choices; undefined without a price. */
  readonly cost: Need | undefined
}

/** The model to which a request goes. */
export interface CalledModel {
  /** Undefined without a price. */
  readonly price: PriceInForce | undefined
  readonly metering: Metering
}

export async function boundRequest(
  request: Promptlike & PricedFields,
  { price, metering }: CalledModel,
  defaults: { readonly outputTokens: number; readonly fewestTokens: number },
): Promise<BoundRequest> {
  const need = await boundTokens(request, defaults.outputTokens, boundsOf(price))
  const cost = findCost(request, price, need)
  const choices = BigInt(need.choices)
  const fixed = BigInt(need.inputTokens + need.predictionTokens)
  const tokens: Need = { fixed, perToken: choices, divisor: 1n, fees: 0n }
  const usd = 'code' in cost ? cost : { ...cost, perToken: cost.perToken * choices }
  const fewestTokens = isReasoning(request) ? FEWEST_REASONING_TOKENS : defaults.fewestTokens
  const outputTokens = metering === 'bytes' ? need.outputTokens * BYTES_FOR_TOKEN : need.outputTokens
  const asked = { outputTokens, fewestTokens, needs: { tokens, usd } }
  return { asked, need, cost: 'code' in cost ? undefined : cost }
}

/** A price for each image covers an image without a bound. */
function boundsOf(price: PriceInForce | undefined) {
  const { per_image: perImage, bounds } = price?.entry ?? {}
  return perImage === undefined ? bounds : { image_tokens: 0, ...bounds }
}

function findCost(
  request: Promptlike & PricedFields,
  price: PriceInForce | undefined,
  need: TokenNeed,
): Need | Unpriced {
  const isChat = 'messages' in request
  if (price === undefined || (isChat && price.entry.per_million.output === undefined))
    return { code: 'model_not_priced', param: 'model' }
  const unbounded = need.unbounded ?? findUnpricedField(price, request) ?? findUnboundedField(request)
  if (unbounded !== undefined && price.source !== 'free')
    return { code: 'content_not_priced', param: unbounded }
  return worstCase(price, need, request)
}

function findUnboundedField(request: object): string | undefined {
  return unboundedFields.find((name) => (request as Readonly<Record<string, unknown>>)[name] != null)
}

function isReasoning(request: object): boolean {
  const { reasoning_effort: effort } = request as { readonly reasoning_effort?: unknown }
  return typeof effort === 'string' && effort !== 'none' && effort !== 'minimal'
}
