/** The lines of the tables and charts: one a day, agent, model or key, with a name one can read. */
import type { Outputs } from '../types.ts'
import { type Days, listDays, renderLongDay } from './days.ts'
import type { Grouping } from './search.ts'

type Usage = Outputs['usage']['list']
type Entry = Outputs['admin']['usage']['data'][number]
export type Sums = Usage['total']

export interface Line extends Sums {
  /** Unique among the lines: the day, or the id. */
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

/** What agents and keys are called, by their ids. */
export type Names = ReadonlyMap<string, string>

/** Days without calls are there too, as zero; everything else as the server orders it. */
export function toLines(entries: readonly Entry[], by: Grouping, days: Days, names: Names): Line[] {
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
        name: agent == null ? 'Without an agent' : (names.get(agent) ?? agent),
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

/** The sums of everything, as a line under a table. */
export function toTotal(total: Sums): Line {
  return { ...total, id: 'total', name: 'Together' }
}
