/** Decides whether the budgets of a request to a provider admit it, and with how many output tokens. */
import { ServiceError } from '../lib/errors.ts'
import type { BudgetRow } from './budget-store.ts'
import type { TokenNeed } from './token-bounds.ts'

/** The state of a budget for its subject in one period. */
export interface BudgetState {
  readonly budget: BudgetRow
  /** The limit and the grants of the period. */
  readonly limit: bigint
  readonly booked: bigint
  readonly reserved: bigint
  /** Unix seconds; null for the period `total`. */
  readonly endsAt: number | null
}

type Decision =
  | { readonly kind: 'granted'; readonly outputTokens: number; readonly isLimited: boolean }
  /** The request gets all that it asks for when other calls release what they have reserved. */
  | { readonly kind: 'wait' }
  | { readonly kind: 'refused'; readonly by: BudgetState; readonly isReserved: boolean }

export interface Asked {
  readonly need: TokenNeed
  /** Shorter answers are not worth asking for. */
  readonly fewestTokens: number
}

/** `mayWait` is false after the longest wait. */
export function decide(states: readonly BudgetState[], asked: Asked, mayWait: boolean): Decision {
  const enforcing = states.filter(({ budget }) => budget.mode === 'enforce')
  const { need } = asked
  const most = leastOf(enforcing, need, leftIn)
  if (most >= need.outputTokens) return { kind: 'granted', outputTokens: need.outputTokens, isLimited: false }
  if (mayWait && leastOf(enforcing, need, unbookedIn) >= need.outputTokens) return { kind: 'wait' }
  if (most >= fewest(asked)) return { kind: 'granted', outputTokens: most, isLimited: true }
  const blocking = enforcing.filter((state) => isTooLittle(asked, leftIn(state)))
  const spent = blocking.find((state) => isTooLittle(asked, unbookedIn(state)))
  return { kind: 'refused', by: spent ?? (blocking[0] as BudgetState), isReserved: spent === undefined }
}

/** Returns whether a budget with the mode `observe` would have rejected the request. */
export function wouldRefuse(state: BudgetState, asked: Asked): boolean {
  return isTooLittle(asked, leftIn(state))
}

function leastOf(
  states: readonly BudgetState[],
  need: TokenNeed,
  amountOf: (state: BudgetState) => bigint,
): number {
  return states.reduce(
    (least, state) => Math.min(least, affordableTokens(need, amountOf(state))),
    need.outputTokens,
  )
}

function isTooLittle(asked: Asked, amount: bigint): boolean {
  return affordableTokens(asked.need, amount) < fewest(asked)
}

/**
 * Returns the most output tokens for each choice that fit into `left`, at most what the request asks for;
 * negative if not even the input fits.
 */
export function affordableTokens({ inputTokens, outputTokens, choices }: TokenNeed, left: bigint): number {
  const free = left - BigInt(inputTokens)
  if (free < 0n) return -1
  const tokens = free / BigInt(choices)
  return tokens >= BigInt(outputTokens) ? outputTokens : Number(tokens)
}

function fewest({ need, fewestTokens }: Asked): number {
  return Math.min(need.outputTokens, fewestTokens)
}

function leftIn({ limit, booked, reserved }: BudgetState): bigint {
  return limit - booked - reserved
}

function unbookedIn({ limit, booked }: BudgetState): bigint {
  return limit - booked
}

/** Errors with a longer wait have no `Retry-After`, because such a wait is not useful to clients. */
const LONGEST_RETRY_AFTER_SECONDS = 86_400
const RETRY_RESERVED_SECONDS = 1

const scopeNames = {
  key: 'this key',
  agent: 'this agent',
  visitor: 'this visitor',
  conversation: 'this conversation',
} as const

/**
 * Creates the client's error. Sets `Retry-After` to the end of the period only if waiting for it helps; it
 * does not help if the request needs more than the whole budget. The text contains no amounts, because
 * visitors may see it.
 */
export function toRefusal(
  { by, isReserved }: Extract<Decision, { kind: 'refused' }>,
  asked: Asked,
  nowMs: number,
): ServiceError {
  const { budget, limit, booked, endsAt } = by
  const period = budget.period === 'total' ? '' : ` for this ${budget.period}`
  const name = `token budget of ${scopeNames[budget.scope_kind]}${period}`
  if (isReserved) {
    return new ServiceError('insufficient_quota', `The rest of the ${name} is reserved by other calls.`, {
      code: 'budget_reserved',
      retryAfterSeconds: RETRY_RESERVED_SECONDS,
      shouldRetry: true,
    })
  }
  if (booked < limit && isTooLittle(asked, limit)) {
    return new ServiceError('insufficient_quota', `The request may need more than the whole ${name}.`, {
      shouldRetry: false,
    })
  }
  const waitSeconds = endsAt === null ? undefined : Math.ceil(endsAt - nowMs / 1000)
  const hasRetryTime = waitSeconds !== undefined && waitSeconds <= LONGEST_RETRY_AFTER_SECONDS
  return new ServiceError('insufficient_quota', `The ${name} is used up.`, {
    shouldRetry: false,
    ...(hasRetryTime && { retryAfterSeconds: waitSeconds }),
  })
}
