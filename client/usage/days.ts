/** Days of UTC: which are meant, and all of them between two. */
import type { UsageSearch } from './search.ts'

const DAY_MS = 86_400_000

export interface Days {
  readonly from: string
  readonly to: string
}

/** The days an address means; the last 30 where it names none. */
export function daysOf({ range = '30', from, to }: UsageSearch, nowMs = Date.now()): Days {
  if (from !== undefined && to !== undefined) return { from, to }
  return { from: toDay(nowMs - (Number(range) - 1) * DAY_MS), to: toDay(nowMs) }
}

/** Every day from the first to the last. */
export function listDays({ from, to }: Days): string[] {
  const count = Math.round((Date.parse(to) - Date.parse(from)) / DAY_MS) + 1
  return Array.from({ length: Math.max(count, 0) }, (_, index) => toDay(Date.parse(from) + index * DAY_MS))
}

const short = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short', timeZone: 'UTC' })
const long = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeZone: 'UTC' })

/** `3 Nov`, for axes. */
export function renderShortDay(day: string): string {
  return short.format(Date.parse(day))
}

export function renderLongDay(day: string): string {
  return long.format(Date.parse(day))
}

function toDay(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10)
}
