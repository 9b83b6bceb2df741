/** What was called, as the address asks for it, with names in the place of ids. */
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { api } from '../api.ts'
import { type Days, daysOf } from './days.ts'
import { type Line, type Names, toLines, toTotal } from './lines.ts'
import type { Grouping, UsageSearch } from './search.ts'

export interface ShownUsage {
  readonly by: Grouping
  readonly days: Days
  readonly lines: readonly Line[]
  readonly total: Line
}

export function useUsage(search: UsageSearch) {
  const { by = 'day', key, whose } = search
  const isAll = whose === 'all' || key !== undefined
  const days = daysOf(search)
  const { from, to } = days
  return useQuery({
    queryKey: ['usage', isAll, key, by, from, to],
    queryFn: async (): Promise<ShownUsage> => {
      const [{ data, total }, names] = await Promise.all([readUsage(), readNames(by)])
      return { by, days, lines: toLines(data, by, days, names), total: toTotal(total) }
    },
    placeholderData: keepPreviousData,
  })

  function readUsage() {
    if (isAll) return api.admin.usage.query({ from, to, group_by: by, key })
    return api.usage.list.query({ from, to, group_by: by === 'key' ? 'day' : by })
  }
}

/** Another key's agents have no names here. */
async function readNames(by: Grouping): Promise<Names> {
  if (by === 'agent') {
    const { data } = await api.agents.list.query({})
    return new Map(data.map(({ id, name }) => [id, name]))
  }
  if (by !== 'key') return new Map()
  const { data } = await api.admin.keys.query({ limit: 100 })
  return new Map(data.map(({ id, name }) => [id, name]))
}
