/** Lists individual calls that are still within the retention time, newest first. */
import { z } from 'zod'
import { ServiceError } from '../lib/errors.ts'
import { toPage } from '../lib/page.ts'
import type { Dependencies } from './dependencies.ts'
import { FailedAttempt, type UsageCall, type UsageCallList, type UsageCallQuery } from './schema.ts'
import { type CallRange, listCalls, type UsageCallRow } from './store.ts'
import { firstCallIdAt, type UsageTracker } from './tracker.ts'

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
  const { limit, after, agent, model, status } = query
  if (after !== undefined && !callId.test(after))
    throw new ServiceError('invalid_value', 'after: must be the id of a call', { param: 'after' })
  const range = { tenantId, from: firstIdFrom(query.from), before: firstIdAfter(query.to), after }
  if (range.from !== undefined && range.before !== undefined && range.from >= range.before)
    throw new ServiceError('invalid_value', 'from: must not be later than `to`', { param: 'from' })
  await deps.usage.flush()
  const found = await listCalls(deps.db, range, { agent_id: agent, model, status }, limit + 1)
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
    failed_attempts:
      row.failed_attempts === null ? [] : z.array(FailedAttempt).parse(JSON.parse(row.failed_attempts)),
  }
}
