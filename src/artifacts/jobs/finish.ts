/** Records a job's result, and deletes the original once no job needs it. */
import type { ResumableStore } from '../../storage/blobs.ts'
import type { ArtifactChanges } from '../coordination.ts'
import type { Dependencies } from '../dependencies.ts'
import { releaseOriginal, removeArtifact, type Upload, type UploadRow } from '../store.ts'
import { deleteJob, deleteJobs, type TakenJob } from './store.ts'

export interface FinishingDeps extends Pick<Dependencies, 'db' | 'log' | 'metrics'> {
  readonly store: ResumableStore
  readonly changes: ArtifactChanges
}

/**
 * Deletes the job and records its result in one transaction. Returns false if the job's lease was lost or the
 * artifact was deleted.
 */
export async function finish(
  deps: FinishingDeps,
  job: TakenJob,
  row: UploadRow,
  write: (trx: Dependencies['db']) => Promise<boolean>,
): Promise<boolean> {
  const { isDone, isFree } = await deps.db.transaction().execute(async (trx) => {
    const isDone = (await deleteJob(trx, job)) && (await write(trx))
    return { isDone, isFree: isDone && (await releaseOriginal(trx, row)) }
  })
  if (isDone) deps.changes.publish(row.id)
  if (isFree) await deleteOriginal(deps, row)
  return isDone
}

/** The sweeper deletes originals that cannot be deleted here. */
async function deleteOriginal({ store, log }: FinishingDeps, { blob }: Upload): Promise<void> {
  await store.blobs
    .delete(blob)
    .catch((error) => log.warn({ err: error, blob }, 'failed to delete an original; the sweeper will retry'))
}

/** Deletes an artifact with dangerous content, and all its jobs. */
export async function reject(deps: FinishingDeps, job: TakenJob, row: UploadRow): Promise<void> {
  const isGone = await deps.db.transaction().execute(async (trx) => {
    if (!(await deleteJob(trx, job))) return false
    await deleteJobs(trx, row.blob)
    return removeArtifact(trx, row, 'reject')
  })
  if (!isGone) return
  deps.metrics.uploadFailed('dangerous')
  deps.changes.publish(row.id)
  await deleteOriginal(deps, row)
}
