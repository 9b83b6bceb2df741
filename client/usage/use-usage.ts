/** Loads the usage selected in the address, and replaces ids with names. */

import { keepPreviousData, useQuery } from '@tanstack/react-query'
import type { Outputs } from '../api.ts'
import { api } from '../api.ts'
import type { Grouping, UsageSearch } from '../search.ts'
import { locale, t } from '../strings/language.ts'
import { readKeyNames } from './key-names.ts'

export interface ShownUsage {
  readonly by: Grouping
  readonly days: Days
  readonly lines: readonly Line[]
  readonly total: Line
  /** Sums of the preceding period of the same length. */
  readonly previous: Sums
  /**
   * The number of days after which the server deletes calls; set only if the usage is filtered by outcome.
   */
  readonly keptDays: number | undefined
}

export function useUsage(search: UsageSearch) {
  const { by = 'day', key, agent, model, status } = search
  const isAll = selectsAll(search)
  const days = daysOf(search)
  return useQuery({
    queryKey: ['usage', isAll, key, agent, model, status, by, days],
    queryFn: async (): Promise<ShownUsage> => {
      const [{ data, total, kept_days: keptDays }, { total: previous }] = await Promise.all([
        readUsage(search, days),
        readUsage({ ...search, by: 'day' }, previousDays(days)),
      ])
      const names = await readNames(by, data)
      return { by, days, lines: toLines(data, by, days, names), total: toTotal(total), previous, keptDays }
    },
    placeholderData: keepPreviousData,
  })
}

/**
 * Lists the agents or models that were called in the period, regardless of the agent, model and outcome
 * filters.
 */
export function useCalled(search: UsageSearch, by: 'agent' | 'model') {
  const days = daysOf(search)
  const { key, whose } = search
  return useQuery({
    queryKey: ['usage', 'called', selectsAll(search), key, by, days],
    queryFn: async () => {
      const { data } = await readUsage({ key, whose, by }, days)
      return toLines(data, by, days, await readNames(by, data))
    },
    staleTime: 60_000,
    placeholderData: keepPreviousData,
  })
}

/** Returns whether the address selects the calls of all keys, or of one key by its id. */
export function selectsAll({ whose, key }: UsageSearch): boolean {
  return whose === 'all' || key !== undefined
}

function readUsage(search: UsageSearch, { from, to }: Days) {
  const { by = 'day', key, model, status } = search
  const shared = { from, to, agent: toAgentFilter(search.agent), model, status }
  if (selectsAll(search)) return api.admin.usage.query({ ...shared, group_by: by, key })
  return api.usage.list.query({ ...shared, group_by: by === 'key' ? 'day' : by })
}

/** The value in the address that selects calls without an agent, because the address omits empty values. */
const NO_AGENT = 'none'

export function toAgentFilter(agent: string | undefined): string | undefined {
  return agent === NO_AGENT ? '' : agent
}

/**
 * Returns names by id. Agents of other keys have no name here, because the agent list omits them; the page
 * shows their ids.
 */
async function readNames(by: Grouping, entries: readonly Entry[]): Promise<Names> {
  if (by === 'agent') {
    const ids = entries.flatMap(({ agent }) => agent ?? [])
    const found: { id: string; name: string }[] = []
    for (let at = 0; at < ids.length; at += MAX_IDS)
      found.push(...(await api.agents.names.query({ ids: ids.slice(at, at + MAX_IDS) })))
    return new Map(found.map(({ id, name }) => [id, name]))
  }
  if (by !== 'key') return new Map()
  return readKeyNames()
}

const MAX_IDS = 100

type Usage = Outputs['usage']['list']
type Entry = Outputs['admin']['usage']['data'][number]
export type Sums = Usage['total']

export interface Line extends Sums {
  /** A day or an id; unique among the lines. */
  readonly id: string
  readonly name: string
  /** The search parameters that select only this line's calls. */
  readonly narrowed: UsageSearch
}

const nothing: Sums = {
  requests: 0,
  errors: 0,
  prompt_tokens: 0,
  completion_tokens: 0,
  total_tokens: 0,
  estimated_requests: 0,
  cost: '0',
  unpriced_requests: 0,
  cached_tokens: 0,
  cache_write_tokens: 0,
  reasoning_tokens: 0,
  latency_ms: null,
  first_byte_ms: null,
}

type Names = ReadonlyMap<string, string>

/** Adds zeros for days without calls; preserves the server's order for other groupings. */
function toLines(entries: readonly Entry[], by: Grouping, days: Days, names: Names): Line[] {
  if (by !== 'day') return entries.map((entry) => toLine(entry, by, names))
  const found = new Map(entries.map((entry) => [entry.day, entry]))
  return listDays(days).map((day) => ({ ...nothing, ...found.get(day), ...dayLine(day) }))
}

function dayLine(day: string): Pick<Line, 'id' | 'name' | 'narrowed'> {
  return { id: day, name: renderLongDay(day), narrowed: { range: undefined, from: day, to: day } }
}

function toLine(entry: Entry, by: Grouping, names: Names): Line {
  switch (by) {
    case 'day':
      return { ...entry, ...dayLine(entry.day ?? '') }
    case 'agent': {
      const { agent } = entry
      return {
        ...entry,
        id: agent ?? '',
        name: agent == null ? t('conversations.noAgent') : (names.get(agent) ?? agent),
        narrowed: { agent: agent ?? NO_AGENT },
      }
    }
    case 'model': {
      const { model = '', provider = '' } = entry
      return {
        ...entry,
        id: `${provider} ${model}`,
        name: model === provider ? model : `${model} (${provider})`,
        narrowed: { model },
      }
    }
    case 'key': {
      const { key = '' } = entry
      return { ...entry, id: key, name: names.get(key) ?? key, narrowed: { key } }
    }
  }
}

function toTotal(total: Sums): Line {
  return { ...total, id: 'total', name: t('usage.total'), narrowed: {} }
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

/** Returns the days of the preceding period of the same length. */
function previousDays({ from, to }: Days): Days {
  const count = countDays({ from, to })
  return { from: toDay(Date.parse(from) - count * DAY_MS), to: toDay(Date.parse(from) - DAY_MS) }
}

export function countDays({ from, to }: Days): number {
  return Math.max(Math.round((Date.parse(to) - Date.parse(from)) / DAY_MS) + 1, 0)
}

function listDays(days: Days): string[] {
  const first = Date.parse(days.from)
  return Array.from({ length: countDays(days) }, (_, index) => toDay(first + index * DAY_MS))
}

const short = new Intl.DateTimeFormat(locale(), { day: 'numeric', month: 'short', timeZone: 'UTC' })
const long = new Intl.DateTimeFormat(locale(), { dateStyle: 'medium', timeZone: 'UTC' })

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
