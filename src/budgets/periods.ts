/** Calculates the days, weeks and months of budgets in the configured time zone. */
import { Temporal } from 'temporal-polyfill'
import type { BudgetTable } from '../db/tables.ts'

export type Period = BudgetTable['period']

/** Unix seconds; `endsAt` is null for the period `total`. */
export interface PeriodSpan {
  readonly startsAt: number
  readonly endsAt: number | null
}

const wholeTime: PeriodSpan = { startsAt: 0, endsAt: null }

/** Returns the period that contains a time in milliseconds. */
export type FindPeriod = (period: Period, ms: number) => PeriodSpan

/** Weeks begin on Monday. `timeZone` is an IANA name. */
export function createPeriods(timeZone: string): FindPeriod {
  /** Most calls are in the same period as the call before. */
  const latest = new Map<Period, PeriodSpan>()
  return (period, ms) => {
    if (period === 'total') return wholeTime
    const known = latest.get(period)
    const seconds = Math.floor(ms / 1000)
    if (known !== undefined && seconds >= known.startsAt && seconds < (known.endsAt ?? 0)) return known
    const span = computePeriod(period, seconds, timeZone)
    latest.set(period, span)
    return span
  }
}

const lengths = { day: { days: 1 }, week: { weeks: 1 }, month: { months: 1 } } as const

function computePeriod(period: keyof typeof lengths, seconds: number, timeZone: string): PeriodSpan {
  const date = Temporal.Instant.fromEpochMilliseconds(seconds * 1000)
    .toZonedDateTimeISO(timeZone)
    .toPlainDate()
  const first =
    period === 'day'
      ? date
      : period === 'week'
        ? date.subtract({ days: date.dayOfWeek - 1 })
        : date.with({ day: 1 })
  // Without a time, the result is the first moment of the day, which is not always midnight.
  const toSeconds = (day: Temporal.PlainDate) => day.toZonedDateTime(timeZone).epochMilliseconds / 1000
  return { startsAt: toSeconds(first), endsAt: toSeconds(first.add(lengths[period])) }
}
