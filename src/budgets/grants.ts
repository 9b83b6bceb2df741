/** Counts what a request to a provider has used. */
import { amountOf, type Need } from '../prices/worst-case.ts'
import type { Usage } from '../providers/chat-api.ts'
import type { FailedCall } from '../providers/failures.ts'
import type { Metering } from '../providers/provider.ts'
import { areTokensPlausible, BYTES_PER_TOKEN, type TokenNeed } from './bounds/tokens.ts'
import type { Violation } from './events/outbox.ts'

/** Tokens that a provider may still produce after its connection is closed. */
const TOKENS_AFTER_CUT = 256

export interface Grant {
  readonly need: TokenNeed
  /** Maximum number of output tokens, or of bytes with the metering `bytes`, for each choice. */
  readonly outputTokens: number
  readonly metering: Metering
  /** Whether a budget with the mode `enforce` applies. */
  readonly isEnforced: boolean
  /** The highest cost; undefined without a price. Grows with the output tokens of all choices. */
  readonly cost?: Need | undefined
}

/** Bytes of an answer that exceed 32 bytes for each granted token without a violation. */
const SPARE_BYTES = 1_024
/** Encoded bytes of audio or images that count like one byte of text if the provider reports its usage. */
const MEDIA_BYTES_PER_BYTE = 256

/** Limits one answer of a model. */
export interface AnswerLimit {
  readonly metering: Metering
  /** The token limit to send to the provider, for each choice. */
  readonly tokens: number
  /** Number of bytes at which the answer of all choices is ended. */
  readonly endsAtBytes: number
  /** Encoded bytes of audio or images that count like one byte of text. */
  readonly mediaBytesPerByte: number
}

/** A token covers at least one byte, so that a limit in bytes is also a limit in tokens. */
export function limitAnswer(grant: Grant): AnswerLimit {
  const { need, outputTokens, metering, isEnforced } = grant
  if (metering === 'bytes') {
    const tokens = Math.min(outputTokens, need.outputTokens)
    return { metering, tokens, endsAtBytes: mostOutput(grant), mediaBytesPerByte: 1 }
  }
  const endsAtBytes = isEnforced ? mostBytes(grant) + 1 : Infinity
  return { metering, tokens: outputTokens, endsAtBytes, mediaBytesPerByte: MEDIA_BYTES_PER_BYTE }
}

function mostBytes(grant: Grant): number {
  return mostOutput(grant) * BYTES_PER_TOKEN + SPARE_BYTES
}

/** Lists the bounds of a request that its provider has exceeded. `usage` is the reported usage. */
export function listViolations(
  grant: Grant,
  usage: Usage | undefined,
  { textBytes, mediaBytes }: AnswerBytes,
): Violation[] {
  const { need, metering, isEnforced } = grant
  if (!isEnforced || metering === 'bytes') return []
  const { prompt_tokens: input, completion_tokens: output } = usage ?? {}
  const checked = [
    {
      kind: 'bytes' as const,
      bound: mostBytes(grant),
      reported: Math.ceil(textBytes + mediaBytes / MEDIA_BYTES_PER_BYTE),
    },
    { kind: 'output' as const, bound: mostOutput(grant) + need.predictionTokens, reported: output },
    // The tokens of a part without a bound are only estimated.
    { kind: 'input' as const, bound: need.inputTokens, reported: need.unbounded === undefined ? input : 0 },
  ]
  return checked.flatMap(({ kind, bound, reported }) =>
    isCount(reported) && reported > bound ? [{ kind, bound, reported }] : [],
  )
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
  /** Bytes of encoded audio and images, which do not show the number of their tokens. */
  readonly mediaBytes: number
}

/**
 * The end of an answer: `cut` if the client, the server or a time limit ended it, and `lost` if the connection
 * to the provider ended first, so that the provider may charge for more than it has sent.
 */
export type AnswerEnd = 'whole' | 'cut' | 'lost'

/**
 * Returns the tokens of an answer. If the provider reports no usage, or too little for the text, or with the
 * metering `bytes`, each byte counts as a token, up to the grant. The usage of an incomplete answer is not
 * complete either.
 */
export function countAnswer(
  grant: Grant,
  usage: Usage | undefined,
  { textBytes, mediaBytes }: AnswerBytes,
  end: AnswerEnd,
): UsedTokens {
  const { prompt_tokens: prompt, completion_tokens: completion } = usage ?? {}
  const isReported = isCount(prompt) && isCount(completion)
  if (
    end === 'whole' &&
    grant.metering === 'reported' &&
    isReported &&
    areTokensPlausible(prompt, grant.need.textBytes) &&
    areTokensPlausible(completion, textBytes)
  ) {
    return { prompt, completion, isEstimated: false }
  }
  const most = mostOutput(grant)
  const produced = textBytes + mediaBytes + (end === 'cut' ? TOKENS_AFTER_CUT : 0)
  const output = end === 'lost' ? most : Math.min(produced, most)
  return { prompt: grant.need.inputTokens, completion: output, isEstimated: true }
}

const noBytes: AnswerBytes = { textBytes: 0, mediaBytes: 0 }

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
