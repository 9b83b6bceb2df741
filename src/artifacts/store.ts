/** The rows of artifacts; their bytes lie where blobs grow, and then in the blob store. */
import type { CompiledQuery, ExpressionBuilder, Insertable, Selectable, Updateable } from 'kysely'
import type { Database } from '../db/database.ts'
import type { ArtifactTable, Tables } from '../db/tables.ts'

/**
 * `unknown` is whatever nobody has begun to upload: an id never seen, one that is only reserved, and one that is gone again.
 * `uploading` until the last byte, `processing` until the bytes are what will be served, then `ready`.
 */
export const states = ['unknown', 'uploading', 'processing', 'ready'] as const

export type State = (typeof states)[number]

/** For each thing that can happen: in which states it can, and what follows. Whatever is not here is refused. */
const transitions = {
  /** An upload is created. */
  create: { unknown: 'uploading' },
  /** The whole declared length has been received. */
  complete: { uploading: 'processing' },
  /** The bytes to be served are made, or will be served as they came. */
  convert: { processing: 'ready' },
  /** The upload was not finished in time. */
  expire: { uploading: 'unknown' },
  /** The bytes are not what was announced, or dangerous. */
  reject: { uploading: 'unknown', processing: 'unknown' },
  /** Somebody who may do so removes it. */
  remove: { uploading: 'unknown', processing: 'unknown', ready: 'unknown' },
} as const satisfies Record<string, Partial<Record<State, State>>>

export type StateEvent = keyof typeof transitions

export const stateEvents = Object.keys(transitions) as readonly StateEvent[]

/** The state after that has happened in `state`; undefined where it cannot. */
export function findNextState(state: State, occurrence: StateEvent): State | undefined {
  const next: Partial<Record<State, State>> = transitions[occurrence]
  return next[state]
}

/** The states in which that can happen: what a statement that makes it happen asks for. */
export function listStatesBefore(occurrence: StateEvent): State[] {
  return states.filter((state) => findNextState(state, occurrence) !== undefined)
}

/** The one state after that has happened, whatever was before. */
export function stateAfter(occurrence: StateEvent): State {
  const [before] = listStatesBefore(occurrence)
  return findNextState(before as State, occurrence) as State
}

export type ArtifactRow = Selectable<ArtifactTable>

/** A row whose upload has begun. */
export type UploadRow = ArtifactRow & {
  readonly segment: string
  readonly blob: string
  readonly kind: NonNullable<ArtifactTable['kind']>
  readonly filename: string
}

/** Whether it is more than a reserved id. */
export function isUpload(row: ArtifactRow): row is UploadRow {
  return row.state !== 'unknown'
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

/** The row of an upload, of whatever tenant and however old: for the service's own work. */
export async function findUploadRow(db: Database, { blob }: Upload): Promise<UploadRow | undefined> {
  const row = await db.selectFrom('artifacts').selectAll().where('blob', '=', blob).executeTakeFirst()
  return row as UploadRow | undefined
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

/** One upload of an artifact. Its blob names it: the id may be used again after it is gone, and so may the fence. */
export type Upload = Pick<UploadRow, 'blob'>

/** Takes the lease of an upload when nobody has it, under a new fence; answers with the row as it is then. */
export async function acquireLease(
  db: Database,
  { blob }: Upload,
  now: number,
  until: number,
): Promise<UploadRow | undefined> {
  const row = await newLeases(db, until)
    .where('blob', '=', blob)
    .where((where) => where.or([where('lease_until', 'is', null), where('lease_until', '<=', now)]))
    .returningAll()
    .executeTakeFirst()
  return row as UploadRow | undefined
}

/** A lease somebody holds. */
export type Lease = Pick<UploadRow, 'blob' | 'fence'>

/** Takes the lease of an upload from whoever had it under that fence, which shuts them out; undefined when it is another's by now. */
export async function stealLease(
  db: Database,
  { blob, fence }: Lease,
  until: number,
): Promise<UploadRow | undefined> {
  const row = await newLeases(db, until)
    .where('blob', '=', blob)
    .where('fence', '=', fence)
    .returningAll()
    .executeTakeFirst()
  return row as UploadRow | undefined
}

function newLeases(db: Database, until: number) {
  return db
    .updateTable('artifacts')
    .set((current) => ({ fence: current('fence', '+', 1), lease_until: until }))
    .where('state', 'in', listStatesBefore('complete'))
}

/** Writes what the upload of a lease has found out; false when the lease is another's by now, or the upload is gone. */
export async function updateLeased(
  db: Database,
  lease: Lease,
  values: Updateable<ArtifactTable>,
): Promise<boolean> {
  return isUpdated(leasedUploads(db, lease).set(values))
}

/** As `updateLeased`, on top of as many received bytes as the upload knows of. */
export async function updateReceived(
  db: Database,
  lease: Lease,
  beforeBytes: number,
  values: Updateable<ArtifactTable>,
): Promise<boolean> {
  return isUpdated(leasedUploads(db, lease).where('received_bytes', '=', beforeBytes).set(values))
}

/** Ends an upload for the upload of its lease; false when the lease is another's by now, or the upload is gone. */
export async function completeLeased(
  db: Database,
  lease: Lease,
  values: Updateable<ArtifactTable>,
): Promise<boolean> {
  return isUpdated(leasedUploads(db, lease).set({ ...values, state: stateAfter('complete') }))
}

/** Makes an artifact ready; false when that cannot happen in its state, or it is gone. */
export async function convertArtifact(
  db: Database,
  { blob }: Upload,
  values: Updateable<ArtifactTable>,
): Promise<boolean> {
  return isUpdated(
    db
      .updateTable('artifacts')
      .set({ ...values, state: stateAfter('convert') })
      .where('blob', '=', blob)
      .where('state', 'in', listStatesBefore('convert')),
  )
}

/** Writes how much of an artifact is converted, in thousandths; false when it was as much before, or is ready or gone. */
export async function raiseProgress(db: Database, { blob }: Upload, permille: number): Promise<boolean> {
  return isUpdated(
    db
      .updateTable('artifacts')
      .set({ progress_permille: permille })
      .where('blob', '=', blob)
      .where('state', 'in', listStatesBefore('convert'))
      .where('progress_permille', '<', permille),
  )
}

/** Writes that the host has handled an upload; false when it is gone. */
export async function acknowledgeUpload(db: Database, { blob }: Upload): Promise<boolean> {
  return isUpdated(db.updateTable('artifacts').set({ acknowledged: 1 }).where('blob', '=', blob))
}

/** Writes what the host has to say of an upload, as JSON; false when it is gone. */
export async function updateOutcome(db: Database, { blob }: Upload, outcome: string): Promise<boolean> {
  return isUpdated(db.updateTable('artifacts').set({ outcome }).where('blob', '=', blob))
}

/** Counts the bytes that were sent no longer, once nobody needs them; false when somebody does, or they are what is served. */
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

/** Makes an artifact unknown again; false when that cannot happen in its state, or it is gone. */
export async function removeArtifact(
  db: Database,
  { blob }: Upload,
  occurrence: 'reject' | 'remove',
): Promise<boolean> {
  const result = await db
    .deleteFrom('artifacts')
    .where('blob', '=', blob)
    .where('state', 'in', listStatesBefore(occurrence))
    .executeTakeFirst()
  return result.numDeletedRows > 0n
}

/**
 * Hands a tenant's artifacts to another tenant and returns their number, active uploads and reserved ids included. Tokens end with
 * the key that minted them. Runs in the caller's transaction.
 */
export async function moveArtifacts(db: Database, fromTenantId: string, toTenantId: string): Promise<number> {
  const result = await db
    .updateTable('artifacts')
    .set({ parent_key_id: toTenantId })
    .where('parent_key_id', '=', fromTenantId)
    .executeTakeFirst()
  return Number(result.numUpdatedRows)
}

/** The bytes of a tenant's artifacts that count against its quota; rows that have expired by `now` do not. */
export async function sumArtifactBytes(db: Database, tenantId: string, now: number): Promise<number> {
  const { bytes } = await db
    .selectFrom('artifacts')
    .select(({ fn }) => fn.sum<number>('kept_bytes').as('bytes'))
    .where('parent_key_id', '=', tenantId)
    .where(isUnexpired(now))
    .executeTakeFirstOrThrow()
  return Number(bytes ?? 0)
}

function liveArtifacts(db: Database, now: number) {
  return db.selectFrom('artifacts').selectAll().where(isUnexpired(now))
}

export function isUnexpired(now: number) {
  return (where: ExpressionBuilder<Tables, 'artifacts'>) =>
    where.or([where('expires_at', 'is', null), where('expires_at', '>', now)])
}

function leasedUploads(db: Database, { blob, fence }: Lease) {
  return db
    .updateTable('artifacts')
    .where('blob', '=', blob)
    .where('fence', '=', fence)
    .where('state', 'in', listStatesBefore('complete'))
}

async function isUpdated(update: {
  executeTakeFirst(): Promise<{ numUpdatedRows: bigint } | undefined>
}): Promise<boolean> {
  const result = await update.executeTakeFirst()
  return (result?.numUpdatedRows ?? 0n) > 0n
}
