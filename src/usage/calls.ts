/** Lists, exports and sums individual calls within the retention period. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { z } from 'zod'
import { ServiceError } from '../lib/errors.ts'
import { toPage } from '../lib/page.ts'
import { renderAmount } from '../prices/money.ts'
import { nanoOf } from '../prices/rates.ts'
import { firstCallIdAt } from './call-ids.ts'
import type { Dependencies } from './dependencies.ts'
import {
  FailedAttempt,
  type UsageCall,
  type UsageCallList,
  type UsageCallQuery,
  type UsageExportQuery,
} from './schema.ts'
import { type CallRange, listCalls, sumByDay, type UsageCallRow, type UsageDayRow } from './store.ts'
import type { UsageTracker } from './tracker.ts'

const callId = /^\d{15}-\w{6}-[0-9a-z]{1,11}$/
const DAY_MS = 86_400_000

/**
 * Lists calls of one tenant, or of all tenants if `tenantId` is undefined. @throws ServiceError
 * `invalid_value` if `after` is not the id of a call, or `from` is later than `to`.
 */
export async function readCalls(
  deps: Pick<Dependencies, 'db'> & { readonly usage: UsageTracker },
  tenantId: string | undefined,
  query: Omit<UsageCallQuery, 'key'>,
): Promise<UsageCallList> {
  const { limit, after, agent, model, status, min_cost, request_id } = query
  if (after !== undefined && !callId.test(after))
    throw new ServiceError('invalid_value', 'after: must be the id of a call', { param: 'after' })
  const range = {
    tenantId,
    requestId: request_id,
    from: firstIdFrom(query.from),
    before: firstIdAfter(query.to),
    after,
  }
  if (range.from !== undefined && range.before !== undefined && range.from >= range.before)
    throw new ServiceError('invalid_value', 'from: must not be later than `to`', { param: 'from' })
  await deps.usage.flush()
  const found = await listCalls(
    deps.db,
    range,
    { agent_id: agent, model, status, minCost: nanoOf(min_cost) },
    limit + 1,
  )
  const { rows, hasMore } = toPage(found.rows, limit)
  const next = hasMore ? rows.at(-1)?.id : found.unreadAfter
  return {
    object: 'list',
    data: rows.map(renderCall),
    has_more: next !== undefined,
    next_after: next ?? null,
  }
}

function firstIdFrom(moment: string | number | undefined): CallRange['from'] {
  if (moment === undefined) return undefined
  return firstCallIdAt(typeof moment === 'number' ? moment * 1000 : Date.parse(moment))
}

function firstIdAfter(moment: string | number | undefined): CallRange['before'] {
  if (moment === undefined) return undefined
  return firstCallIdAt(typeof moment === 'number' ? (moment + 1) * 1000 : Date.parse(moment) + DAY_MS)
}

function renderCall(row: UsageCallRow): UsageCall {
  return {
    id: row.id,
    request_id: row.request_id,
    key: row.parent_key_id,
    agent: row.agent_id === '' ? null : row.agent_id,
    model: row.model,
    provider: row.provider,
    status: row.status,
    prompt_tokens: row.prompt_tokens,
    completion_tokens: row.completion_tokens,
    total_tokens: row.prompt_tokens + row.completion_tokens,
    estimated: row.is_estimated === 1,
    streamed: row.is_streamed === 1,
    latency_ms: row.latency_ms,
    first_byte_ms: row.first_byte_ms,
    created_at: row.created_at,
    attempts: row.attempts,
    cost: row.cost === null ? null : renderAmount(BigInt(row.cost)),
    price_id: row.price_id,
    rounds: row.rounds,
    cached_tokens: row.cached_tokens,
    cache_write_tokens: row.cache_write_tokens,
    reasoning_tokens: row.reasoning_tokens,
    audio_tokens: row.audio_tokens,
    image_tokens: row.image_tokens,
    failed_attempts:
      row.failed_attempts === null ? [] : z.array(FailedAttempt).parse(JSON.parse(row.failed_attempts)),
  }
}

/** Number of calls that a sum reads per query. */
const SUM_SIZE = 1_000

/**
 * Sums a tenant's matching calls by day, agent and model, in batches, so that other requests can run in
 * between.
 */
export async function* sumMatchingCalls(
  db: Dependencies['db'],
  tenantId: string,
  { from, to, agent, model, status }: CallDays,
): AsyncGenerator<UsageDayRow[]> {
  const range = { tenantId, from: firstIdFrom(from), before: firstIdAfter(to) }
  for (let after: string | undefined; ; ) {
    const filter = { agent_id: agent, model, status }
    const { rows, unreadAfter } = await listCalls(db, { ...range, after }, filter, SUM_SIZE)
    yield sumByDay(rows)
    after = rows.length === SUM_SIZE ? rows.at(-1)?.id : unreadAfter
    if (after === undefined) return
    await nextTurn()
  }
}

/** First and last day (UTC), and filters. */
interface CallDays extends Pick<UsageCallQuery, 'agent' | 'model' | 'status'> {
  readonly from: string
  readonly to: string
}

/** Number of calls that an export reads per query. */
const PAGE_SIZE = 100

type Cell = string | number | boolean | null

const columns: readonly (readonly [name: string, read: (call: UsageCall) => Cell])[] = [
  ['id', ({ id }) => id],
  ['created_at', ({ created_at: at }) => new Date(at * 1000).toISOString()],
  ['request_id', (call) => call.request_id],
  ['key', ({ key }) => key],
  ['agent', ({ agent }) => agent],
  ['provider', ({ provider }) => provider],
  ['model', ({ model }) => model],
  ['status', ({ status }) => status],
  ['prompt_tokens', (call) => call.prompt_tokens],
  ['completion_tokens', (call) => call.completion_tokens],
  ['estimated', ({ estimated }) => estimated],
  ['streamed', ({ streamed }) => streamed],
  ['latency_ms', (call) => call.latency_ms],
  ['first_byte_ms', (call) => call.first_byte_ms],
  ['attempts', ({ attempts }) => attempts],
  ['failed_attempts', renderFailures],
  ['cost', ({ cost }) => cost],
  ['price_id', (call) => call.price_id],
  ['rounds', ({ rounds }) => rounds],
  ['cached_tokens', (call) => call.cached_tokens],
  ['cache_write_tokens', (call) => call.cache_write_tokens],
  ['reasoning_tokens', (call) => call.reasoning_tokens],
]

/**
 * Yields the calls of one tenant, or of all tenants if `tenantId` is undefined, as CSV (RFC 4180), one page
 * at a time.
 * @throws ServiceError `invalid_value` before the first page if `from` is later than `to`.
 */
export async function* exportCalls(
  deps: Pick<Dependencies, 'db'> & { readonly usage: UsageTracker },
  tenantId: string | undefined,
  query: Omit<UsageExportQuery, 'key'>,
): AsyncGenerator<string, void, void> {
  let head = toLine(columns.map(([name]) => name))
  for (let after: string | undefined; ; ) {
    const page = await readCalls(deps, tenantId, { ...query, after, limit: PAGE_SIZE })
    yield head + page.data.map((call) => toLine(columns.map(([, read]) => read(call)))).join('')
    head = ''
    if (page.next_after === null) return
    after = page.next_after
  }
}

function renderFailures({ failed_attempts: failed }: UsageCall): string {
  return failed.map(({ provider, model, reason }) => `${provider}/${model}: ${reason}`).join('; ')
}

function toLine(cells: readonly Cell[]): string {
  return `${cells.map(toCell).join(',')}\r\n`
}

/** Adds an apostrophe to text that a spreadsheet would treat as a formula. */
function toCell(value: Cell): string {
  if (typeof value !== 'string') return value === null ? '' : String(value)
  const safe = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}
