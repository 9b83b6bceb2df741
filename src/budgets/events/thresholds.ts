/** Decides which thresholds of a budget a change of its counter crosses. */

/** The threshold that means that a budget is used up. */
export const EXHAUSTED = 100

/** The value of `budget_counters.warned`: the events of a counter in its period. */
interface Warned {
  /** The limit with the grants when the last threshold was reported. */
  readonly limit: string
  readonly reached: readonly number[]
}

interface Change {
  /** JSON: the percentages of the budget. */
  readonly warnAt: string
  /** JSON; empty if nothing was reported. */
  readonly warned: string
  /** The limit with the grants. */
  readonly limit: bigint
  readonly bookedBefore: bigint
  readonly booked: bigint
  /** Whether the budget has rejected a call, which also counts as 100 %. */
  readonly isExhausted: boolean
}

/**
 * Returns the thresholds to report now, and the new value of `warned`. Each threshold is reported once in a
 * period. After the limit was raised, those that are no longer reached can be reported again.
 */
export function crossThresholds(change: Change): { readonly crossed: number[]; readonly warned: string } {
  const { warned, limit, bookedBefore, booked, isExhausted } = change
  if (warned === '' && booked === 0n && !isExhausted) return { crossed: [], warned }
  const before: Warned = warned === '' ? { limit: String(limit), reached: [] } : JSON.parse(warned)
  const isRaised = limit > BigInt(before.limit)
  const reached = isRaised
    ? before.reached.filter((at) => isReached(at, bookedBefore, limit))
    : before.reached
  const crossed = (JSON.parse(change.warnAt) as number[]).filter(
    (at) => !reached.includes(at) && (isReached(at, booked, limit) || (at === EXHAUSTED && isExhausted)),
  )
  const after: Warned = { limit: String(limit), reached: [...reached, ...crossed] }
  return { crossed, warned: after.reached.length === 0 ? '' : JSON.stringify(after) }
}

function isReached(threshold: number, booked: bigint, limit: bigint): boolean {
  return booked > 0n && booked * 100n >= limit * BigInt(threshold)
}
