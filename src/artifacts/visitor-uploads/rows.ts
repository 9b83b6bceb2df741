/** Reads and writes the rows of visitors' uploads, which are `attachment` artifacts. */
import type { Database } from '../../db/database.ts'
import type { UploadOwner } from '../dependencies.ts'
import { type ArtifactRow, stateAfter, type UploadRow } from '../store.ts'

export const KIND = 'attachment'

/** Finds one of the visitor's complete uploads for this agent. `now` is in Unix seconds. */
export async function findOwnUpload(
  db: Database,
  { tenantId, agentId, visitorId }: UploadOwner,
  id: string,
  now: number,
): Promise<UploadRow | undefined> {
  const row = await db
    .selectFrom('artifacts')
    .selectAll()
    .where('id', '=', id)
    .where('kind', '=', KIND)
    .where('parent_key_id', '=', tenantId)
    .where('agent_id', '=', agentId)
    .where('visitor_id', '=', visitorId)
    .where('state', '=', stateAfter('convert'))
    .where('binned_at', 'is', null)
    .where((where) => where.or([where('expires_at', 'is', null), where('expires_at', '>', now)]))
    .executeTakeFirst()
  return row as UploadRow | undefined
}

/**
 * Returns the start times of the uploads that the visitor has started since `since`, oldest first, in Unix
 * seconds.
 */
export async function listStartTimes(
  db: Database,
  { tenantId, agentId, visitorId }: UploadOwner,
  since: number,
): Promise<number[]> {
  const rows = await db
    .selectFrom('artifacts')
    .select('created_at')
    .where('visitor_id', '=', visitorId)
    .where('created_at', '>', since)
    .where('parent_key_id', '=', tenantId)
    .where('agent_id', '=', agentId)
    .orderBy('created_at')
    .execute()
  return rows.map(({ created_at: at }) => Number(at))
}

/** Sets when complete uploads expire, in Unix seconds; null keeps them. */
export async function setExpiry(
  db: Database,
  ids: readonly string[],
  expiresAt: number | null,
): Promise<void> {
  if (ids.length === 0) return
  await db
    .updateTable('artifacts')
    .set({ expires_at: expiresAt })
    .where('id', 'in', ids)
    .where('kind', '=', KIND)
    .where('state', '=', stateAfter('convert'))
    .execute()
}

/** Transfers a visitor's uploads to another visitor of the same agent. */
export async function moveUploads(
  db: Database,
  { tenantId, agentId, visitorId }: UploadOwner,
  to: string,
): Promise<void> {
  await db
    .updateTable('artifacts')
    .set({ visitor_id: to })
    .where('visitor_id', '=', visitorId)
    .where('kind', '=', KIND)
    .where('parent_key_id', '=', tenantId)
    .where('agent_id', '=', agentId)
    .execute()
}

export async function listAttachments(
  db: Database,
  by: { readonly ids: readonly string[] } | { readonly tenantId: string; readonly visitorId: string },
): Promise<ArtifactRow[]> {
  const rows = db.selectFrom('artifacts').selectAll().where('kind', '=', KIND)
  if ('ids' in by) return by.ids.length === 0 ? [] : rows.where('id', 'in', by.ids).execute()
  const { tenantId, visitorId } = by
  return rows.where('visitor_id', '=', visitorId).where('parent_key_id', '=', tenantId).execute()
}

/** Lists complete uploads that have expired. */
export async function listExpiredUploads(db: Database, now: number, limit: number): Promise<string[]> {
  const rows = await db
    .selectFrom('artifacts')
    .select('id')
    .where('expires_at', '<=', now)
    .where('kind', '=', KIND)
    .where('state', '=', stateAfter('convert'))
    .orderBy('expires_at')
    .limit(limit)
    .execute()
  return rows.map(({ id }) => id)
}

/** Lists complete uploads without an expiry, ordered by id. */
export async function listKeptUploads(db: Database, after: string, limit: number): Promise<string[]> {
  const rows = await db
    .selectFrom('artifacts')
    .select('id')
    .where('state', '=', stateAfter('convert'))
    .where('kind', '=', KIND)
    .where('expires_at', 'is', null)
    .where('id', '>', after)
    .orderBy('id')
    .limit(limit)
    .execute()
  return rows.map(({ id }) => id)
}
