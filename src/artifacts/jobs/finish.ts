/** Records a job's result, and deletes the original once no job needs it. */
import { unixSeconds } from '../../lib/clock.ts'
import type { ResumableStore } from '../../storage/blobs.ts'
import type { ArtifactChanges } from '../coordination.ts'
import type { Dependencies } from '../dependencies.ts'
import { recordEndings } from '../endings.ts'
import { type ConversionEnd, type OnConversionEnd, toEndedConversion } from '../metadata.ts'
import { releaseOriginal, removeArtifact, type Upload, type UploadRow } from '../store.ts'
import { deleteJob, deleteJobs, insertJob, type TakenJob } from './store.ts'

export interface FinishingDeps extends Pick<Dependencies, 'db' | 'log' | 'metrics'> {
  readonly store: ResumableStore
  readonly changes: ArtifactChanges
}

export interface EventDeps extends FinishingDeps, Pick<Dependencies, 'clock'> {
  readonly onConversionEnd: OnConversionEnd | undefined
  /** Starts the queued event deliveries. */
  wakeEvents(): void
}

/** Queues the event for the host. Call it in the transaction that records the end of the conversion. */
export async function queueEvent(
  { clock, onConversionEnd }: EventDeps,
  trx: Dependencies['db'],
  row: UploadRow,
  end: Omit<ConversionEnd, 'endedAt'>,
): Promise<void> {
  if (onConversionEnd === undefined) return
  const now = unixSeconds(clock)
  const event = JSON.stringify(toEndedConversion(row, { ...end, endedAt: now }))
  await insertJob(trx, 'converted', row.blob, now, event)
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

/** Deletes an original. Never throws, because the sweeper retries failed deletions. */
async function deleteOriginal({ store, log }: FinishingDeps, { blob }: Upload): Promise<void> {
  await store.blobs
    .delete(blob)
    .catch((error) => log.warn({ err: error, blob }, 'failed to delete an original; the sweeper will retry'))
}

/** Deletes an artifact with dangerous content, and all its jobs. */
export async function reject(deps: EventDeps, job: TakenJob, row: UploadRow, reason: string): Promise<void> {
  const isGone = await deps.db.transaction().execute(async (trx) => {
    if (!(await deleteJob(trx, job))) return false
    await deleteJobs(trx, row.blob)
    if (!(await removeArtifact(trx, row, 'reject'))) return false
    await recordEndings(trx, [row], 'dangerous', unixSeconds(deps.clock))
    await queueEvent(deps, trx, row, { result: 'rejected', reason })
    return true
  })
  if (!isGone) return
  deps.wakeEvents()
  deps.metrics.uploadFailed('dangerous')
  deps.changes.publish(row.id)
  await deleteOriginal(deps, row)
}
