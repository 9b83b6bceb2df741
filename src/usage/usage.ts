/** What a tenant has used, from the daily sums. */
import type { Deps } from '../deps.ts'
import { ServiceError } from '../errors.ts'
import { addDays, countDays, dayOf } from './days.ts'
import { type Histogram, merge, parseHistogram, percentiles } from './histogram.ts'
import type { UsageEntry, UsageList, UsageQuery, UsageSums } from './schema.ts'
import { listDays } from './store.ts'
import type { UsageDayRow } from './writer.ts'

const DEFAULT_DAYS = 30
const MOST_DAYS = 366

/**
 * Sums up the tenant's calls of some days; what was booked a moment ago is there.
 * @throws ServiceError `invalid_value` for days in the wrong order, or too many of them.
 */
export async function readUsage(
  deps: Pick<Deps, 'db' | 'clock' | 'usage'>,
  tenantId: string,
  query: UsageQuery,
): Promise<UsageList> {
  const to = query.to === undefined ? dayOf(deps.clock.now()) : toDay(query.to)
  const from = query.from === undefined ? addDays(to, 1 - DEFAULT_DAYS) : toDay(query.from)
  assertRange(from, to)
  await deps.usage.flush()
  const rows = await listDays(deps.db, tenantId, from, to)
  return {
    object: 'list',
    from,
    to,
    data: listEntries(rows, query.group_by),
    total: sumUp(rows),
  }
}

function toDay(moment: string | number): string {
  return typeof moment === 'number' ? dayOf(moment * 1000) : moment
}

function assertRange(from: string, to: string): void {
  const days = countDays(from, to)
  if (days >= 1 && days <= MOST_DAYS) return
  const wrong = days < 1 ? `must not be after to (${to})` : `must be at most ${MOST_DAYS} days before to`
  throw new ServiceError('invalid_value', `from: ${wrong}`, { param: 'from' })
}

/** Days in order; agents and models by the tokens they took, most first. */
function listEntries(rows: readonly UsageDayRow[], grouping: UsageQuery['group_by']): UsageEntry[] {
  const groups = Map.groupBy(rows, (row) => JSON.stringify(groupOf(row, grouping)))
  const entries = [...groups.values()].map((group) => ({
    ...groupOf(group[0] as UsageDayRow, grouping),
    ...sumUp(group),
  }))
  return grouping === 'day' ? entries : entries.sort((a, b) => b.total_tokens - a.total_tokens)
}

/** The fields that name a row's group. */
function groupOf(row: UsageDayRow, grouping: UsageQuery['group_by']) {
  switch (grouping) {
    case 'day':
      return { day: row.day }
    case 'agent':
      return { agent: row.agent_id === '' ? null : row.agent_id }
    case 'model':
      return { model: row.model, provider: row.provider }
  }
}

function sumUp(rows: readonly UsageDayRow[]): UsageSums {
  const sum = (numberOf: (row: UsageDayRow) => number) =>
    rows.reduce((total, row) => total + numberOf(row), 0)
  return {
    requests: sum((row) => row.requests),
    errors: sum((row) => row.errors),
    prompt_tokens: sum((row) => row.prompt_tokens),
    completion_tokens: sum((row) => row.completion_tokens),
    total_tokens: sum((row) => row.prompt_tokens + row.completion_tokens),
    estimated_requests: sum((row) => row.estimated),
    latency_ms: toPercentiles(rows.map((row) => row.latency_histogram)),
    first_byte_ms: toPercentiles(rows.map((row) => row.first_byte_histogram)),
  }
}

function toPercentiles(texts: readonly string[]): UsageSums['latency_ms'] {
  const whole: Histogram = new Map()
  for (const text of texts) merge(whole, parseHistogram(text))
  const found = percentiles(whole, [0.5, 0.95, 0.99])
  if (found === undefined) return null
  const [p50, p95, p99] = found as [number, number, number]
  return { p50, p95, p99 }
}
