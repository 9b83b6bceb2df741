/** Which artifacts a tenant has, as it lists them. */
import type { Selectable } from 'kysely'
import type { Database } from '../db/database.ts'
import type { ArtifactTable } from '../db/tables.ts'

export type ListedArtifactRow = Selectable<ArtifactTable>

/** A part of the tenant's uploads, newest first: those after that one. Reserved ids, and what expired by `now`, are left out. */
export async function listArtifactPage(
  db: Database,
  tenantId: string,
  now: number,
  limit: number,
  after: Pick<ListedArtifactRow, 'id' | 'created_at'> | undefined,
): Promise<ListedArtifactRow[]> {
  let query = db
    .selectFrom('artifacts')
    .selectAll()
    .where('parent_key_id', '=', tenantId)
    .where('state', '!=', 'unknown')
    .where((where) => where.or([where('expires_at', 'is', null), where('expires_at', '>', now)]))
    .limit(limit)
  if (after !== undefined) {
    query = query.where((row) =>
      row(row.refTuple('created_at', 'id'), '<', row.tuple(after.created_at, after.id)),
    )
  }
  return query.orderBy('created_at', 'desc').orderBy('id', 'desc').execute()
}
