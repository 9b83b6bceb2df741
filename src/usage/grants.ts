/** Decides how many tokens a request to a provider may use, and how many it has used. */
import type { Usage } from '../providers/chat-api.ts'
import type { FailedCall } from '../providers/failures.ts'
import { areTokensPlausible, type TokenNeed } from './token-bounds.ts'

/** Shorter answers are useless. OpenAI's Responses API accepts no lower limit either. */
const MIN_OUTPUT_TOKENS = 16
/** Maximum share of the remaining tokens that a large request may use, so that other calls can run. */
const LARGEST_SHARE = 1 / 4
/** Tokens that a provider may still produce after its connection is closed. */
const TOKENS_AFTER_CUT = 256

export interface Grant {
  readonly need: TokenNeed
  /** Maximum number of output tokens for each choice. */
  readonly outputTokens: number
}

/** Tokens to record for a request to a provider. */
export interface UsedTokens {
  readonly prompt: number
  readonly completion: number
  readonly isEstimated: boolean
}

/**
 * Chooses the maximum number of output tokens for a request if `left` tokens remain. Returns undefined if
 * these are too few. A request for at most `freeTokens` output tokens is not limited to a share of `left`.
 */
export function grantTokens(need: TokenNeed, left: number, freeTokens: number): Grant | undefined {
  const free = left - need.inputTokens
  if (free < 0) return undefined
  const share = Math.max(Math.min(free, freeTokens), Math.floor(free * LARGEST_SHARE))
  const outputTokens = Math.min(need.outputTokens, Math.floor(share / need.choices))
  return outputTokens < fewestOutputTokens(need) ? undefined : { need, outputTokens }
}

export function fewestTokens(need: TokenNeed): number {
  return need.inputTokens + fewestOutputTokens(need) * need.choices
}

function fewestOutputTokens({ outputTokens }: TokenNeed): number {
  return Math.min(outputTokens, MIN_OUTPUT_TOKENS)
}

export function reservedTokens({ need, outputTokens }: Grant): number {
  return need.inputTokens + outputTokens * need.choices
}

/**
 * Returns the tokens of an answer with `textBytes` bytes of text. If the provider reports no usage, or too
 * little for the text, each byte counts as a token, up to the grant.
 */
export function countAnswer(
  grant: Grant,
  usage: Usage | undefined,
  textBytes: number,
  isCut: boolean,
): UsedTokens {
  const { prompt_tokens: prompt, completion_tokens: completion } = usage ?? {}
  const isReported = isCount(prompt) && isCount(completion)
  if (
    isReported &&
    areTokensPlausible(prompt, grant.need.textBytes) &&
    areTokensPlausible(completion, textBytes)
  ) {
    return { prompt, completion, isEstimated: false }
  }
  const produced = textBytes + (isCut ? TOKENS_AFTER_CUT : 0)
  const bound = grant.outputTokens * grant.need.choices
  return { prompt: grant.need.inputTokens, completion: Math.min(produced, bound), isEstimated: true }
}

export function countFailure(grant: Grant, failure: FailedCall): UsedTokens {
  if (failure === 'unused') return { prompt: 0, completion: 0, isEstimated: false }
  if (failure === 'cut') return countAnswer(grant, undefined, 0, true)
  return {
    prompt: grant.need.inputTokens,
    completion: grant.outputTokens * grant.need.choices,
    isEstimated: true,
  }
}

/** Validates a token count, because a provider may send any value. */
export function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}
