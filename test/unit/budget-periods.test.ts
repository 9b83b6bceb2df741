/** Tests when the days, weeks and months of budgets begin in different time zones. */
import { describe, expect, test } from 'vitest'
import { createPeriods, type Period } from '../../src/budgets/periods.ts'

/** Returns the start and the end of the period that contains a time. */
function spanOf(timeZone: string, period: Period, at: string): (string | null)[] {
  const { startsAt, endsAt } = createPeriods(timeZone)(period, Date.parse(at))
  return [startsAt, endsAt].map((seconds) =>
    seconds === null ? null : new Date(seconds * 1000).toISOString().slice(0, 16),
  )
}

describe('in Europe/Berlin', () => {
  test.each<[string, Period, string, string, string]>([
    ['a day', 'day', '2026-06-15T12:00Z', '2026-06-14T22:00', '2026-06-15T22:00'],
    [
      'the day on which clocks go forward',
      'day',
      '2026-03-29T12:00Z',
      '2026-03-28T23:00',
      '2026-03-29T22:00',
    ],
    ['the day on which clocks go back', 'day', '2026-10-25T12:00Z', '2026-10-24T22:00', '2026-10-25T23:00'],
    ['the last second of a day', 'day', '2026-06-15T21:59:59Z', '2026-06-14T22:00', '2026-06-15T22:00'],
    ['the first second of a day', 'day', '2026-06-15T22:00:00Z', '2026-06-15T22:00', '2026-06-16T22:00'],
    ['a leap day', 'day', '2028-02-29T12:00Z', '2028-02-28T23:00', '2028-02-29T23:00'],
    ['a month with a leap day', 'month', '2028-02-29T12:00Z', '2028-01-31T23:00', '2028-02-29T23:00'],
    [
      'a month in which clocks go forward',
      'month',
      '2026-03-15T12:00Z',
      '2026-02-28T23:00',
      '2026-03-31T22:00',
    ],
    ['a month in which clocks go back', 'month', '2026-10-15T12:00Z', '2026-09-30T22:00', '2026-10-31T23:00'],
    ['a week over New Year', 'week', '2027-01-01T12:00Z', '2026-12-27T23:00', '2027-01-03T23:00'],
    ['a week, seen on its Monday', 'week', '2026-12-28T00:00Z', '2026-12-27T23:00', '2027-01-03T23:00'],
    ['a week, seen on its Sunday', 'week', '2027-01-03T12:00Z', '2026-12-27T23:00', '2027-01-03T23:00'],
    ['a week in which clocks go back', 'week', '2026-10-20T12:00Z', '2026-10-18T22:00', '2026-10-25T23:00'],
  ])('%s begins and ends at local midnight', (_what, period, at, start, end) => {
    expect(spanOf('Europe/Berlin', period, at)).toEqual([start, end])
  })
})

test('a day without midnight begins at its first moment', () => {
  expect(spanOf('Africa/Cairo', 'day', '2026-04-24T12:00Z')).toEqual(['2026-04-23T22:00', '2026-04-24T21:00'])
})

test('the period `total` has no end', () => {
  expect(createPeriods('UTC')('total', Date.parse('2026-06-15'))).toEqual({ startsAt: 0, endsAt: null })
})

test('a time before the cached period belongs to its own period', () => {
  const findPeriod = createPeriods('UTC')
  const [day, before] = [Date.UTC(2026, 5, 15), Date.UTC(2026, 5, 14)]
  expect(findPeriod('day', day).startsAt).toBe(day / 1000)
  expect(findPeriod('day', before).startsAt).toBe(before / 1000)
  expect(findPeriod('day', day + 86_400_000).startsAt).toBe(day / 1000 + 86_400)
})
