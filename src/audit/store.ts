/** The rows of what was done; they are kept for good. */
import type { Selectable } from 'kysely'
import type { Database } from '../db/database.ts'
import type { AuditEventTable } from '../db/tables.ts'

export type AuditRow = Selectable<AuditEventTable>

export async function insertAuditRow(db: Database, row: AuditRow): Promise<void> {
  await db.insertInto('audit_events').values(row).execute()
}

/** Which rows; `before` and `notBefore` are ids, or beginnings of ids. */
export interface AuditSlice {
  readonly limit: number
  readonly before: readonly (string | undefined)[]
  readonly notBefore: string | undefined
  readonly action?: string | undefined
  readonly actor?: string | undefined
  readonly target?: string | undefined
}

/** Newest first. */
export async function listAuditRows(db: Database, slice: AuditSlice): Promise<AuditRow[]> {
  const { limit, before, notBefore, action, actor, target } = slice
  let query = db.selectFrom('audit_events').selectAll().orderBy('id', 'desc').limit(limit)
  for (const id of before) if (id !== undefined) query = query.where('id', '<', id)
  if (notBefore !== undefined) query = query.where('id', '>=', notBefore)
  if (action !== undefined) query = query.where('action', '=', action)
  if (actor !== undefined) query = query.where('actor', '=', actor)
  if (target !== undefined) query = query.where('target_id', '=', target)
  return query.execute()
}
