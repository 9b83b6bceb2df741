/** Loads the usage selected in the address, and replaces ids with names. */
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import type { Outputs } from '../api.ts'
import { api } from '../api.ts'
import type { Grouping, UsageSearch } from '../search.ts'

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
      const { data, total } = await readUsage()
      const names = await readNames(by, data)
      return { by, days, lines: toLines(data, by, days, names), total: toTotal(total) }
    },
    placeholderData: keepPreviousData,
  })

  function readUsage() {
    if (isAll) return api.admin.usage.query({ from, to, group_by: by, key })
    return api.usage.list.query({ from, to, group_by: by === 'key' ? 'day' : by })
  }
}

/** Other keys' agents are not listed, so their ids are shown instead of names. */
async function readNames(by: Grouping, entries: readonly Entry[]): Promise<Names> {
  if (by === 'agent') {
    const ids = entries.flatMap(({ agent }) => agent ?? [])
    const found: { id: string; name: string }[] = []
    for (let at = 0; at < ids.length; at += MAX_IDS)
      found.push(...(await api.agents.names.query({ ids: ids.slice(at, at + MAX_IDS) })))
    return new Map(found.map(({ id, name }) => [id, name]))
  }
  if (by !== 'key') return new Map()
  const { data } = await api.admin.keys.query({ limit: 100 })
  return new Map(data.map(({ id, name }) => [id, name]))
}

/** Limit on the ids in one request. */
const MAX_IDS = 100

type Usage = Outputs['usage']['list']
type Entry = Outputs['admin']['usage']['data'][number]
export type Sums = Usage['total']

export interface Line extends Sums {
  /** A day or an id; unique among the lines. */
  readonly id: string
  readonly name: string
}

const nothing: Sums = {
  requests: 0,
  errors: 0,
  prompt_tokens: 0,
  completion_tokens: 0,
  total_tokens: 0,
  estimated_requests: 0,
  latency_ms: null,
  first_byte_ms: null,
}

/** Agent and key names by id. */
type Names = ReadonlyMap<string, string>

/** Adds zeros for days without calls; preserves the server's order for other groupings. */
function toLines(entries: readonly Entry[], by: Grouping, days: Days, names: Names): Line[] {
  if (by !== 'day') return entries.map((entry) => toLine(entry, by, names))
  const found = new Map(entries.map((entry) => [entry.day, entry]))
  return listDays(days).map((day) => ({ ...nothing, ...found.get(day), id: day, name: renderLongDay(day) }))
}

function toLine(entry: Entry, by: Grouping, names: Names): Line {
  switch (by) {
    case 'day':
      return { ...entry, id: entry.day ?? '', name: renderLongDay(entry.day ?? '') }
    case 'agent': {
      const { agent } = entry
      return {
        ...entry,
        id: agent ?? '',
        name: agent == null ? 'No agent' : (names.get(agent) ?? agent),
      }
    }
    case 'model': {
      const { model = '', provider = '' } = entry
      return {
        ...entry,
        id: `${provider} ${model}`,
        name: model === provider ? model : `${model} (${provider})`,
      }
    }
    case 'key': {
      const { key = '' } = entry
      return { ...entry, id: key, name: names.get(key) ?? key }
    }
  }
}

/** Returns the totals as the table's last line. */
function toTotal(total: Sums): Line {
  return { ...total, id: 'total', name: 'Total' }
}

const DAY_MS = 86_400_000

export interface Days {
  readonly from: string
  readonly to: string
}

/** Returns the days selected in the address; by default, the last 30. */
export function daysOf({ range = '30', from, to }: UsageSearch, nowMs = Date.now()): Days {
  if (from !== undefined && to !== undefined) return { from, to }
  return { from: toDay(nowMs - (Number(range) - 1) * DAY_MS), to: toDay(nowMs) }
}

function listDays({ from, to }: Days): string[] {
  const count = Math.round((Date.parse(to) - Date.parse(from)) / DAY_MS) + 1
  return Array.from({ length: Math.max(count, 0) }, (_, index) => toDay(Date.parse(from) + index * DAY_MS))
}

const short = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short', timeZone: 'UTC' })
const long = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeZone: 'UTC' })

/** Renders a day for an axis, such as `3 Nov`. */
export function renderShortDay(day: string): string {
  return short.format(Date.parse(day))
}

function renderLongDay(day: string): string {
  return long.format(Date.parse(day))
}

function toDay(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10)
}
