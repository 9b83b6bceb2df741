/** Appends the bytes of one request to an upload under a lease, which allows one writer at a time. */
import { createHash } from 'node:crypto'
import type { Readable } from 'node:stream'
import { unixSeconds } from '../../lib/clock.ts'
import { ServiceError } from '../../lib/errors.ts'
import { leaseStolen, locked, uploadDeleted } from '../access.ts'
import type { Dependencies } from '../dependencies.ts'
import {
  acquireLease,
  findUploadRow,
  stealLease,
  type Upload,
  type UploadRow,
  updateLeased,
  updateReceived,
} from '../store.ts'
import { completeUpload } from './complete.ts'
import { type ReceivingOptions, receive } from './receive.ts'
import { assertLength, tooLarge, type UploadDeps } from './uploads.ts'

type AppendDeps = UploadDeps & Pick<Dependencies, 'log' | 'onUploadComplete' | 'metrics'>

export interface Part {
  readonly offset: number
  /** The total length, if it was deferred until this request. */
  readonly declaredBytes: number | undefined
  /** Undefined for a chunked body. */
  readonly bodyBytes: number | undefined
}

export interface Progress {
  readonly receivedBytes: number
  /** Unix seconds; null once the upload is complete. */
  readonly expiresAt: number | null
}

/**
 * Receives bytes and completes the upload after the last one. After most failures the upload can be
 * resumed. @throws ServiceError `conflict` (different offset), `locked`, `too_large`, `invalid_value`
 * (different length; the client disconnected), `request_timeout`, `storage_full`, `checksum_mismatch` (the
 * upload is then deleted), `not_found`, or the reason of `disconnected`.
 */
export async function appendBytes(
  deps: AppendDeps,
  row: UploadRow,
  part: Part,
  source: Readable,
  disconnected: AbortSignal,
): Promise<Progress> {
  assertFits(deps, row, part)
  if (row.state !== 'uploading') return { receivedBytes: row.received_bytes, expiresAt: null }
  const lease = await acquireOrStealLease(deps, row)
  try {
    // Another request may have appended bytes before this one acquired the lease.
    assertFits(deps, lease.row, part)
    const { size_bytes: sizeBytes } = await declareLength(deps, lease.row, part)
    const receiving = { ...part, source, disconnected, stopped: lease.stopped, sizeBytes }
    return await appendLeased(deps, lease.row, receiving)
  } finally {
    await lease.release()
  }
}

function assertFits(deps: AppendDeps, row: UploadRow, { offset, declaredBytes, bodyBytes }: Part): void {
  const { size_bytes: sizeBytes, received_bytes: receivedBytes } = row
  if (offset !== receivedBytes)
    throw new ServiceError(
      'conflict',
      `Upload-Offset: must be the current offset ${receivedBytes} (got ${offset})`,
    )
  if (declaredBytes !== undefined) {
    assertLength(deps, declaredBytes)
    if (sizeBytes !== null && declaredBytes !== sizeBytes)
      throw new ServiceError('invalid_value', 'Upload-Length: was already set to a different value')
    if (declaredBytes < receivedBytes)
      throw new ServiceError(
        'invalid_value',
        'Upload-Length: must not be less than the bytes already received',
      )
  }
  const length = sizeBytes ?? declaredBytes ?? deps.config.limits.maxUploadBytes
  if (offset + (bodyBytes ?? 0) > length) throw bodyTooLong(length)
}

function bodyTooLong(length: number): ServiceError {
  return tooLarge(`The body exceeds the upload length of ${length} bytes.`)
}

async function declareLength(deps: AppendDeps, row: UploadRow, { declaredBytes }: Part): Promise<UploadRow> {
  if (declaredBytes === undefined || row.size_bytes !== null) return row
  await deps.db.transaction().execute(async (trx) => {
    await deps.quota.assertFits(trx, row.parent_key_id, declaredBytes - row.kept_bytes)
    const declared = { size_bytes: declaredBytes, kept_bytes: declaredBytes }
    if (!(await updateLeased(trx, row, declared))) throw await explainLostLease({ ...deps, db: trx }, row)
  })
  return { ...row, size_bytes: declaredBytes }
}

type LeasedPart = Part &
  Pick<ReceivingOptions, 'source' | 'disconnected' | 'stopped'> & { readonly sizeBytes: number | null }

async function appendLeased(deps: AppendDeps, row: UploadRow, part: LeasedPart): Promise<Progress> {
  const { config, artifacts, metrics } = deps
  const { offset, sizeBytes, bodyBytes } = part
  const { limit, refuse } = await findLimit(deps, row, sizeBytes)
  await artifacts.store.resumable.assertSpace(bodyBytes ?? 0)
  const blob = await artifacts.store.resumable.extend(row.blob, offset, row.fence)
  if (blob === undefined) throw await rewindToStoredSize(deps, row)
  // Hashes on arrival only an upload that is sent in a single request, because earlier bytes are not read again.
  const hash = row.checksum === null || offset > 0 ? undefined : createHash('sha256')
  let expiresAt = row.expires_at
  const commit = async (beforeBytes: number, afterBytes: number) => {
    expiresAt = unixSeconds(deps.clock) + config.uploads.expirySeconds
    const keptBytes = Math.max(sizeBytes ?? 0, afterBytes)
    const values = { received_bytes: afterBytes, kept_bytes: keptBytes, expires_at: expiresAt }
    if (!(await updateReceived(deps.db, row, beforeBytes, values))) throw await explainLostLease(deps, row)
    metrics.uploads.receivedBytes.inc(afterBytes - beforeBytes)
    artifacts.changes.publish(row.id)
  }
  const idleMs = config.timings.uploadIdleMs
  const { bytes, failure } = await receive({ ...part, blob, limit, refuse, hash, idleMs, commit }).finally(
    () => blob.close(),
  )
  // Completes even after a failure: a client that disconnects after the last byte sends no further request.
  const isComplete = bytes === sizeBytes
  if (isComplete) await completeUpload(deps, { ...row, received_bytes: bytes }, hash?.digest('hex'))
  if (failure !== undefined) throw failure
  return { receivedBytes: bytes, expiresAt: isComplete ? null : expiresAt }
}

/**
 * Handles the loss of acknowledged bytes, for example when the bucket deleted them; the client must send
 * them again.
 */
async function rewindToStoredSize(deps: AppendDeps, row: UploadRow): Promise<ServiceError> {
  const sizeBytes = (await deps.artifacts.store.resumable.findSize(row.blob)) ?? 0
  if (sizeBytes < row.received_bytes) {
    const { id: artifactId, received_bytes: receivedBytes } = row
    deps.log.warn(
      { artifactId, sizeBytes, receivedBytes },
      'stored upload is shorter than recorded; bytes were lost',
    )
    if (!(await updateLeased(deps.db, row, { received_bytes: sizeBytes }))) return explainLostLease(deps, row)
  }
  return new ServiceError('conflict', `Upload-Offset: must be the current offset ${sizeBytes}`)
}

/**
 * Returns the maximum size of the upload: its length or, while that is unknown, what the limits and the
 * free quota allow.
 */
async function findLimit(
  deps: AppendDeps,
  row: UploadRow,
  sizeBytes: number | null,
): Promise<{ limit: number; refuse: () => ServiceError }> {
  if (sizeBytes !== null) return { limit: sizeBytes, refuse: () => bodyTooLong(sizeBytes) }
  const { maxUploadBytes } = deps.config.limits
  const roomBytes = row.kept_bytes + (await deps.quota.countFreeBytes(deps.db, row.parent_key_id))
  if (roomBytes < maxUploadBytes) return { limit: roomBytes, refuse: () => deps.quota.exceeded() }
  return { limit: maxUploadBytes, refuse: () => bodyTooLong(maxUploadBytes) }
}

async function explainLostLease({ db }: Pick<Dependencies, 'db'>, upload: Upload): Promise<ServiceError> {
  return (await findUploadRow(db, upload)) === undefined ? uploadDeleted() : leaseStolen()
}

/** A writer that does not renew its lease in time loses it; the fence rejects its later writes. */
const LEASE_SECONDS = 30
const RENEW_EVERY_MS = 10_000
const RETRY_RELEASE_EVERY_MS = 1_000

type LeaseDeps = Pick<Dependencies, 'db' | 'clock' | 'log' | 'artifacts'>

type UploadLease = ReturnType<typeof startRenewing>

/**
 * Stops the writer on any replica, so that a client need not wait until its lost connection times out.
 * @throws ServiceError `not_found` (deleted), `locked`.
 */
export async function acquireOrStealLease(
  deps: LeaseDeps,
  upload: Upload & { readonly id: string },
): Promise<UploadLease> {
  const { activeUploads } = deps.artifacts
  await activeUploads.stop(upload.id, 'taken-over')
  const lease = await tryAcquireLease(deps, upload)
  if (lease !== undefined) return lease
  const seen = await findUploadRow(deps.db, upload)
  if (seen === undefined) throw uploadDeleted()
  const isGone = await activeUploads.stopOnOtherReplicas(upload.id, 'taken-over')
  // The writer's replica is dead or unreachable; if it returns, the fence rejects its writes.
  if (isGone) {
    const row = await stealLease(deps.db, seen, leaseEnd(deps))
    if (row !== undefined) return startRenewing(deps, row)
  }
  return acquireUploadLease(deps, upload)
}

/** @throws ServiceError `locked` if another request is writing or no bytes remain to be written. */
export async function acquireUploadLease(
  deps: LeaseDeps,
  upload: Upload & { readonly id: string },
): Promise<UploadLease> {
  const lease = await tryAcquireLease(deps, upload)
  if (lease === undefined) throw locked('Another request is writing to this upload; try again later.')
  return lease
}

async function tryAcquireLease(deps: LeaseDeps, upload: Upload): Promise<UploadLease | undefined> {
  const row = await acquireLease(deps.db, upload, unixSeconds(deps.clock), leaseEnd(deps))
  return row === undefined ? undefined : startRenewing(deps, row)
}

function leaseEnd({ clock }: LeaseDeps): number {
  return unixSeconds(clock) + LEASE_SECONDS
}

function startRenewing(deps: LeaseDeps, row: UploadRow) {
  const { db, artifacts } = deps
  const registration = artifacts.activeUploads.register(row.id)
  const onFailure = (error: unknown) =>
    deps.log.warn({ err: error, artifactId: row.id }, 'failed to renew the lease of an upload')
  const renewing = setInterval(() => {
    updateLeased(db, row, { lease_until: leaseEnd(deps) }).catch(onFailure)
  }, RENEW_EVERY_MS).unref()
  return {
    /** The upload at the time the lease was acquired, with the lease's fence. */
    row,
    /** Aborts when another request takes over the upload. */
    stopped: registration.stopped,
    async release(): Promise<void> {
      clearInterval(renewing)
      const release = () => updateLeased(db, row, { lease_until: null })
      await release().catch((error) => {
        onFailure(error)
        releaseLater(release)
      })
      registration.end()
    },
  }
}

/** Retries after a database failure, so that a client can resume before the lease expires. */
function releaseLater(release: () => Promise<unknown>): void {
  let tries = 0
  const timer = setInterval(() => {
    tries += 1
    if (tries === LEASE_SECONDS) clearInterval(timer)
    release().then(
      () => clearInterval(timer),
      () => {},
    )
  }, RETRY_RELEASE_EVERY_MS).unref()
}
