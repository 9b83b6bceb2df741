/** Reads and writes the `artifacts` table, and defines the states of an artifact. */
import type { CompiledQuery, ExpressionBuilder, Insertable, Selectable, Updateable } from 'kysely'
import type { Database } from '../db/database.ts'
import type { ArtifactTable, Tables } from '../db/tables.ts'
import { contains, type ListPlace, type Order, pageOf, type SortKey } from '../lib/page.ts'

/**
 * An `unknown` artifact was never uploaded, is only reserved, or was deleted. `processing` lasts until a file
 * can be served.
 */
export const states = ['unknown', 'uploading', 'processing', 'ready'] as const

export type State = (typeof states)[number]

/** Maps each event to its state transitions. An event is invalid in states that it does not list. */
const transitions = {
  create: { unknown: 'uploading' },
  complete: { uploading: 'processing' },
  convert: { processing: 'ready' },
  expire: { uploading: 'unknown' },
  /** The checksum does not match, or the content is dangerous. */
  reject: { uploading: 'unknown', processing: 'unknown' },
  remove: { uploading: 'unknown', processing: 'unknown', ready: 'unknown' },
} as const satisfies Record<string, Partial<Record<State, State>>>

export type StateEvent = keyof typeof transitions

export const stateEvents = Object.keys(transitions) as readonly StateEvent[]

export function findNextState(state: State, occurrence: StateEvent): State | undefined {
  const next: Partial<Record<State, State>> = transitions[occurrence]
  return next[state]
}

/** Lists the states in which the event is valid, for the `where` clause of its update. */
export function listStatesBefore(occurrence: StateEvent): State[] {
  return states.filter((state) => findNextState(state, occurrence) !== undefined)
}

export function stateAfter(occurrence: StateEvent): State {
  const [before] = listStatesBefore(occurrence)
  return findNextState(before as State, occurrence) as State
}

export type ArtifactRow = Selectable<ArtifactTable>

export type UploadRow = ArtifactRow & {
  readonly segment: string
  readonly blob: string
  readonly kind: NonNullable<ArtifactTable['kind']>
  readonly filename: string
}

export function isUpload(row: ArtifactRow): row is UploadRow {
  return row.state !== 'unknown'
}

const viewColumns = [
  'id',
  'parent_key_id',
  'state',
  'kind',
  'related_to',
  'name',
  'size_bytes',
  'received_bytes',
  'arrived_bytes',
  'lease_until',
  'progress_permille',
  'conversion_result',
  'conversion_reason',
  'sha256',
  'acknowledged',
  'outcome',
  'expires_at',
  'binned_at',
] as const

export type ArtifactViewRow = Pick<ArtifactRow, (typeof viewColumns)[number]>

const viewQueries = new WeakMap<Database, CompiledQuery<ArtifactViewRow>>()

/** Reads the columns that a status needs. Caches the compiled query, because status requests are frequent. */
export async function findViewRow(
  db: Database,
  tenantId: string,
  id: string,
): Promise<ArtifactViewRow | undefined> {
  let query = viewQueries.get(db)
  if (query === undefined) {
    const anyone = ''
    query = db
      .selectFrom('artifacts')
      .select(viewColumns)
      .where('id', '=', anyone)
      .where('parent_key_id', '=', anyone)
      .compile()
    viewQueries.set(db, query)
  }
  const { rows } = await db.executeQuery<ArtifactViewRow>({ ...query, parameters: [id, tenantId] })
  return rows[0]
}

/**
 * Finds a tenant's artifact or reserved id, unless it is in the bin or expired at or before `now` (Unix
 * seconds).
 */
export async function findArtifact(
  db: Database,
  tenantId: string,
  id: string,
  now: number,
): Promise<ArtifactRow | undefined> {
  return liveArtifacts(db, tenantId, now).where('id', '=', id).executeTakeFirst()
}

export async function findUpload(
  db: Database,
  tenantId: string,
  segment: string,
  now: number,
): Promise<UploadRow | undefined> {
  const row = await liveArtifacts(db, tenantId, now).where('segment', '=', segment).executeTakeFirst()
  return row as UploadRow | undefined
}

/** Finds an upload regardless of its tenant and expiry. */
export async function findUploadRow(db: Database, { blob }: Upload): Promise<UploadRow | undefined> {
  const row = await db.selectFrom('artifacts').selectAll().where('blob', '=', blob).executeTakeFirst()
  return row as UploadRow | undefined
}

export async function insertArtifact(db: Database, row: Insertable<ArtifactTable>): Promise<void> {
  await db.insertInto('artifacts').values(row).execute()
}

/** Turns a reserved id into an upload. Returns false if the reservation no longer exists. */
export async function beginReserved(
  db: Database,
  tenantId: string,
  id: string,
  values: Updateable<ArtifactTable>,
): Promise<boolean> {
  return isUpdated(
    db
      .updateTable('artifacts')
      .set({ ...values, state: stateAfter('create') })
      .where('id', '=', id)
      .where('parent_key_id', '=', tenantId)
      .where('state', 'in', listStatesBefore('create')),
  )
}

/** Deletes an expired row that the sweeper has not deleted yet, so that its id can be used again. */
export async function deleteExpired(db: Database, id: string, now: number): Promise<void> {
  await db.deleteFrom('artifacts').where('id', '=', id).where('expires_at', '<=', now).execute()
}

/** Identifies an upload by its blob, because a later upload of the same artifact can have the same fence. */
export type Upload = Pick<UploadRow, 'blob'>

/**
 * Acquires a released lease with a new fence and returns the updated row. Returns undefined if the lease is
 * held or has expired.
 */
export async function acquireReleasedLease(
  db: Database,
  upload: Upload,
  until: number,
): Promise<UploadRow | undefined> {
  const row = await leasing(db, upload, until).where('lease_until', 'is', null).executeTakeFirst()
  return row as UploadRow | undefined
}

/** Like `acquireReleasedLease`, but also acquires an expired lease, whose holder may still be running. */
export async function acquireLease(
  db: Database,
  upload: Upload,
  now: number,
  until: number,
): Promise<UploadRow | undefined> {
  const row = await leasing(db, upload, until)
    .where((where) => where.or([where('lease_until', 'is', null), where('lease_until', '<=', now)]))
    .executeTakeFirst()
  return row as UploadRow | undefined
}

type Lease = Pick<UploadRow, 'blob' | 'fence'>

/** Takes over a lease that is held under the given fence. Returns undefined if the fence has changed. */
export async function stealLease(db: Database, lease: Lease, until: number): Promise<UploadRow | undefined> {
  const row = await leasing(db, lease, until).where('fence', '=', lease.fence).executeTakeFirst()
  return row as UploadRow | undefined
}

function leasing(db: Database, { blob }: Upload, until: number) {
  return db
    .updateTable('artifacts')
    .set((current) => ({ fence: current('fence', '+', 1), lease_until: until, arrived_bytes: 0 }))
    .where('blob', '=', blob)
    .where('state', 'in', listStatesBefore('complete'))
    .returningAll()
}

/** Updates an upload for its lease holder. Returns false if the lease was lost or the upload was deleted. */
export async function updateLeased(
  db: Database,
  lease: Lease,
  values: Updateable<ArtifactTable>,
): Promise<boolean> {
  return isUpdated(updateActiveUpload(db, lease, values))
}

/** Like `updateLeased`, but only if `received_bytes` still equals `beforeBytes`. */
export async function updateReceived(
  db: Database,
  lease: Lease,
  beforeBytes: number,
  values: Updateable<ArtifactTable>,
): Promise<boolean> {
  return isUpdated(updateActiveUpload(db, lease, values).where('received_bytes', '=', beforeBytes))
}

export function completeLeased(
  db: Database,
  lease: Lease,
  values: Updateable<ArtifactTable>,
): Promise<boolean> {
  return updateLeased(db, lease, { ...values, state: stateAfter('complete') })
}

export async function convertArtifact(
  db: Database,
  upload: Upload,
  values: Updateable<ArtifactTable>,
): Promise<boolean> {
  return isUpdated(
    updating(db, upload, { ...values, state: stateAfter('convert') }).where(
      'state',
      'in',
      listStatesBefore('convert'),
    ),
  )
}

/**
 * Raises the conversion progress. Returns false if it would not increase, or if the artifact is ready or
 * deleted.
 */
export async function raiseProgress(db: Database, upload: Upload, permille: number): Promise<boolean> {
  return isUpdated(
    updating(db, upload, { progress_permille: permille })
      .where('state', 'in', listStatesBefore('convert'))
      .where('progress_permille', '<', permille),
  )
}

export async function updateUpload(
  db: Database,
  upload: Upload,
  values: Pick<Updateable<ArtifactTable>, 'acknowledged' | 'outcome' | 'sha256'>,
): Promise<boolean> {
  return isUpdated(updating(db, upload, values))
}

/** Excludes the original from the quota. Returns false if the original is still needed or served. */
export async function releaseOriginal(db: Database, { blob }: Upload): Promise<boolean> {
  return isUpdated(
    db
      .updateTable('artifacts')
      .set(({ eb, fn, lit }) => ({
        kept_bytes: eb(fn.coalesce('served_bytes', lit(0)), '+', fn.coalesce('poster_bytes', lit(0))),
      }))
      .where('blob', '=', blob)
      .where('state', '=', stateAfter('convert'))
      .where('acknowledged', '=', 1)
      .whereRef('served_blob', '<>', 'blob'),
  )
}

/**
 * Deletes an artifact from the bin if `isBinned` is true; otherwise, only outside the bin. Returns false if it
 * was not deleted.
 */
export async function removeArtifact(
  db: Database,
  { blob }: Upload,
  occurrence: 'reject' | 'remove',
  isBinned = false,
): Promise<boolean> {
  const result = await db
    .deleteFrom('artifacts')
    .where('blob', '=', blob)
    .where('state', 'in', listStatesBefore(occurrence))
    .where('binned_at', isBinned ? 'is not' : 'is', null)
    .executeTakeFirst()
  return result.numDeletedRows > 0n
}

/**
 * Moves all of a tenant's artifacts, active uploads and reserved ids to another tenant and returns how many
 * it moved. Their tokens stay bound to the previous tenant's key.
 */
export async function moveArtifacts(db: Database, fromTenantId: string, toTenantId: string): Promise<number> {
  const result = await db
    .updateTable('artifacts')
    .set({ parent_key_id: toTenantId })
    .where('parent_key_id', '=', fromTenantId)
    .executeTakeFirst()
  await db
    .updateTable('artifact_endings')
    .set({ parent_key_id: toTenantId })
    .where('parent_key_id', '=', fromTenantId)
    .execute()
  return Number(result.numUpdatedRows)
}

/**
 * Returns how many bytes of the tenant's quota its artifacts use, including those in the bin. Ignores rows
 * that expired by `now`.
 */
export async function sumArtifactBytes(db: Database, tenantId: string, now: number): Promise<number> {
  const { bytes } = await db
    .selectFrom('artifacts')
    .select(({ fn }) => fn.sum<number>('kept_bytes').as('bytes'))
    .where('parent_key_id', '=', tenantId)
    .where(isUnexpired(now))
    .executeTakeFirstOrThrow()
  return Number(bytes ?? 0)
}

interface ArtifactFilter {
  readonly by: SortKey
  readonly order: Order
  readonly after: ListPlace | undefined
  readonly limit: number
  readonly q?: string | undefined
  readonly kind?: ArtifactTable['kind'] | undefined
  readonly state?: State | undefined
}

/** Lists a tenant's uploads; omits reserved ids and uploads that expired by `now`. */
export async function listArtifactRows(
  db: Database,
  tenantId: string,
  now: number,
  { q, kind, state, ...page }: ArtifactFilter,
): Promise<ArtifactRow[]> {
  let query = liveArtifacts(db, tenantId, now).where('state', '!=', 'unknown')
  if (q !== undefined) query = query.where(contains(['name', 'filename', 'id'], q))
  if (kind != null) query = query.where('kind', '=', kind)
  if (state !== undefined) query = query.where('state', '=', state)
  return pageOf(query, page).execute()
}

/** Selects a tenant's artifacts and reserved ids, except those that are in the bin or expired by `now`. */
export function liveArtifacts(db: Database, tenantId: string, now: number) {
  return db
    .selectFrom('artifacts')
    .selectAll()
    .where('parent_key_id', '=', tenantId)
    .where('binned_at', 'is', null)
    .where(isUnexpired(now))
}

function isUnexpired(now: number) {
  return (where: ExpressionBuilder<Tables, 'artifacts'>) =>
    where.or([where('expires_at', 'is', null), where('expires_at', '>', now)])
}

function updating(db: Database, { blob }: Upload, values: Updateable<ArtifactTable>) {
  return db.updateTable('artifacts').set(values).where('blob', '=', blob)
}

function updateActiveUpload(db: Database, lease: Lease, values: Updateable<ArtifactTable>) {
  return updating(db, lease, values)
    .where('fence', '=', lease.fence)
    .where('state', 'in', listStatesBefore('complete'))
}

async function isUpdated(update: {
  executeTakeFirst(): Promise<{ numUpdatedRows: bigint } | undefined>
}): Promise<boolean> {
  const result = await update.executeTakeFirst()
  return (result?.numUpdatedRows ?? 0n) > 0n
}
