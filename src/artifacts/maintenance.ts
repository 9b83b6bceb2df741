/** Recovers uploads after a crash, and deletes expired uploads and orphaned blobs. */
import type { ExpressionBuilder } from 'kysely'
import { findItemBlobs } from '../conversations/operator.ts'
import type { Database } from '../db/database.ts'
import type { Tables } from '../db/tables.ts'
import { listFileBlobs } from '../files/files.ts'
import type { AuditDeps } from '../identity/audit.ts'
import { unixSeconds } from '../lib/clock.ts'
import { ServiceError } from '../lib/errors.ts'
import type { ResumableStore } from '../storage/blobs.ts'
import type { NamedBlobs } from '../storage/mark.ts'
import { type BlobPlace, createSweeper, type Sweeper } from '../storage/sweeper.ts'
import { purgeArtifactBin } from './bin/bin.ts'
import { acquireUploadLease } from './coordination.ts'
import type { Dependencies } from './dependencies.ts'
import { deleteOldEndings, recordEndings } from './endings.ts'
import { clearTakenJobs, countWaitingJobs } from './jobs/store.ts'
import { type ArtifactRow, listStatesBefore, stateAfter, type UploadRow } from './store.ts'
import { type CompletionDeps, completeUpload } from './transfer/complete.ts'

export { createVisitorUploads, deleteVisitorUploads } from './visitor-uploads/visitor-uploads.ts'

const BATCH = 200

/**
 * Releases the leases and jobs that a previous process held, and corrects the sizes of local uploads. Call it
 * before the first request, and only if no other server is running.
 */
export async function recoverUploads(deps: CompletionDeps): Promise<void> {
  const { db, clock, artifacts } = deps
  await db.updateTable('artifacts').set({ lease_until: null }).where('lease_until', 'is not', null).execute()
  await clearTakenJobs(db, unixSeconds(clock))
  // Checks only local files, because a bucket does not lose acknowledged bytes in a crash.
  if (!artifacts.store.resumable.survivesCrashes) await truncateToStoredSize(deps)
}

/** Lowers `received_bytes` where bytes were lost, for example after a power failure without fsync. */
async function truncateToStoredSize({ db, log, artifacts }: CompletionDeps): Promise<void> {
  for (let after = ''; ; ) {
    const rows = await activeUploads(db)
      .where('id', '>', after)
      .where('received_bytes', '>', 0)
      .orderBy('id')
      .limit(BATCH)
      .execute()
    for (const row of rows as UploadRow[]) {
      const sizeBytes = (await artifacts.store.resumable.findSize(row.blob, row.fence)) ?? 0
      if (sizeBytes >= row.received_bytes) continue
      log.warn(
        { artifactId: row.id, sizeBytes, receivedBytes: row.received_bytes },
        'stored upload is shorter than recorded; bytes were lost',
      )
      await db
        .updateTable('artifacts')
        .set({ received_bytes: sizeBytes })
        .where('blob', '=', row.blob)
        .where('state', 'in', listStatesBefore('complete'))
        .execute()
    }
    if (rows.length < BATCH) return
    after = rows.at(-1)?.id ?? ''
  }
}

export async function completeInterruptedUploads(deps: CompletionDeps): Promise<void> {
  const rows = await activeUploads(deps.db)
    .whereRef('received_bytes', '=', 'size_bytes')
    .limit(BATCH)
    .execute()
  for (const row of rows as UploadRow[]) await completeOne(deps, row)
}

/** Never throws, so that one failing upload does not block the others. */
async function completeOne(deps: CompletionDeps, upload: UploadRow): Promise<void> {
  try {
    const lease = await acquireUploadLease(deps, upload)
    try {
      await completeUpload(deps, lease.row)
    } finally {
      await lease.release()
    }
  } catch (error) {
    // A ServiceError is expected if another writer holds the lease, the checksum does not match, or the
    // parent key was revoked.
    if (!(error instanceof ServiceError))
      deps.log.warn({ err: error, artifactId: upload.id }, 'failed to complete an upload')
  }
}

export function listArtifactPlaces(db: Database, { blobs, resumable }: ResumableStore): BlobPlace[] {
  return [
    {
      list: () => blobs.list(),
      listOwned: (names) => listOwnedBlobs(db, names),
      remove: (name) => blobs.delete(name),
    },
    // A writer that lost its lease may write resumable bytes after the upload is complete. Those bytes do not
    // belong to any active upload.
    {
      list: () => resumable.list(),
      listOwned: async (names) => {
        const rows = await activeUploads(db).where('blob', 'in', names).execute()
        return new Set(rows.map(({ blob }) => String(blob)))
      },
      remove: (name) => resumable.delete(name),
    },
  ]
}

/**
 * Creates the sweeper, which also retries failed completions, and deletes unsent uploads and old artifacts in
 * the bin.
 */
export function createArtifactSweeper(
  deps: CompletionDeps & AuditDeps & Pick<Dependencies, 'visitorUploads' | 'listSentUploads'>,
): Sweeper {
  const { db, clock, metrics, log } = deps
  const { store, changes } = deps.artifacts
  return createSweeper({
    clock,
    log,
    what: 'artifacts',
    places: listArtifactPlaces(db, store),
    blobs: store.blobs,
    async deleteExpired(limit, nowMs) {
      const now = Math.floor(nowMs / 1000)
      await deps.visitorUploads.sweep(now, deps.listSentUploads)
      const rows = await deleteExpiredArtifacts(db, now, limit)
      await deleteOldEndings(db, now, limit)
      for (const { id, blob } of rows) {
        if (blob !== null) await store.resumable.delete(blob)
        changes.publish(id)
      }
      metrics.uploadFailed('expired', rows.filter(({ blob }) => blob !== null).length)
      return rows.length
    },
    async afterExpired() {
      await completeInterruptedUploads(deps)
      await purgeArtifactBin(deps)
    },
  })
}

export async function countArtifactWork({ db }: Pick<Dependencies, 'db'>) {
  const counting = db
    .selectFrom('artifacts')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('state', 'in', listStatesBefore('complete'))
    .executeTakeFirstOrThrow()
  const [{ count }, waitingJobs] = await Promise.all([counting, countWaitingJobs(db)])
  return { openUploads: Number(count), waitingJobs }
}

function activeUploads(db: Database) {
  return db.selectFrom('artifacts').selectAll().where('state', 'in', listStatesBefore('complete'))
}

/**
 * Deletes up to `limit` expired uploads and reserved ids, oldest first, except those that a writer has
 * leased.
 */
async function deleteExpiredArtifacts(
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
  const ids = rows.map(({ id }) => id)
  return db.transaction().execute(async (trx) => {
    // Checks the expiry again, because a client may have resumed an upload since the first query.
    const deleted = await trx
      .deleteFrom('artifacts')
      .where('id', 'in', ids)
      .where(isExpired(now))
      .returning(['id', 'blob', 'parent_key_id', 'related_to'])
      .execute()
    const uploads = deleted.filter(({ blob }) => blob !== null)
    await recordEndings(trx, uploads, 'expired', now)
    return deleted
  })
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

/** Returns the blobs that are still needed. An original is needed until it is converted and acknowledged. */
async function listOwnedBlobs(db: Database, blobs: readonly string[]): Promise<Set<string>> {
  const originals = await db
    .selectFrom('artifacts')
    .select('blob')
    .where('blob', 'in', blobs)
    .where((where) => where.or([where('state', '<>', stateAfter('convert')), where('acknowledged', '=', 0)]))
    .execute()
  const served = await listBlobsIn(db, ['served_blob', 'poster_blob'], blobs)
  return new Set([...served, ...originals.map(({ blob }) => String(blob))])
}

/** Finds the blobs in each store that any row refers to, even if they are no longer needed. */
export const namedBlobs: NamedBlobs = {
  async files(db, names, config) {
    const files = await listFileBlobs(db, names)
    // The `files` store also holds conversation data, so a name without a row may belong to a conversation.
    return files.size > 0 ? files : findItemBlobs(config, db, names)
  },
  artifacts: (db, names) => listBlobsIn(db, ['blob', 'served_blob', 'poster_blob'], names),
}

async function listBlobsIn(
  db: Database,
  columns: readonly ('blob' | 'served_blob' | 'poster_blob')[],
  blobs: readonly string[],
): Promise<Set<string>> {
  const names = new Set<string>()
  for (const column of columns) {
    const rows = await db.selectFrom('artifacts').select(column).where(column, 'in', blobs).execute()
    for (const row of rows) names.add(String(row[column]))
  }
  return names
}
