/** Puts uploads in order that a process left behind, however it ended. Security: 2.8. */

import type { Database } from '../db/database.ts'
import { unixSeconds } from '../lib/clock.ts'
import { ServiceError } from '../lib/errors.ts'
import type { ResumableStore } from '../storage/blobs.ts'
import {
  type BlobPlace,
  createSweeper,
  deleteInBatches,
  deleteOrphans,
  type Sweeper,
} from '../storage/sweeper.ts'
import type { Dependencies } from './dependencies.ts'
import { clearTakenJobs, countWaitingJobs } from './jobs/store.ts'
import {
  clearLeases,
  countUploading,
  deleteExpiredArtifacts,
  listActiveUploadBlobs,
  listCompletable,
  listOwnedBlobs,
  listUploading,
  lowerReceived,
} from './maintenance/store.ts'
import { acquireUploadLease } from './transfer/append.ts'
import { type CompletionDeps, completeUpload } from './transfer/complete.ts'

/** Rows looked at in one statement. */
const BATCH = 200

/**
 * To be called before the first request, by the only server there is: leases of the process before are void, those of jobs too, and no
 * upload claims more bytes than are there. In a bucket those are not looked for one by one: whoever goes on with an upload finds out.
 */
export async function recoverUploads(deps: CompletionDeps): Promise<void> {
  await clearLeases(deps.db)
  await clearTakenJobs(deps.db, unixSeconds(deps.clock))
  if (!deps.artifacts.store.resumable.survivesCrashes) await truncateToStoredSize(deps)
}

/** "On start trust min(DB offset, file size)": what was written behind the offset goes when the upload goes on. */
async function truncateToStoredSize({ db, log, artifacts }: CompletionDeps): Promise<void> {
  for (let after = ''; ; ) {
    const rows = await listUploading(db, after, BATCH)
    for (const row of rows) {
      const sizeBytes = (await artifacts.store.resumable.findSize(row.blob)) ?? 0
      if (sizeBytes >= row.received_bytes) continue
      log.warn({ artifactId: row.id, sizeBytes, receivedBytes: row.received_bytes }, 'bytes were lost')
      await lowerReceived(db, row, sizeBytes)
    }
    if (rows.length < BATCH) return
    after = rows.at(-1)?.id ?? ''
  }
}

/** Ends uploads that have all their bytes and that nobody is ending at the moment. */
export async function completeInterruptedUploads(deps: CompletionDeps): Promise<void> {
  for (const row of await listCompletable(deps.db, BATCH)) await completeOne(deps, row)
}

/** One that cannot be completed does not keep the others from it. */
async function completeOne(deps: CompletionDeps, upload: { id: string; blob: string }): Promise<void> {
  try {
    const lease = await acquireUploadLease(deps, upload)
    try {
      await completeUpload(deps, lease.row)
    } finally {
      await lease.release()
    }
  } catch (error) {
    // Somebody is at it, the checksum is wrong, or its owner is gone.
    if (!(error instanceof ServiceError))
      deps.log.warn({ err: error, artifactId: upload.id }, 'an upload could not be completed')
  }
}

/** Where the bytes of artifacts are stored, and which of them belong to one. */
export function listArtifactPlaces(db: Database, { blobs, resumable }: ResumableStore): BlobPlace[] {
  return [
    {
      list: () => blobs.list(),
      listOwned: (names) => listOwnedBlobs(db, names),
      remove: (name) => blobs.delete(name),
    },
    // A complete upload has no resumable bytes: a late call of a writer that lost its lease may have left some.
    {
      list: () => resumable.list(),
      listOwned: (names) => listActiveUploadBlobs(db, names),
      remove: (name) => resumable.delete(name),
    },
  ]
}

/** A sweeper over all artifacts. It also ends uploads that have all their bytes, but could not be completed at the time. */
export function createArtifactSweeper(deps: CompletionDeps): Sweeper {
  const { db, clock, metrics, log } = deps
  const { store, changes } = deps.artifacts
  const places = listArtifactPlaces(db, store)

  async function deleteExpired(limit: number): Promise<number> {
    const rows = await deleteExpiredArtifacts(db, unixSeconds(clock), limit)
    for (const { id, blob } of rows) {
      if (blob !== null) await store.resumable.delete(blob)
      changes.publish(id)
    }
    metrics.uploadFailed('expired', rows.filter(({ blob }) => blob !== null).length)
    return rows.length
  }

  return createSweeper(clock, {
    async sweepExpired() {
      await deleteInBatches(deleteExpired)
      await completeInterruptedUploads(deps)
    },
    async sweepOrphans(storedBeforeMs) {
      await deleteOrphans(places, { what: 'artifacts', storedBeforeMs, log })
      await store.blobs.abortAbandoned()
    },
  })
}

/** Uploads that are not complete, and jobs that nobody has taken, by kind. */
export async function countArtifactWork({ db }: Pick<Dependencies, 'db'>) {
  const [openUploads, waitingJobs] = await Promise.all([countUploading(db), countWaitingJobs(db)])
  return { openUploads, waitingJobs }
}
