/** The rows of artifacts; their bytes lie where blobs grow, and then in the blob store. */
import type { CompiledQuery, Insertable, Selectable, Updateable } from 'kysely'
import type { ArtifactTable } from '../db/tables.ts'
import type { Database } from '../deps.ts'
import { listStatesBefore, type Occurrence, stateAfter } from './state.ts'

export type ArtifactRow = Selectable<ArtifactTable>

/** A row whose upload has begun. */
export type UploadRow = ArtifactRow & {
  readonly segment: string
  readonly blob: string
  readonly kind: NonNullable<ArtifactTable['kind']>
  readonly filename: string
}

/** What a status is made of. */
const viewColumns = [
  'id',
  'parent_key_id',
  'state',
  'kind',
  'related_to',
  'name',
  'size_bytes',
  'received_bytes',
  'progress_permille',
  'conversion_result',
  'conversion_reason',
  'acknowledged',
  'outcome',
  'expires_at',
] as const

export type ArtifactViewRow = Pick<ArtifactRow, (typeof viewColumns)[number]>

const viewQueries = new WeakMap<Database, CompiledQuery<ArtifactViewRow>>()

/** What a status is made of. The query is compiled once, for this is asked ten thousand times a second. */
export async function findViewRow(
  db: Database,
  tenantId: string,
  id: string,
): Promise<ArtifactViewRow | undefined> {
  let query = viewQueries.get(db)
  if (query === undefined) {
    const anyone = ''
    query = viewRows(db).where('id', '=', anyone).where('parent_key_id', '=', anyone).compile()
    viewQueries.set(db, query)
  }
  const { rows } = await db.executeQuery<ArtifactViewRow>({ ...query, parameters: [id, tenantId] })
  return rows[0]
}

/** A tenant's artifact, or the id it has reserved; what has expired by `now` (Unix seconds) is not found any more. */
export async function findArtifact(
  db: Database,
  tenantId: string,
  id: string,
  now: number,
): Promise<ArtifactRow | undefined> {
  return liveArtifacts(db, now).where('id', '=', id).where('parent_key_id', '=', tenantId).executeTakeFirst()
}

/** A tenant's upload by its address, be it under way or finished. */
export async function findUpload(
  db: Database,
  tenantId: string,
  segment: string,
  now: number,
): Promise<UploadRow | undefined> {
  const row = await liveArtifacts(db, now)
    .where('segment', '=', segment)
    .where('parent_key_id', '=', tenantId)
    .executeTakeFirst()
  return row as UploadRow | undefined
}

/** The row of that id, of whatever tenant and however old: for the service's own work. */
export async function findAnyArtifact(db: Database, id: string): Promise<ArtifactRow | undefined> {
  return db.selectFrom('artifacts').selectAll().where('id', '=', id).executeTakeFirst()
}

export async function insertArtifact(db: Database, row: Insertable<ArtifactTable>): Promise<void> {
  await db.insertInto('artifacts').values(row).execute()
}

/** Begins the upload of a reserved id; false when it is not reserved by that tenant any more. */
export async function beginReserved(
  db: Database,
  tenantId: string,
  id: string,
  values: Updateable<ArtifactTable>,
): Promise<boolean> {
  const result = await db
    .updateTable('artifacts')
    .set({ ...values, state: stateAfter('create') })
    .where('id', '=', id)
    .where('parent_key_id', '=', tenantId)
    .where('state', 'in', listStatesBefore('create'))
    .executeTakeFirst()
  return result.numUpdatedRows > 0n
}

/** Makes room for an id of whatever tenant whose time is up, but which was not swept yet. */
export async function deleteExpired(db: Database, id: string, now: number): Promise<void> {
  await db.deleteFrom('artifacts').where('id', '=', id).where('expires_at', '<=', now).execute()
}

/** Takes the lease of an upload when nobody has it, under a new fence; answers with the row as it is then. */
export async function acquireLease(
  db: Database,
  id: string,
  now: number,
  until: number,
): Promise<UploadRow | undefined> {
  const row = await db
    .updateTable('artifacts')
    .set((current) => ({ fence: current('fence', '+', 1), lease_until: until }))
    .where('id', '=', id)
    .where('state', 'in', listStatesBefore('complete'))
    .where((where) => where.or([where('lease_until', 'is', null), where('lease_until', '<=', now)]))
    .returningAll()
    .executeTakeFirst()
  return row as UploadRow | undefined
}

/** A lease somebody holds. */
export interface Lease {
  readonly id: string
  readonly fence: number
}

/** Writes what the holder of a lease has found out; false when the lease is another's by now, or the upload is gone. */
export async function updateLeased(
  db: Database,
  { id, fence }: Lease,
  values: Updateable<ArtifactTable>,
): Promise<boolean> {
  return isUpdated(leased(db, { id, fence }).set(values))
}

/** As `updateLeased`, on top of as many received bytes as the holder knows of. */
export async function updateReceived(
  db: Database,
  lease: Lease,
  beforeBytes: number,
  values: Updateable<ArtifactTable>,
): Promise<boolean> {
  return isUpdated(leased(db, lease).where('received_bytes', '=', beforeBytes).set(values))
}

/** Makes that happen to an artifact, if it can in its state; false when it cannot, or there is none. */
export async function moveArtifact(
  db: Database,
  id: string,
  occurrence: Exclude<Occurrence, 'expire' | 'reject' | 'remove'>,
  values: Updateable<ArtifactTable>,
): Promise<boolean> {
  return isUpdated(
    db
      .updateTable('artifacts')
      .set({ ...values, state: stateAfter(occurrence) })
      .where('id', '=', id)
      .where('state', 'in', listStatesBefore(occurrence)),
  )
}

/** Makes an artifact unknown again, if that can happen in its state; answers with what it was. */
export async function removeArtifact(
  db: Database,
  id: string,
  occurrence: 'reject' | 'remove',
): Promise<UploadRow | undefined> {
  const row = await db
    .deleteFrom('artifacts')
    .where('id', '=', id)
    .where('state', 'in', listStatesBefore(occurrence))
    .returningAll()
    .executeTakeFirst()
  return row as UploadRow | undefined
}

/** Hands all artifacts of a tenant to another; answers how many they were. */
export async function updateArtifactOwners(
  db: Database,
  fromTenantId: string,
  toTenantId: string,
): Promise<number> {
  const result = await db
    .updateTable('artifacts')
    .set({ parent_key_id: toTenantId })
    .where('parent_key_id', '=', fromTenantId)
    .executeTakeFirst()
  return Number(result.numUpdatedRows)
}

function viewRows(db: Database) {
  return db.selectFrom('artifacts').select(viewColumns)
}

function liveArtifacts(db: Database, now: number) {
  return db
    .selectFrom('artifacts')
    .selectAll()
    .where((where) => where.or([where('expires_at', 'is', null), where('expires_at', '>', now)]))
}

function leased(db: Database, { id, fence }: Lease) {
  return db
    .updateTable('artifacts')
    .where('id', '=', id)
    .where('fence', '=', fence)
    .where('state', 'in', listStatesBefore('complete'))
}

async function isUpdated(update: {
  executeTakeFirst(): Promise<{ numUpdatedRows: bigint } | undefined>
}): Promise<boolean> {
  const result = await update.executeTakeFirst()
  return (result?.numUpdatedRows ?? 0n) > 0n
}
