/** Counts the tokens that a request to a provider has used. */
import type { Usage } from '../providers/chat-api.ts'
import type { FailedCall } from '../providers/failures.ts'
import { areTokensPlausible, type TokenNeed } from './token-bounds.ts'

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
