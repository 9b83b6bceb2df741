/** Calculates days and months in UTC, the periods of usage and budgets. */

const DAY_MS = 86_400_000

export type Period = 'day' | 'month'

/** Returns the day as YYYY-MM-DD. */
export function dayOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10)
}

export function addDays(day: string, days: number): string {
  return dayOf(Date.parse(day) + days * DAY_MS)
}

/** Counts the days from `from` to `to`, inclusive. */
export function countDays(from: string, to: string): number {
  return Math.round((Date.parse(to) - Date.parse(from)) / DAY_MS) + 1
}

export function startOf(period: Period, ms: number): string {
  const day = dayOf(ms)
  return period === 'day' ? day : `${day.slice(0, 7)}-01`
}

/** Returns the seconds until the period ends, rounded up. */
export function secondsLeft(period: Period, ms: number): number {
  const start = new Date(startOf(period, ms))
  if (period === 'day') start.setUTCDate(start.getUTCDate() + 1)
  else start.setUTCMonth(start.getUTCMonth() + 1)
  return Math.ceil((start.getTime() - ms) / 1000)
}
