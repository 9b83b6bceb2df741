/** Decides whether the budgets of a request to a provider admit it, and with how many output tokens. */
import { ServiceError } from '../../lib/errors.ts'
import { type Need, tokensWithin } from '../../prices/worst-case.ts'
import type { BudgetRow } from '../budget-store.ts'

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

export type Decision =
  | { readonly kind: 'granted'; readonly outputTokens: number; readonly isLimited: boolean }
  /** The request gets all that it asks for when other calls release what they have reserved. */
  | { readonly kind: 'wait' }
  | { readonly kind: 'refused'; readonly by: BudgetState; readonly isReserved: boolean }
  /** The cost of the request has no known limit. */
  | { readonly kind: 'unpriced'; readonly by: BudgetState; readonly missing: Unpriced }

/** The amounts that a request to a provider needs from budgets with each unit. */
export interface Asked {
  /** The number of output tokens that the request asks for, for each choice. */
  readonly outputTokens: number
  /** Shorter answers are not worth asking for. */
  readonly fewestTokens: number
  /** Amounts grow with the output tokens of one choice. */
  readonly needs: { readonly tokens: Need; readonly usd: Need | Unpriced }
}

/** A request whose cost has no known limit. */
export interface Unpriced {
  readonly code: 'model_not_priced' | 'content_not_priced'
  /** Path of the field without a price. */
  readonly param: string
}

/** `mayWait` is false after the longest wait. */
export function decide(states: readonly BudgetState[], asked: Asked, mayWait: boolean): Decision {
  const enforcing = states.filter(({ budget }) => budget.mode === 'enforce')
  const { outputTokens, needs } = asked
  const inUsd = enforcing.find(({ budget }) => budget.unit === 'usd')
  if (inUsd !== undefined && 'code' in needs.usd) return { kind: 'unpriced', by: inUsd, missing: needs.usd }
  const most = leastOf(enforcing, asked, leftIn)
  if (most >= outputTokens) return { kind: 'granted', outputTokens, isLimited: false }
  if (mayWait && leastOf(enforcing, asked, unbookedIn) >= outputTokens) return { kind: 'wait' }
  if (most >= fewest(asked)) return { kind: 'granted', outputTokens: most, isLimited: true }
  const blocking = enforcing.filter((state) => isTooLittle(state, asked, leftIn))
  const spent = blocking.find((state) => isTooLittle(state, asked, unbookedIn))
  return { kind: 'refused', by: spent ?? (blocking[0] as BudgetState), isReserved: spent === undefined }
}

/** Returns whether a budget with the mode `observe` would have rejected the request. */
export function wouldRefuse(state: BudgetState, asked: Asked): boolean {
  return isTooLittle(state, asked, leftIn)
}

/** Returns undefined if a budget in US dollars cannot limit the request. */
export function needOf({ needs }: Asked, { unit }: Pick<BudgetRow, 'unit'>): Need | undefined {
  const need = needs[unit]
  return 'code' in need ? undefined : need
}

type AmountOfState = (state: BudgetState) => bigint

function leastOf(states: readonly BudgetState[], asked: Asked, amount: AmountOfState): number {
  return states.reduce(
    (least, state) => Math.min(least, affordable(state, asked, amount)),
    asked.outputTokens,
  )
}

function isTooLittle(state: BudgetState, asked: Asked, amount: AmountOfState): boolean {
  return affordable(state, asked, amount) < fewest(asked)
}

/**
 * Returns the most output tokens for each choice that a budget can pay, at most what the request asks for;
 * negative if it cannot pay the input.
 */
function affordable(state: BudgetState, asked: Asked, amount: AmountOfState): number {
  const need = needOf(asked, state.budget)
  if (need === undefined) return -1
  return Math.min(tokensWithin(need, amount(state), asked.outputTokens), asked.outputTokens)
}

function fewest({ outputTokens, fewestTokens }: Asked): number {
  return Math.min(outputTokens, fewestTokens)
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
  const kind = budget.unit === 'tokens' ? 'token budget' : 'budget'
  const name = `${kind} of ${scopeNames[budget.scope_kind]}${period}`
  if (isReserved) {
    return new ServiceError('insufficient_quota', `The rest of the ${name} is reserved by other calls.`, {
      code: 'budget_reserved',
      retryAfterSeconds: RETRY_RESERVED_SECONDS,
      shouldRetry: true,
    })
  }
  if (booked < limit && isTooLittle(by, asked, () => limit)) {
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

/** Creates the error for a request whose model has no price. Only US-dollar budgets require a price. */
export function toUnpricedError({ code, param }: Unpriced): ServiceError {
  const problem =
    code === 'model_not_priced'
      ? 'this model has no price, which the budget requires'
      : 'has no price for this model, which the budget requires'
  return new ServiceError(code, `${param}: ${problem}`, { param, shouldRetry: false })
}
