/** Predicts when a budget is used up, from what its scope has used recently. */

/** The amount that a scope used on a UTC day (`2026-01-31`). */
interface UsedDay {
  readonly day: string
  readonly amount: number
}

interface Spending {
  readonly period: 'day' | 'week' | 'month' | 'total'
  /** Unix seconds. */
  readonly startsAt: number
  /** Unix seconds; null for the period `total`. */
  readonly endsAt: number | null
  readonly booked: number
  /** The limit with the grants. */
  readonly limit: number
  /** Days with calls, oldest first; not used for the period `day`. */
  readonly recent: readonly UsedDay[]
}

export type Forecast =
  | { readonly kind: 'ends'; readonly atSeconds: number }
  /** The budget lasts until its period ends. */
  | { readonly kind: 'lasts' }

const DAY_SECONDS = 86_400
/** With fewer days with calls, one busy day would decide the result. */
const LEAST_DAYS = 3
/** Use within a day is uneven, so a few hours predict nothing. */
const LEAST_SECONDS = 6 * 3_600

/**
 * Returns undefined if there is too little data, or the budget is already used up. A daily budget continues
 * at the rate of today; the others continue at the rate of the recent days.
 */
export function predict(spending: Spending, nowSeconds: number): Forecast | undefined {
  const { booked, limit, endsAt } = spending
  const rate = findRate(spending, nowSeconds)
  if (rate === undefined || rate <= 0 || booked >= limit) return undefined
  const atSeconds = nowSeconds + (limit - booked) / rate
  if (endsAt !== null && atSeconds >= endsAt) return { kind: 'lasts' }
  return { kind: 'ends', atSeconds }
}

/** Returns the amount per second. */
function findRate({ period, startsAt, booked, recent }: Spending, nowSeconds: number): number | undefined {
  if (period === 'day') {
    const elapsed = nowSeconds - startsAt
    return elapsed < LEAST_SECONDS ? undefined : booked / elapsed
  }
  const used = recent.filter(({ amount }) => amount > 0)
  const [first] = used
  if (first === undefined || used.length < LEAST_DAYS) return undefined
  const elapsed = nowSeconds - Date.parse(first.day) / 1_000
  const sum = used.reduce((total, { amount }) => total + amount, 0)
  return sum / Math.max(elapsed, DAY_SECONDS)
}
