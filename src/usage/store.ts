/** Reads and writes calls and their daily totals. */

import { type CompiledQuery, type Selectable, sql } from 'kysely'
import type { Database } from '../db/database.ts'
import type { UsageCallTable, UsageDayTable } from '../db/tables.ts'
import { dayOf } from './days.ts'
import { histogramOf, merge, parseHistogram, renderHistogram } from './histogram.ts'

/** Lists a tenant's daily totals, oldest first; includes both days. */
export async function listDays(
  db: Database,
  tenantId: string,
  from: string,
  to: string,
  filter: DayFilter = {},
): Promise<UsageDayRow[]> {
  let days = db
    .selectFrom('usage_days')
    .selectAll()
    .where('parent_key_id', '=', tenantId)
    .where('day', '>=', from)
    .where('day', '<=', to)
    .orderBy('day')
  if (filter.agent !== undefined) days = days.where('agent_id', '=', filter.agent)
  if (filter.model !== undefined) days = days.where('model', '=', filter.model)
  return days.execute()
}

/** Returns the last day with calls for each agent id; reads one index entry for each agent. */
export async function listLastDays(
  db: Database,
  tenantId: string,
  agentIds: readonly string[],
): Promise<Map<string, string>> {
  const wanted = sql.join(agentIds.map((id) => sql`(${id})`))
  const { rows } = await sql<{ agent: string; day: string | null }>`
    select wanted.column1 as agent,
      (select max(day) from usage_days where parent_key_id = ${tenantId} and agent_id = wanted.column1) as day
    from (values ${wanted}) as wanted`.execute(db)
  return new Map(rows.flatMap(({ agent, day }) => (day === null ? [] : [[agent, day]])))
}

/** Lists the models that have had unpriced calls since `day`, across all tenants. */
export async function listUnpriced(db: Database, day: string, limit: number): Promise<UnpricedModel[]> {
  const rows = await db
    .selectFrom('usage_days')
    .select(({ fn }) => ['provider', 'model', fn.sum<number>('unpriced').as('requests')])
    .where('unpriced', '>', sql.lit(0))
    .where('day', '>=', day)
    .groupBy(['provider', 'model'])
    .orderBy('requests', 'desc')
    .limit(limit)
    .execute()
  return rows.map(({ provider, model, requests }) => ({ provider, model, requests: Number(requests) }))
}

/** A provider's model that has unpriced calls. */
export interface UnpricedModel {
  readonly provider: string
  readonly model: string
  /** Number of calls. */
  readonly requests: number
}

export interface DayFilter {
  /** Agent id; empty for calls without an agent. */
  readonly agent?: string | undefined
  readonly model?: string | undefined
}

export async function sumSpentSince(
  db: Database,
  owner: { readonly kind: 'parent' | 'agent'; readonly id: string },
  tenantId: string,
  day: string,
): Promise<{ readonly tokens: number; readonly usd: number }> {
  let query = db
    .selectFrom('usage_days')
    .select(({ fn }) => [
      fn.sum<number>('prompt_tokens').as('input'),
      fn.sum<number>('completion_tokens').as('output'),
      fn.sum<number>('cost').as('cost'),
    ])
    .where('parent_key_id', '=', tenantId)
    .where('day', '>=', day)
  if (owner.kind === 'agent') query = query.where('agent_id', '=', owner.id)
  const { input, output, cost } = await query.executeTakeFirstOrThrow()
  const usd = Math.min(Number(cost ?? 0), Number.MAX_SAFE_INTEGER)
  return { tokens: Number(input ?? 0) + Number(output ?? 0), usd }
}

/** Deletes up to `limit` calls with ids before `id`, oldest first; returns how many it deleted. */
export async function deleteCallsBefore(db: Database, id: string, limit: number): Promise<number> {
  const result = await db
    .deleteFrom('usage_calls')
    .where('id', 'in', (query) =>
      query.selectFrom('usage_calls').select('id').where('id', '<', id).orderBy('id').limit(limit),
    )
    .executeTakeFirst()
  return Number(result.numDeletedRows)
}

/** Call ids sort by the time when the call began. */
export interface CallRange {
  /** Undefined for the calls of all tenants. */
  readonly tenantId: string | undefined
  /** Selects the calls of one request, with an index. */
  readonly requestId?: string | undefined
  readonly from: string | undefined
  readonly before: string | undefined
  /** The last id of the previous page. */
  readonly after: string | undefined
}

type CallFilter = { readonly [Column in 'agent_id' | 'model' | 'status']: string | undefined } & {
  /** Nano-dollars. */
  readonly minCost?: bigint | undefined
}

/** Limits how many rows a filtered query examines, so that it is fast even if few calls match. */
const MOST_EXAMINED = 10_000

/**
 * Lists matching calls, newest first. `unreadAfter` is the last examined id if there may be older matching
 * calls.
 */
export async function listCalls(
  db: Database,
  { tenantId, requestId, from, before, after }: CallRange,
  filter: CallFilter,
  limit: number,
): Promise<{ readonly rows: UsageCallRow[]; readonly unreadAfter: string | undefined }> {
  let range = db.selectFrom('usage_calls').orderBy('id', 'desc')
  if (tenantId !== undefined) range = range.where('parent_key_id', '=', tenantId)
  if (requestId !== undefined) range = range.where('request_id', '=', requestId)
  if (from !== undefined) range = range.where('id', '>=', from)
  if (before !== undefined) range = range.where('id', '<', before)
  if (after !== undefined) range = range.where('id', '<', after)
  const examined = range.selectAll().limit(MOST_EXAMINED).as('examined')
  let matching = db.selectFrom(examined).selectAll().orderBy('id', 'desc').limit(limit)
  for (const column of ['agent_id', 'model', 'status'] as const) {
    const value = filter[column]
    if (value !== undefined) matching = matching.where(column, '=', value)
  }
  if (filter.minCost !== undefined) matching = matching.where('cost', '>=', Number(filter.minCost))
  const rows = await matching.execute()
  if (rows.length === limit) return { rows, unreadAfter: undefined }
  const last = await range
    .select('id')
    .offset(MOST_EXAMINED - 1)
    .limit(1)
    .executeTakeFirst()
  return { rows, unreadAfter: last?.id }
}

export type UsageCallRow = Selectable<UsageCallTable>

export type UsageDayRow = Selectable<UsageDayTable>

const dayKey = ['parent_key_id', 'day', 'agent_id', 'model', 'provider'] as const

export async function addDay(trx: Database, sums: UsageDayRow): Promise<void> {
  const before = await trx
    .insertInto('usage_days')
    .values({ ...sums, latency_histogram: '{}', first_byte_histogram: '{}' })
    .onConflict((conflict) =>
      conflict.columns(dayKey).doUpdateSet((row) => ({
        requests: row('usage_days.requests', '+', row.ref('excluded.requests')),
        errors: row('usage_days.errors', '+', row.ref('excluded.errors')),
        prompt_tokens: row('usage_days.prompt_tokens', '+', row.ref('excluded.prompt_tokens')),
        completion_tokens: row('usage_days.completion_tokens', '+', row.ref('excluded.completion_tokens')),
        estimated: row('usage_days.estimated', '+', row.ref('excluded.estimated')),
        cost: row('usage_days.cost', '+', row.ref('excluded.cost')),
        unpriced: row('usage_days.unpriced', '+', row.ref('excluded.unpriced')),
        cached_tokens: row('usage_days.cached_tokens', '+', row.ref('excluded.cached_tokens')),
        cache_write_tokens: row('usage_days.cache_write_tokens', '+', row.ref('excluded.cache_write_tokens')),
        reasoning_tokens: row('usage_days.reasoning_tokens', '+', row.ref('excluded.reasoning_tokens')),
      })),
    )
    .returning(['latency_histogram', 'first_byte_histogram'])
    .executeTakeFirstOrThrow()
  const { parent_key_id, day, agent_id, model, provider } = sums
  await trx
    .updateTable('usage_days')
    .set({
      latency_histogram: sumHistograms(before.latency_histogram, sums.latency_histogram),
      first_byte_histogram: sumHistograms(before.first_byte_histogram, sums.first_byte_histogram),
    })
    .where(({ and }) => and({ parent_key_id, day, agent_id, model, provider }))
    .execute()
}

function sumHistograms(before: string, more: string): string {
  const sum = parseHistogram(before)
  merge(sum, parseHistogram(more))
  return renderHistogram(sum)
}

const DAY_SECONDS = 86_400

/**
 * Sums calls by day, tenant, agent, model and provider. Sorts the sums, so that all writers lock the daily
 * totals in the same order, which prevents deadlocks.
 */
export function sumByDay(calls: readonly UsageCallRow[]): UsageDayRow[] {
  const byDay = Map.groupBy(calls, ({ parent_key_id, agent_id, model, provider, created_at }) =>
    [Math.floor(created_at / DAY_SECONDS), parent_key_id, agent_id, model, provider].join('\n'),
  )
  const sorted = [...byDay].toSorted(([one], [other]) => (one < other ? -1 : 1))
  return sorted.map(([, [first, ...others]]) => sumCalls(first as UsageCallRow, others))
}

function sumCalls(first: UsageCallRow, others: readonly UsageCallRow[]): UsageDayRow {
  const { parent_key_id, agent_id, model, provider, created_at } = first
  const sums = {
    ...{ requests: 0, errors: 0, prompt_tokens: 0, completion_tokens: 0, estimated: 0 },
    ...{ cost: 0, unpriced: 0, cached_tokens: 0, cache_write_tokens: 0, reasoning_tokens: 0 },
  }
  const latencies: number[] = []
  const firstBytes: number[] = []
  for (const call of [first, ...others]) {
    sums.requests += 1
    // A client disconnect is not an error.
    if (call.status !== 'ok' && call.status !== 'left') sums.errors += 1
    sums.prompt_tokens += call.prompt_tokens
    sums.completion_tokens += call.completion_tokens
    sums.estimated += call.is_estimated
    sums.cost += call.cost ?? 0
    if (isUnpriced(call)) sums.unpriced += 1
    sums.cached_tokens += call.cached_tokens
    sums.cache_write_tokens += call.cache_write_tokens
    sums.reasoning_tokens += call.reasoning_tokens
    latencies.push(call.latency_ms)
    if (call.first_byte_ms !== null) firstBytes.push(call.first_byte_ms)
  }
  return {
    ...{ parent_key_id, day: dayOf(created_at * 1000), agent_id, model, provider },
    ...sums,
    latency_histogram: renderHistogram(histogramOf(latencies)),
    first_byte_histogram: renderHistogram(histogramOf(firstBytes)),
  }
}

/** Calls recorded by earlier versions of Parley have neither a number of rounds nor a price. */
function isUnpriced({ cost, rounds, prompt_tokens, completion_tokens }: UsageCallRow): boolean {
  return cost === null && rounds !== null && prompt_tokens + completion_tokens > 0
}

/** A sample row that is used to compile insert statements. */
const anyCall: UsageCallRow = {
  id: '',
  request_id: '',
  parent_key_id: '',
  agent_id: '',
  model: '',
  provider: '',
  status: '',
  prompt_tokens: 0,
  completion_tokens: 0,
  is_estimated: 0,
  is_streamed: 0,
  latency_ms: 0,
  first_byte_ms: 0,
  created_at: 0,
  attempts: 0,
  failed_attempts: null,
  cost: null,
  price_id: null,
  rounds: 0,
  cached_tokens: 0,
  cache_write_tokens: 0,
  reasoning_tokens: 0,
  audio_tokens: 0,
  image_tokens: 0,
}
const callColumns = Object.keys(anyCall) as (keyof UsageCallRow)[]

/**
 * Rows per statement, largest first; only a few sizes, so that the driver can keep the statements prepared.
 */
const statementSizes = [64, 8, 1] as const

/** Compiles the inserts once, because building one per call would add noticeable CPU time to chats. */
export function createCallWriter(db: Database) {
  const inserts = new Map(statementSizes.map((size) => [size, compileInsert(db, size)]))
  return async (trx: Database, rows: readonly UsageCallRow[]): Promise<void> => {
    for (let at = 0; at < rows.length; ) {
      const size = statementSizes.find((candidate) => candidate <= rows.length - at) ?? 1
      const parameters: unknown[] = []
      for (let index = at; index < at + size; index++) {
        const row = rows[index] as UsageCallRow
        for (const column of callColumns) parameters.push(row[column])
      }
      await trx.executeQuery({ ...(inserts.get(size) as CompiledQuery), parameters })
      at += size
    }
  }
}

function compileInsert(db: Database, size: number): CompiledQuery {
  const rows = Array.from({ length: size }, () => anyCall)
  return db.insertInto('usage_calls').values(rows).compile()
}
