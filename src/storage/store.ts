/** What tenants keep, counted over the rows of all rooms that keep bytes. */
import type { Database } from '../deps.ts'

/** Lets one transaction at a time add to what the tenant keeps: the others wait here until it is over. */
export async function lockTenant(trx: Database, tenantId: string): Promise<void> {
  await trx
    .updateTable('parent_keys')
    .set((row) => ({ name: row.ref('name') }))
    .where('id', '=', tenantId)
    .execute()
}

/** What has expired by `now` (Unix seconds) is not counted any more, whether it was swept or not. */
export async function sumKeptBytes(db: Database, tenantId: string, now: number): Promise<number> {
  const { bytes } = await db
    .selectFrom('files')
    .select(({ fn }) => fn.sum<number>('size_bytes').as('bytes'))
    .where('parent_key_id', '=', tenantId)
    .where((where) => where.or([where('expires_at', 'is', null), where('expires_at', '>', now)]))
    .executeTakeFirstOrThrow()
  return Number(bytes ?? 0)
}
