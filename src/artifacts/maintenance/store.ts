/** What the service itself asks of the rows of artifacts, of all tenants: at its start, and to clear away what nobody needs. */
import type { ExpressionBuilder } from 'kysely'
import type { Database } from '../../db/database.ts'
import type { Tables } from '../../db/tables.ts'
import { type ArtifactRow, listStatesBefore, stateAfter, type Upload, type UploadRow } from '../store.ts'

/** Ends every lease: those who had them are gone. */
export async function clearLeases(db: Database): Promise<void> {
  await db.updateTable('artifacts').set({ lease_until: null }).where('lease_until', 'is not', null).execute()
}

/** Uploads under way, of all tenants, in the order of their ids: those behind that one. */
export async function listUploading(db: Database, afterId: string, limit: number): Promise<UploadRow[]> {
  const rows = await db
    .selectFrom('artifacts')
    .selectAll()
    .where('state', 'in', listStatesBefore('complete'))
    .where('id', '>', afterId)
    .orderBy('id')
    .limit(limit)
    .execute()
  return rows as UploadRow[]
}

/** Says that fewer bytes of an upload are there than were written down. */
export async function lowerReceived(db: Database, { blob }: Upload, receivedBytes: number): Promise<void> {
  await db
    .updateTable('artifacts')
    .set({ received_bytes: receivedBytes })
    .where('blob', '=', blob)
    .where('state', 'in', listStatesBefore('complete'))
    .execute()
}

/** Uploads that have all their bytes, of all tenants. */
export async function listCompletable(db: Database, limit: number): Promise<UploadRow[]> {
  const rows = await db
    .selectFrom('artifacts')
    .selectAll()
    .where('state', 'in', listStatesBefore('complete'))
    .whereRef('received_bytes', '=', 'size_bytes')
    .limit(limit)
    .execute()
  return rows as UploadRow[]
}

/** How many uploads are not complete, of all tenants. */
export async function countUploading(db: Database): Promise<number> {
  const row = await db
    .selectFrom('artifacts')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('state', 'in', listStatesBefore('complete'))
    .executeTakeFirstOrThrow()
  return Number(row.count)
}

/**
 * Deletes uploads and reserved ids, of all tenants, whose time is up by `now` and that nobody is writing into: the oldest, and at most
 * `limit`. What is finished has no such time.
 */
export async function deleteExpiredArtifacts(
  db: Database,
  now: number,
  limit: number,
): Promise<Pick<ArtifactRow, 'id' | 'blob'>[]> {
  const rows = await db
    .selectFrom('artifacts')
    .select('id')
    .where(isExpired(now))
    .orderBy('expires_at')
    .limit(limit)
    .execute()
  if (rows.length === 0) return []
  // Asked once more of each row as it is then: somebody may have gone on with an upload meanwhile.
  return db
    .deleteFrom('artifacts')
    .where(
      'id',
      'in',
      rows.map(({ id }) => id),
    )
    .where(isExpired(now))
    .returning(['id', 'blob'])
    .execute()
}

function isExpired(now: number) {
  const states = [...listStatesBefore('create'), ...listStatesBefore('expire')]
  return (where: ExpressionBuilder<Tables, 'artifacts'>) =>
    where.and([
      where('expires_at', '<=', now),
      where('state', 'in', states),
      where.or([where('lease_until', 'is', null), where('lease_until', '<=', now)]),
    ])
}

/** Those of the blobs that some artifact, of whatever tenant, is made of, or will be. */
export async function listOwnedBlobs(db: Database, blobs: readonly string[]): Promise<Set<string>> {
  const owned = new Set<string>()
  for (const column of ['served_blob', 'poster_blob'] as const) {
    const rows = await db.selectFrom('artifacts').select(column).where(column, 'in', blobs).execute()
    for (const row of rows) owned.add(String(row[column]))
  }
  const needed = await db
    .selectFrom('artifacts')
    .select('blob')
    .where('blob', 'in', blobs)
    // As `releaseOriginal` has it.
    .where((where) => where.or([where('state', '<>', stateAfter('convert')), where('acknowledged', '=', 0)]))
    .execute()
  for (const row of needed) owned.add(String(row.blob))
  return owned
}

/** Those of the blobs that some upload under way, of whatever tenant, is growing in. */
export async function listActiveUploadBlobs(db: Database, blobs: readonly string[]): Promise<Set<string>> {
  const rows = await db
    .selectFrom('artifacts')
    .select('blob')
    .where('blob', 'in', blobs)
    .where('state', 'in', listStatesBefore('complete'))
    .execute()
  return new Set(rows.map(({ blob }) => String(blob)))
}
