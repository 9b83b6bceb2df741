/** What tenants keep, counted over the rows of all rooms that keep bytes; and whose bytes these are. */
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
  const files = db.selectFrom('files').select(({ fn }) => fn.sum<number>('size_bytes').as('bytes'))
  const artifacts = db.selectFrom('artifacts').select(({ fn }) => fn.sum<number>('kept_bytes').as('bytes'))
  const ofFiles = await files
    .where('parent_key_id', '=', tenantId)
    .where((where) => where.or([where('expires_at', 'is', null), where('expires_at', '>', now)]))
    .executeTakeFirstOrThrow()
  const ofArtifacts = await artifacts
    .where('parent_key_id', '=', tenantId)
    .where((where) => where.or([where('expires_at', 'is', null), where('expires_at', '>', now)]))
    .executeTakeFirstOrThrow()
  return Number(ofFiles.bytes ?? 0) + Number(ofArtifacts.bytes ?? 0)
}

/** The installation's id; undefined while nobody has asked for one. */
export async function findInstallationId(db: Database): Promise<string | undefined> {
  const row = await db.selectFrom('installation').select('id').executeTakeFirst()
  return row?.id
}

/** Gives the installation an id, unless it has one. */
export async function insertInstallation(db: Database, id: string, now: number): Promise<void> {
  await db
    .insertInto('installation')
    .values({ only: 1, id, created_at: now })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
}
