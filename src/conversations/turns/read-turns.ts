/** Reads turns on behalf of the owner of their conversation. */
import { toPage } from '../../lib/page.ts'
import { listRatingsOfTurns, turnNotFound } from '../ratings/ratings.ts'
import type { Rating } from '../ratings/schema.ts'
import { findOwn, type OperationsDependencies, renderCost, wrongAfter } from '../requests.ts'
import type { TurnDetails, TurnList, TurnObject } from '../schema.ts'
import { findTurn, listTurnPage, type TurnRow } from '../store.ts'

/** @throws ServiceError `invalid_value` if `after` is not the id of a turn in the conversation */
export async function listTurns(
  deps: OperationsDependencies,
  tenantId: string,
  query: { conversation_id: string; limit: number; after?: string | undefined; order: 'asc' | 'desc' },
): Promise<TurnList> {
  const { conversation_id: id, limit, after, order } = query
  const { db } = await findOwn(deps, tenantId, id)
  const last = after === undefined ? undefined : await findTurn(db.read, tenantId, 'id', after)
  if (after !== undefined && last?.conversation_id !== id) throw wrongAfter()
  const rows = await listTurnPage(db.read, id, { limit: limit + 1, after: last?.number, order })
  const page = toPage(rows, limit)
  const ratings = await listRatingsOfTurns(
    db,
    page.rows.map((row) => row.id),
  )
  return {
    object: 'list',
    data: page.rows.map((row) => renderTurn(row, ratings.get(row.id) ?? [])),
    first_id: page.rows[0]?.id ?? null,
    last_id: page.rows.at(-1)?.id ?? null,
    has_more: page.hasMore,
  }
}

/** @throws ServiceError `not_found` */
export async function getTurn(
  { conversations }: OperationsDependencies,
  tenantId: string,
  id: string,
): Promise<TurnDetails> {
  const row = await conversations.reader.findTurn(tenantId, 'id', id)
  if (row === undefined) throw turnNotFound(id)
  const ratings = await listRatingsOfTurns(await conversations.storage.open(), [row.id])
  return { ...renderTurn(row, ratings.get(row.id) ?? []), diagnostics: readDiagnostics(row) }
}

/** Omits the response id, because it gives an agent key access to the response. */
export function renderTurn(row: TurnRow, ratings: Rating[]): TurnObject {
  return {
    id: row.id,
    object: 'turn',
    conversation_id: row.conversation_id,
    number: row.number,
    previous_id: row.previous_id,
    replaced: row.replaced && { how: row.replaced, by: row.replaced_by },
    agent_id: row.agent_id === '' ? null : row.agent_id,
    agent_version: row.agent_version,
    kind: row.kind,
    status: row.status,
    reason: row.reason,
    error_code: row.error_code,
    background: row.background === 1,
    provider: row.provider,
    model: row.model,
    prompt_tokens: row.prompt_tokens,
    completion_tokens: row.completion_tokens,
    cost: renderCost(row.cost),
    first_event_ms: row.first_event_ms,
    duration_ms: row.duration_ms,
    request_id: row.request_id,
    ratings,
    created_at: row.created_at,
    ended_at: row.ended_at,
  }
}

/**
 * Returns the diagnostics of a turn's run. `resumes` is stored separately, because clients can resume a
 * stream even after the turn has ended.
 */
export function readDiagnostics({ diagnostics, resumes }: TurnRow): Record<string, unknown> {
  return { ...JSON.parse(diagnostics), resumes }
}
