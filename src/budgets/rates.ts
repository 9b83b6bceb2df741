/** Calculates the amounts that requests to providers can and do cost, in the unit of each budget. */
import type { UsedTokens } from './grants.ts'
import type { TokenNeed } from './token-bounds.ts'

/** The costs of a request in one unit, per token and in addition to its tokens. */
export interface Rates {
  readonly input: bigint
  readonly output: bigint
  readonly extras: bigint
}

export const tokenRates: Rates = { input: 1n, output: 1n, extras: 0n }

/** Returns the amount to reserve for a request with this limit of output tokens for each choice. */
export function reservedAmount(need: TokenNeed, outputTokens: number, rates: Rates): bigint {
  const output = BigInt(need.choices) * BigInt(outputTokens)
  return BigInt(need.inputTokens) * rates.input + output * rates.output + rates.extras
}

export function spentAmount({ prompt, completion }: UsedTokens, rates: Rates): bigint {
  return BigInt(prompt) * rates.input + BigInt(completion) * rates.output + rates.extras
}

/**
 * Returns the most output tokens for each choice that `left` pays for, at most what the request asks for;
 * negative if it does not even pay for the input.
 */
export function affordableTokens(need: TokenNeed, left: bigint, rates: Rates): number {
  const free = left - BigInt(need.inputTokens) * rates.input - rates.extras
  if (free < 0n) return -1
  const perToken = BigInt(need.choices) * rates.output
  if (perToken === 0n) return need.outputTokens
  const tokens = free / perToken
  return tokens >= BigInt(need.outputTokens) ? need.outputTokens : Number(tokens)
}
