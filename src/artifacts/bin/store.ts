/** Reads and writes the artifacts in the bin. */
import type { Database } from '../../db/database.ts'
import { stateAfter, type UploadRow } from '../store.ts'

export type BinnedUpload = UploadRow & { readonly binned_at: number }

/** Moves an artifact to the bin. Returns undefined if it is not ready, is already there or is missing. */
export async function insertIntoBin(
  db: Database,
  tenantId: string,
  id: string,
  now: number,
): Promise<BinnedUpload | undefined> {
  const row = await db
    .updateTable('artifacts')
    .set({ binned_at: now })
    .where('id', '=', id)
    .where('parent_key_id', '=', tenantId)
    .where('state', '=', stateAfter('convert'))
    .where('binned_at', 'is', null)
    .returningAll()
    .executeTakeFirst()
  return row as BinnedUpload | undefined
}

/** Moves an artifact out of the bin. Returns undefined if it is not in the tenant's bin. */
export async function removeFromBin(
  db: Database,
  tenantId: string,
  id: string,
): Promise<UploadRow | undefined> {
  const row = await db
    .updateTable('artifacts')
    .set({ binned_at: null })
    .where('id', '=', id)
    .where('parent_key_id', '=', tenantId)
    .where('binned_at', 'is not', null)
    .returningAll()
    .executeTakeFirst()
  return row as UploadRow | undefined
}

export function binnedArtifacts(db: Database, tenantId: string) {
  return db
    .selectFrom('artifacts')
    .selectAll()
    .where('parent_key_id', '=', tenantId)
    .where('binned_at', 'is not', null)
}

/** Lists artifacts of all tenants that were moved to the bin at or before `binnedBy`, oldest first. */
export async function listOverdue(db: Database, binnedBy: number, limit: number): Promise<BinnedUpload[]> {
  const rows = await db
    .selectFrom('artifacts')
    .selectAll()
    .where('binned_at', '<=', binnedBy)
    .orderBy('binned_at')
    .limit(limit)
    .execute()
  return rows as BinnedUpload[]
}
