/** Reads tenants' usage from daily totals or individual calls, and moves usage between tenants. */
import { setImmediate } from 'node:timers/promises'
import { bookMovedUsage } from '../budgets/counters.ts'
import type { Database } from '../db/database.ts'
import { ServiceError } from '../lib/errors.ts'
import { renderAmount } from '../prices/money.ts'
import { sumMatchingCalls } from './calls.ts'
import { addDays, countDays, dayOf } from './days.ts'
import type { Dependencies } from './dependencies.ts'
import { type Histogram, merge, parseHistogram, percentiles } from './histogram.ts'
import type { UsageEntry, UsageList, UsageQuery, UsageSums } from './schema.ts'
import {
  addDay,
  listDays,
  listLastDays,
  listUnpriced,
  type UnpricedModel,
  type UsageDayRow,
} from './store.ts'
import type { UsageTracker } from './tracker.ts'

const DEFAULT_DAYS = 30
const MOST_DAYS = 366

/**
 * Reads usage, including calls that are not yet written. @throws ServiceError `invalid_value` if the range of
 * days is invalid or too long.
 */
export async function readUsage(
  deps: Pick<Dependencies, 'config' | 'db' | 'clock'> & { readonly usage: UsageTracker },
  tenantIds: readonly string[],
  query: UsageQuery,
): Promise<UsageList> {
  const to = query.to === undefined ? dayOf(deps.clock.now()) : toDay(query.to)
  const from = query.from === undefined ? addDays(to, 1 - DEFAULT_DAYS) : toDay(query.from)
  assertRange(from, to)
  await deps.usage.flush()
  const groups = new Map<string, Group>()
  const total = new Sum()
  for (const tenantId of tenantIds) {
    for await (const rows of listSums(deps.db, tenantId, from, to, query)) {
      for (const row of rows) {
        groupFor(groups, row, query.group_by).sum.add(row)
        total.add(row)
      }
    }
    // Lets other requests run between tenants.
    if (tenantIds.length > 1) await setImmediate()
  }
  return {
    ...{ object: 'list', from, to, data: listEntries(groups, query.group_by), total: total.render() },
    ...(query.status !== undefined && { kept_days: deps.config.usageRetentionDays }),
  }
}

/** Reads daily sums; these do not contain outcomes, so sums of one outcome are computed from the calls. */
async function* listSums(
  db: Database,
  tenantId: string,
  from: string,
  to: string,
  { agent, model, status }: Pick<UsageQuery, 'agent' | 'model' | 'status'>,
): AsyncGenerator<UsageDayRow[]> {
  if (status === undefined) yield await listDays(db, tenantId, from, to, { agent, model })
  else yield* sumMatchingCalls(db, tenantId, { from, to, agent, model, status })
}

/**
 * Returns the last day (UTC) on which each agent was called, keyed by agent id; agents that were never called
 * have no entry.
 */
export async function readLastDays(
  { db, usage }: Pick<Dependencies, 'db'> & { readonly usage: UsageTracker },
  tenantId: string,
  agentIds: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  if (agentIds.length === 0) return new Map()
  await usage.flush()
  return listLastDays(db, tenantId, agentIds)
}

const MOST_UNPRICED = 1_000

/** Lists the models with the most unpriced calls in the last 30 days, across all tenants. */
export function listUnpricedModels({
  db,
  clock,
}: Pick<Dependencies, 'db' | 'clock'>): Promise<readonly UnpricedModel[]> {
  return listUnpriced(db, addDays(dayOf(clock.now()), 1 - DEFAULT_DAYS), MOST_UNPRICED)
}

function toDay(moment: string | number): string {
  return typeof moment === 'number' ? dayOf(moment * 1000) : moment
}

function assertRange(from: string, to: string): void {
  const days = countDays(from, to)
  if (days >= 1 && days <= MOST_DAYS) return
  const wrong = days < 1 ? `must not be after to (${to})` : `must be less than ${MOST_DAYS} days before to`
  throw new ServiceError('invalid_value', `from: ${wrong}`, { param: 'from' })
}

interface Group {
  readonly of: Pick<UsageEntry, 'day' | 'agent' | 'model' | 'provider' | 'key'>
  readonly sum: Sum
}

function groupFor(groups: Map<string, Group>, row: UsageDayRow, grouping: UsageQuery['group_by']): Group {
  const of = groupOf(row, grouping)
  const name = JSON.stringify(of)
  const known = groups.get(name)
  if (known !== undefined) return known
  const group = { of, sum: new Sum() }
  groups.set(name, group)
  return group
}

function groupOf(row: UsageDayRow, grouping: UsageQuery['group_by']): Group['of'] {
  switch (grouping) {
    case 'day':
      return { day: row.day }
    case 'agent':
      return { agent: row.agent_id === '' ? null : row.agent_id }
    case 'model':
      return { model: row.model, provider: row.provider }
    case 'key':
      return { key: row.parent_key_id }
  }
}

function listEntries(groups: ReadonlyMap<string, Group>, grouping: UsageQuery['group_by']): UsageEntry[] {
  const entries = [...groups.values()].map(({ of, sum }) => ({ ...of, ...sum.render() }))
  if (grouping === 'day') return entries.sort((a, b) => ((a.day ?? '') < (b.day ?? '') ? -1 : 1))
  return entries.sort((a, b) => b.total_tokens - a.total_tokens)
}

class Sum {
  private requests = 0
  private errors = 0
  private promptTokens = 0
  private completionTokens = 0
  private estimated = 0
  private cost = 0n
  private unpriced = 0
  private cached = 0
  private cacheWrite = 0
  private reasoning = 0
  private readonly latency: Histogram = new Map()
  private readonly firstByte: Histogram = new Map()

  add(row: UsageDayRow): void {
    this.requests += row.requests
    this.errors += row.errors
    this.promptTokens += row.prompt_tokens
    this.completionTokens += row.completion_tokens
    this.estimated += row.estimated
    this.cost += BigInt(row.cost)
    this.unpriced += row.unpriced
    this.cached += row.cached_tokens
    this.cacheWrite += row.cache_write_tokens
    this.reasoning += row.reasoning_tokens
    merge(this.latency, parseHistogram(row.latency_histogram))
    merge(this.firstByte, parseHistogram(row.first_byte_histogram))
  }

  render(): UsageSums {
    return {
      requests: this.requests,
      errors: this.errors,
      prompt_tokens: this.promptTokens,
      completion_tokens: this.completionTokens,
      total_tokens: this.promptTokens + this.completionTokens,
      estimated_requests: this.estimated,
      cost: renderAmount(this.cost),
      unpriced_requests: this.unpriced,
      cached_tokens: this.cached,
      cache_write_tokens: this.cacheWrite,
      reasoning_tokens: this.reasoning,
      latency_ms: toPercentiles(this.latency),
      first_byte_ms: toPercentiles(this.firstByte),
    }
  }
}

function toPercentiles(whole: Histogram): UsageSums['latency_ms'] {
  const found = percentiles(whole, [0.5, 0.95, 0.99])
  if (found === undefined) return null
  const [p50, p95, p99] = found as [number, number, number]
  return { p50, p95, p99 }
}

/**
 * Moves usage to another tenant, and counts it in that tenant's budgets. Runs in the caller's transaction,
 * which must begin after `usage.flush()`.
 */
export async function moveUsage(
  trx: Database,
  fromTenantId: string,
  toTenantId: string,
): Promise<{ readonly calls: number; readonly days: number }> {
  const days = await trx
    .deleteFrom('usage_days')
    .where('parent_key_id', '=', fromTenantId)
    .returningAll()
    .execute()
  // Uses the same row order as the tracker, which prevents deadlocks.
  const nameOf = (row: UsageDayRow) => [row.day, row.agent_id, row.model, row.provider].join('\n')
  for (const row of days.toSorted((one, other) => (nameOf(one) < nameOf(other) ? -1 : 1)))
    await addDay(trx, { ...row, parent_key_id: toTenantId })
  const used = days.map(({ day, prompt_tokens, completion_tokens, cost: usd }) => ({
    ...{ day, tokens: prompt_tokens + completion_tokens, usd },
  }))
  await bookMovedUsage(trx, toTenantId, used)
  const moved = await trx
    .updateTable('usage_calls')
    .set({ parent_key_id: toTenantId })
    .where('parent_key_id', '=', fromTenantId)
    .executeTakeFirst()
  return { days: days.length, calls: Number(moved.numUpdatedRows) }
}
