/** What the address of the usage says: whose calls, of which days, summed up by what. */
import { dayOf, oneOf, present, type RawSearch, textOf } from '../lib/search-values.ts'

export const groupings = ['day', 'agent', 'model', 'key'] as const
export type Grouping = (typeof groupings)[number]

export const ranges = ['7', '30', '90', '365'] as const

export interface UsageSearch {
  /** The last so many days; 30 without it. */
  readonly range?: (typeof ranges)[number] | undefined
  /** Days of one's own choice, in the place of a range. */
  readonly from?: string | undefined
  readonly to?: string | undefined
  /** By day without it. */
  readonly by?: Grouping | undefined
  /** Everybody's calls, for administrators. */
  readonly whose?: 'all' | undefined
  /** Only this parent key's, for administrators. */
  readonly key?: string | undefined
}

export function parseUsageSearch({ range, from, to, by, whose, key }: RawSearch): UsageSearch {
  const days = { from: dayOf(from), to: dayOf(to) }
  return present({
    range: oneOf(textOf(range), ranges),
    ...(days.from !== undefined && days.to !== undefined ? days : {}),
    by: oneOf(by, groupings),
    whose: oneOf(whose, ['all'] as const),
    key: textOf(key),
  })
}
