/** Counts what a request to a provider has used. */
import { amountOf, type Need } from '../prices/worst-case.ts'
import type { Usage } from '../providers/chat-api.ts'
import type { FailedCall } from '../providers/failures.ts'
import { areTokensPlausible, type TokenNeed } from './bounds/tokens.ts'

/** Tokens that a provider may still produce after its connection is closed. */
const TOKENS_AFTER_CUT = 256

export interface Grant {
  readonly need: TokenNeed
  /** Maximum number of output tokens for each choice. */
  readonly outputTokens: number
  /** The highest cost; undefined without a price. Grows with the output tokens of all choices. */
  readonly cost?: Need | undefined
}

/** Tokens to record for a request to a provider. */
export interface UsedTokens {
  readonly prompt: number
  readonly completion: number
  readonly isEstimated: boolean
}

/** The amounts to book in budgets with each unit; money in nano-dollars. */
export interface Spent {
  readonly tokens: bigint
  readonly usd: bigint
}

/**
 * Returns the amounts for a request that has cost `cost`. Estimated tokens count at the rates of the
 * reservation, because the provider may charge the highest ones.
 */
export function toSpent(
  { prompt, completion, isEstimated }: UsedTokens,
  cost: bigint,
  grant: Grant | undefined,
): Spent {
  const most = isEstimated && grant?.cost !== undefined ? amountOf(grant.cost, completion) : cost
  return { tokens: BigInt(prompt) + BigInt(completion), usd: most }
}

export function reservedTokens({ need, outputTokens }: Grant): number {
  return need.inputTokens + need.predictionTokens + outputTokens * need.choices
}

/** The produced bytes of an answer. */
export interface AnswerBytes {
  readonly textBytes: number
  /** Bytes of encoded audio, which do not show the number of its tokens. */
  readonly audioBytes: number
}

/**
 * The end of an answer: `cut` if the client, the server or a time limit ended it, and `lost` if the connection
 * to the provider ended first, so that the provider may charge for more than it has sent.
 */
export type AnswerEnd = 'whole' | 'cut' | 'lost'

/**
 * Returns the tokens of an answer. If the provider reports no usage, or too little for the text, each byte
 * counts as a token, up to the grant. The usage of an incomplete answer is not complete either.
 */
export function countAnswer(
  grant: Grant,
  usage: Usage | undefined,
  { textBytes, audioBytes }: AnswerBytes,
  end: AnswerEnd,
): UsedTokens {
  const { prompt_tokens: prompt, completion_tokens: completion } = usage ?? {}
  const isReported = isCount(prompt) && isCount(completion)
  if (
    end === 'whole' &&
    isReported &&
    areTokensPlausible(prompt, grant.need.textBytes) &&
    areTokensPlausible(completion, textBytes)
  ) {
    return { prompt, completion, isEstimated: false }
  }
  const most = mostOutput(grant)
  const produced = textBytes + audioBytes + (end === 'cut' ? TOKENS_AFTER_CUT : 0)
  const output = end === 'lost' ? most : Math.min(produced, most)
  return { prompt: grant.need.inputTokens, completion: output, isEstimated: true }
}

const noBytes: AnswerBytes = { textBytes: 0, audioBytes: 0 }

export function countFailure(grant: Grant, failure: FailedCall): UsedTokens {
  if (failure === 'unused') return { prompt: 0, completion: 0, isEstimated: false }
  return countAnswer(grant, undefined, noBytes, failure === 'cut' ? 'cut' : 'lost')
}

function mostOutput({ need, outputTokens }: Grant): number {
  return outputTokens * need.choices
}

/** Validates a token count, because a provider may send any value. */
export function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}
