/** Rows of calls, and of their sums by day. */

import type { Selectable } from 'kysely'
import type { Database } from '../db/database.ts'
import type { UsageCallTable, UsageDayTable } from '../db/tables.ts'

/** Daily sums of a tenant including both days, oldest first. */
export async function listDays(
  db: Database,
  tenantId: string,
  from: string,
  to: string,
): Promise<UsageDayRow[]> {
  return db
    .selectFrom('usage_days')
    .selectAll()
    .where('parent_key_id', '=', tenantId)
    .where('day', '>=', from)
    .where('day', '<=', to)
    .orderBy('day')
    .execute()
}

export async function sumTokensSince(
  db: Database,
  owner: { readonly kind: 'parent' | 'agent'; readonly id: string },
  tenantId: string,
  day: string,
): Promise<number> {
  let query = db
    .selectFrom('usage_days')
    .select(({ fn }) => [
      fn.sum<number>('prompt_tokens').as('input'),
      fn.sum<number>('completion_tokens').as('output'),
    ])
    .where('parent_key_id', '=', tenantId)
    .where('day', '>=', day)
  if (owner.kind === 'agent') query = query.where('agent_id', '=', owner.id)
  const { input, output } = await query.executeTakeFirstOrThrow()
  return Number(input ?? 0) + Number(output ?? 0)
}

/** Deletes the oldest calls with an id before `id`, at most `limit`; returns their number. */
export async function deleteCallsBefore(db: Database, id: string, limit: number): Promise<number> {
  const result = await db
    .deleteFrom('usage_calls')
    .where('id', 'in', (query) =>
      query.selectFrom('usage_calls').select('id').where('id', '<', id).orderBy('id').limit(limit),
    )
    .executeTakeFirst()
  return Number(result.numDeletedRows)
}

export type UsageCallRow = Selectable<UsageCallTable>

export type UsageDayRow = Selectable<UsageDayTable>
