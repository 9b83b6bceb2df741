/** Writes down what came of the jobs of an upload, each time in one transaction, and lets go of bytes nobody needs any more. */
import type { Updateable } from 'kysely'
import type { ArtifactTable } from '../../db/tables.ts'
import type { ResumableStore } from '../../storage/blobs.ts'
import type { Dependencies } from '../dependencies.ts'
import type { ArtifactChanges } from '../events.ts'
import {
  acknowledgeUpload,
  convertArtifact,
  releaseOriginal,
  removeArtifact,
  type Upload,
  type UploadRow,
} from '../store.ts'
import { deleteJob, deleteJobs, type TakenJob } from './store.ts'

export interface FinishingDeps extends Pick<Dependencies, 'db' | 'log' | 'metrics'> {
  readonly store: ResumableStore
  readonly changes: ArtifactChanges
}

/** Makes an artifact ready and ends the job; false when the job is another's by now, or the artifact is gone. */
export function makeReady(
  deps: FinishingDeps,
  job: TakenJob,
  row: UploadRow,
  values: Updateable<ArtifactTable>,
): Promise<boolean> {
  return finish(deps, job, row, (trx) => convertArtifact(trx, row, values))
}

/** Writes down that the host has handled an upload, and ends the job; false as for `makeReady`. */
export function acknowledge(deps: FinishingDeps, job: TakenJob, row: UploadRow): Promise<boolean> {
  return finish(deps, job, row, (trx) => acknowledgeUpload(trx, row))
}

/** The bytes that were sent stay until both are done: the host may read them, and so may the conversion. */
async function finish(
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

/** What could not be deleted belongs to nothing, so the sweeper finds it. */
async function deleteOriginal({ store, log }: FinishingDeps, { blob }: Upload): Promise<void> {
  await store.blobs
    .delete(blob)
    .catch((error) => log.warn({ err: error, blob }, 'an original could not be deleted'))
}

/** Removes an artifact whose content nobody may have, with all its jobs. */
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
