/** Reads and writes the `files` table. */
import { type ExpressionBuilder, type Insertable, type Selectable, sql } from 'kysely'
import type { Database } from '../db/database.ts'
import type { FileTable, Tables } from '../db/tables.ts'
import { contains, findListPlace, type ListPlace, type Order, pageOf } from '../lib/page.ts'

export type FileRow = Selectable<FileTable>

/** Sort expressions for lists of files; the id breaks ties. */
export const fileSorts = {
  created: sql.ref('position'),
  name: sql`lower(filename)`,
  size: sql.ref('size_bytes'),
} as const

interface Page {
  readonly limit: number
  readonly after: ListPlace | undefined
  readonly order: Order
  readonly sort: keyof typeof fileSorts
  readonly q: string | undefined
  readonly purpose: string | undefined
}

export async function insertFile(db: Database, row: Insertable<FileTable>): Promise<void> {
  await db.insertInto('files').values(row).execute()
}

/** Ignores files that have expired by `now` (Unix seconds), even before the sweeper deletes them. */
export async function findFile(
  db: Database,
  tenantId: string,
  id: string,
  now: number,
): Promise<FileRow | undefined> {
  return ownFiles(db, tenantId, now).where('id', '=', id).executeTakeFirst()
}

export async function listFileRows(
  db: Database,
  tenantId: string,
  now: number,
  { limit, after, order, sort, q, purpose }: Page,
): Promise<FileRow[]> {
  let query = ownFiles(db, tenantId, now)
  if (q !== undefined) query = query.where(contains(['filename', 'id'], q))
  if (purpose !== undefined) query = query.where('purpose', '=', purpose)
  return pageOf(query, { by: fileSorts[sort], order, after, limit }).execute()
}

/** @throws ServiceError `invalid_value` if the tenant has no file with this id. */
export function findFilePlace(
  db: Database,
  tenantId: string,
  now: number,
  sort: keyof typeof fileSorts,
  id: string | undefined,
): Promise<ListPlace | undefined> {
  return findListPlace(ownFiles(db, tenantId, now), fileSorts[sort], id)
}

export async function deleteFileRow(db: Database, tenantId: string, id: string): Promise<boolean> {
  const result = await db
    .deleteFrom('files')
    .where('id', '=', id)
    .where('parent_key_id', '=', tenantId)
    .executeTakeFirst()
  return result.numDeletedRows > 0n
}

/**
 * Moves a tenant's files to another tenant and returns how many it moved. Runs in the caller's transaction.
 */
export async function moveFiles(db: Database, fromTenantId: string, toTenantId: string): Promise<number> {
  const result = await db
    .updateTable('files')
    .set({ parent_key_id: toTenantId })
    .where('parent_key_id', '=', fromTenantId)
    .executeTakeFirst()
  return Number(result.numUpdatedRows)
}

/** Deletes the oldest expired rows of all tenants and returns the names of their blobs. */
export async function deleteExpiredRows(db: Database, now: number, limit: number): Promise<string[]> {
  const rows = await db
    .deleteFrom('files')
    .where('id', 'in', (query) =>
      query
        .selectFrom('files')
        .select('id')
        .where('expires_at', '<=', now)
        .orderBy('expires_at')
        .limit(limit),
    )
    .returning('blob')
    .execute()
  return rows.map(({ blob }) => blob)
}

export async function listOwnedBlobs(db: Database, blobs: readonly string[]): Promise<Set<string>> {
  const rows = await db.selectFrom('files').select('blob').where('blob', 'in', blobs).execute()
  return new Set(rows.map(({ blob }) => blob))
}

export async function sumFileBytes(db: Database, tenantId: string, now: number): Promise<number> {
  const { bytes } = await db
    .selectFrom('files')
    .select(({ fn }) => fn.sum<number>('size_bytes').as('bytes'))
    .where('parent_key_id', '=', tenantId)
    .where(isUnexpired(now))
    .executeTakeFirstOrThrow()
  return Number(bytes ?? 0)
}

function ownFiles(db: Database, tenantId: string, now: number) {
  return db.selectFrom('files').selectAll().where('parent_key_id', '=', tenantId).where(isUnexpired(now))
}

function isUnexpired(now: number) {
  return (where: ExpressionBuilder<Tables, 'files'>) =>
    where.or([where('expires_at', 'is', null), where('expires_at', '>', now)])
}
