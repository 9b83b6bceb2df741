/** Completes an upload after its last byte. Verifies the checksum, commits the bytes and queues the jobs. */
import { createHash } from 'node:crypto'
import { assertTenantLives, lockTenant } from '../../identity/keys.ts'
import { unixSeconds } from '../../lib/clock.ts'
import { ServiceError } from '../../lib/errors.ts'
import { countingExternalBytes } from '../../lib/external-memory.ts'
import { wholeOf } from '../../storage/blobs.ts'
import { leaseStolen, uploadDeleted } from '../access.ts'
import { deleteBytes } from '../artifacts.ts'
import type { Dependencies } from '../dependencies.ts'
import { recordEndings } from '../endings.ts'
import { insertJob } from '../jobs/store.ts'
import { completeLeased, convertArtifact, findUploadRow, removeArtifact, type UploadRow } from '../store.ts'
import { describeUpload, UNSENT_SECONDS } from '../visitor-uploads/visitor-uploads.ts'

export type CompletionDeps = Pick<
  Dependencies,
  'db' | 'clock' | 'log' | 'onUploadComplete' | 'metrics' | 'artifacts'
>

/**
 * Completes the upload; the caller must hold its lease. `digest` is the SHA-256 of the upload, if already
 * known. Safe to repeat after a crash.
 * @throws ServiceError `checksum_mismatch` (the upload is then deleted), `not_found`, `locked` (lease lost),
 * `invalid_api_key` (parent key revoked).
 */
export async function completeUpload(deps: CompletionDeps, row: UploadRow, digest?: string): Promise<void> {
  const { db, clock, artifacts, onUploadComplete } = deps
  const { id, blob, checksum } = row
  // Commits before hashing, because not every store can read uncommitted bytes.
  if (checksum === null || checksum === digest || digest === undefined)
    await artifacts.store.resumable.commit(blob, row.received_bytes, row.fence)
  if (checksum !== null && checksum !== (digest ?? (await digestOf(deps, row))))
    return rejectUpload(deps, row)
  const attached = row.kind === 'attachment' ? await describeUpload(deps, row) : undefined
  const isComplete = await db.transaction().execute(async (trx) => {
    if (!(await assertOwnerLives(trx, row))) return false
    const now = unixSeconds(clock)
    // Without a handler, the upload is acknowledged immediately.
    const acknowledged = onUploadComplete === undefined ? 1 : 0
    const expiresAt = attached === undefined ? null : now + UNSENT_SECONDS
    const ended = { finished_at: now, expires_at: expiresAt, lease_until: null }
    const done = { ...ended, acknowledged, sha256: checksum }
    if (!(await completeLeased(trx, row, done))) return false
    if (attached === undefined) await insertJob(trx, 'convert', row.blob, now)
    else await convertArtifact(trx, row, attached)
    if (onUploadComplete !== undefined) await insertJob(trx, 'hook', row.blob, now)
    return true
  })
  if (!isComplete) return forget(deps, row)
  deps.metrics.uploads.completed.inc()
  artifacts.changes.publish(id)
  artifacts.processing.wake()
}

/**
 * Locks the tenant that owns the upload and checks that its key is not revoked. Returns false if the upload was
 * deleted.
 */
async function assertOwnerLives(trx: Dependencies['db'], row: UploadRow): Promise<boolean> {
  for (let known: string | undefined; ; ) {
    const owner = (await findUploadRow(trx, row))?.parent_key_id
    if (owner === undefined) return false
    if (owner === known) {
      await assertTenantLives({ db: trx }, owner)
      return true
    }
    await lockTenant({ db: trx }, owner)
    known = owner
  }
}

async function digestOf({ artifacts }: CompletionDeps, row: UploadRow): Promise<string> {
  const hash = createHash('sha256')
  const bytes = await artifacts.store.blobs.open(row.blob, wholeOf(row.received_bytes))
  for await (const chunk of countingExternalBytes(bytes)) hash.update(chunk)
  return hash.digest('hex')
}

async function rejectUpload(deps: CompletionDeps, row: UploadRow): Promise<never> {
  await deps.db.transaction().execute(async (trx) => {
    if (!(await removeArtifact(trx, row, 'reject'))) return
    await recordEndings(trx, [row], 'checksum_mismatch', unixSeconds(deps.clock))
  })
  deps.metrics.uploadFailed('checksum')
  await deleteBytes(deps, row)
  deps.artifacts.changes.publish(row.id)
  throw new ServiceError(
    'checksum_mismatch',
    'checksum does not match the received bytes; the upload was deleted',
  )
}

/**
 * Throws the error for an upload that was deleted, or whose lease was stolen, while its bytes were committed.
 * If it was deleted, its bytes are deleted too.
 */
async function forget(deps: CompletionDeps, row: UploadRow): Promise<never> {
  if ((await findUploadRow(deps.db, row)) !== undefined) throw leaseStolen()
  await deleteBytes(deps, row)
  throw uploadDeleted()
}
