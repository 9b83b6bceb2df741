/** Tests the console's forecast of when a budget is used up. */
import { describe, expect, test } from 'vitest'
import { predict } from '../../client/budgets/forecast.ts'

type Spending = Parameters<typeof predict>[0]

const DAY = 86_400
/** 2026-11-11T00:00:00Z */
const now = Date.parse('2026-11-11') / 1_000

const month: Spending = {
  period: 'month',
  startsAt: Date.parse('2026-11-01') / 1_000,
  endsAt: Date.parse('2026-12-01') / 1_000,
  booked: 400,
  limit: 1_000,
  recent: ['05', '06', '07', '08', '09', '10'].map((day) => ({ day: `2026-11-${day}`, amount: 100 })),
}

describe('a budget forecast', () => {
  test('extrapolates the rate of the recent days', () => {
    expect(predict(month, now)).toEqual({ kind: 'ends', atSeconds: now + 6 * DAY })
  })

  test('includes the days without calls between the recent days', () => {
    const recent = month.recent.filter(({ day }) => ['05', '07', '09'].some((end) => day.endsWith(end)))
    expect(predict({ ...month, recent }, now)).toEqual({ kind: 'ends', atSeconds: now + 12 * DAY })
  })

  test('reports that the budget lasts until its period ends', () => {
    expect(predict({ ...month, limit: 10_000 }, now)).toEqual({ kind: 'lasts' })
    expect(predict({ ...month, limit: 10_000, period: 'total', endsAt: null }, now)).toEqual({
      kind: 'ends',
      atSeconds: now + 96 * DAY,
    })
  })

  test('is absent if there are calls on fewer than three recent days', () => {
    expect(predict({ ...month, recent: month.recent.slice(0, 2) }, now)).toBeUndefined()
    expect(predict({ ...month, recent: [] }, now)).toBeUndefined()
  })

  test('is absent if the budget is used up', () => {
    expect(predict({ ...month, booked: 1_000 }, now)).toBeUndefined()
  })

  test("extrapolates today's rate for a daily budget, after six hours", () => {
    const day: Spending = { ...month, period: 'day', startsAt: now, endsAt: now + DAY, recent: [] }
    expect(predict(day, now + 5 * 3_600)).toBeUndefined()
    expect(predict(day, now + 8 * 3_600)).toEqual({ kind: 'ends', atSeconds: now + 20 * 3_600 })
    expect(predict({ ...day, booked: 0 }, now + 8 * 3_600)).toBeUndefined()
  })
})
