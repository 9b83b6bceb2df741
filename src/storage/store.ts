/** What tenants keep, counted over the rows of all rooms that keep bytes; and whose bytes these are. */
import type { Database } from '../deps.ts'

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

/** The installation; undefined while nobody has asked for its id. */
export async function findInstallation(
  db: Database,
): Promise<{ readonly id: string; readonly secret_key_id: string | null } | undefined> {
  return db.selectFrom('installation').select(['id', 'secret_key_id']).executeTakeFirst()
}

/** Names the key of the secret that is shared, where none is named yet or one of these. */
export async function updateSecret(
  db: Database,
  keyId: string,
  formerKeyIds: readonly string[],
): Promise<void> {
  await db
    .updateTable('installation')
    .set({ secret_key_id: keyId })
    .where((where) =>
      where.or([
        where('secret_key_id', 'is', null),
        ...formerKeyIds.map((former) => where('secret_key_id', '=', former)),
      ]),
    )
    .execute()
}

/** Gives the installation an id, unless it has one. */
export async function insertInstallation(db: Database, id: string, now: number): Promise<void> {
  await db
    .insertInto('installation')
    .values({ only: 1, id, created_at: now })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
}

/** Lets one transaction at a time do what is done once in the life of an installation; there is a row of it by then. */
export async function lockInstallation(trx: Database): Promise<void> {
  await trx
    .updateTable('installation')
    .set((row) => ({ id: row.ref('id') }))
    .execute()
}

/** Those of the blobs in a store that any row names, in whichever role. */
export async function listNamedBlobs(
  db: Database,
  store: 'files' | 'artifacts',
  blobs: readonly string[],
): Promise<Set<string>> {
  if (store === 'files') {
    const rows = await db.selectFrom('files').select('blob').where('blob', 'in', blobs).execute()
    return new Set(rows.map(({ blob }) => blob))
  }
  const named = new Set<string>()
  for (const column of ['blob', 'served_blob', 'poster_blob'] as const) {
    const rows = await db.selectFrom('artifacts').select(column).where(column, 'in', blobs).execute()
    for (const row of rows) named.add(String(row[column]))
  }
  return named
}
