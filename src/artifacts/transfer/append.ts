/** Adds the bytes of one request to an upload, with nobody else writing into it meanwhile. */
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
import { receive } from './receive.ts'
import { assertLength, tooLarge, type UploadDeps } from './uploads.ts'

export type AppendDeps = UploadDeps & Pick<Dependencies, 'log' | 'onUploadComplete' | 'metrics'>

/** What a client says of the bytes it sends. */
export interface Part {
  readonly offset: number
  /** The length of the whole, where it is told only now. */
  readonly declaredBytes: number | undefined
  /** How many bytes follow; undefined when the client does not say. */
  readonly bodyBytes: number | undefined
}

/** How far an upload has got. */
export interface Progress {
  readonly receivedBytes: number
  /** Unix seconds; null once the upload is complete. */
  readonly expiresAt: number | null
}

/**
 * Takes in the bytes until the request ends, and completes the upload with its last byte. What came before a failure is kept, and the
 * upload goes on from there, unless the reason says otherwise.
 * @throws ServiceError `conflict` (another offset), `locked`, `too_large`, `invalid_value` (another length; the client left),
 * `request_timeout`, `storage_full`, `checksum_mismatch` (then the upload is gone), `not_found` (removed meanwhile), the reason of
 * `left`.
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
    // Until the lease was ours somebody else may have added to it.
    assertFits(deps, lease.row, part)
    const { size_bytes: sizeBytes } = await declareLength(deps, lease.row, part)
    const receiving = { ...part, source, disconnected, stopped: lease.stopped, sizeBytes }
    return await appendLeased(deps, lease.row, receiving)
  } finally {
    await lease.release()
  }
}

/** Refuses what cannot follow, before a byte of it is read. */
function assertFits(deps: AppendDeps, row: UploadRow, { offset, declaredBytes, bodyBytes }: Part): void {
  const { size_bytes: sizeBytes, received_bytes: receivedBytes } = row
  if (offset !== receivedBytes)
    throw new ServiceError('conflict', `Upload-Offset: is ${offset}, but the upload is at ${receivedBytes}`)
  if (declaredBytes !== undefined) {
    assertLength(deps, declaredBytes)
    if (sizeBytes !== null && declaredBytes !== sizeBytes)
      throw new ServiceError('invalid_value', 'Upload-Length: was declared before, as another')
    if (declaredBytes < receivedBytes)
      throw new ServiceError('invalid_value', 'Upload-Length: is less than what has arrived')
  }
  const length = sizeBytes ?? declaredBytes ?? deps.config.limits.maxUploadBytes
  if (offset + (bodyBytes ?? 0) > length) throw bodyTooLong(length)
}

function bodyTooLong(length: number): ServiceError {
  return tooLarge(`The body goes beyond the upload's length of ${length} bytes.`)
}

/** Writes down a length that is told only now, and counts it against the quota. */
async function declareLength(deps: AppendDeps, row: UploadRow, { declaredBytes }: Part): Promise<UploadRow> {
  if (declaredBytes === undefined || row.size_bytes !== null) return row
  await deps.db.transaction().execute(async (trx) => {
    await deps.quota.assertFits(trx, row.parent_key_id, declaredBytes - row.kept_bytes)
    const declared = { size_bytes: declaredBytes, kept_bytes: declaredBytes }
    if (!(await updateLeased(trx, row, declared))) throw await explainLostLease({ ...deps, db: trx }, row)
  })
  return { ...row, size_bytes: declaredBytes }
}

interface LeasedPart extends Part {
  readonly source: Readable
  readonly disconnected: AbortSignal
  readonly stopped: AbortSignal
  readonly sizeBytes: number | null
}

async function appendLeased(deps: AppendDeps, row: UploadRow, part: LeasedPart): Promise<Progress> {
  const { config, artifacts, metrics } = deps
  const { offset, sizeBytes, bodyBytes } = part
  const { limit, refuse } = await findLimit(deps, row, sizeBytes)
  await artifacts.store.resumable.assertSpace(bodyBytes ?? 0)
  const blob = await artifacts.store.resumable.extend(row.blob, offset, row.fence)
  if (blob === undefined) throw await rewindToStoredSize(deps, row)
  // What came earlier is not read again for it: only a whole that comes at once is hashed on its way.
  const hash = row.checksum === null || offset > 0 ? undefined : createHash('sha256')
  let expiresAt = row.expires_at
  const commit = async (beforeBytes: number, afterBytes: number) => {
    expiresAt = unixSeconds(deps.clock) + config.uploads.expirySeconds
    const keptBytes = Math.max(sizeBytes ?? 0, afterBytes)
    const values = { received_bytes: afterBytes, kept_bytes: keptBytes, expires_at: expiresAt }
    if (!(await updateReceived(deps.db, row, beforeBytes, values))) throw await explainLostLease(deps, row)
    metrics.uploads.receivedBytes.add(afterBytes - beforeBytes)
    artifacts.changes.publish(row.id)
  }
  const idleMs = config.timings.uploadIdleMs
  const { bytes, failure } = await receive({ ...part, blob, limit, refuse, hash, idleMs, commit }).finally(
    () => blob.close(),
  )
  // A client that lost its connection behind the last byte learns from HEAD that there is nothing more to send, and so does whoever
  // took the upload over at that moment: nobody else would complete it.
  const isComplete = bytes === sizeBytes
  if (isComplete) await completeUpload(deps, { ...row, received_bytes: bytes }, hash?.digest('hex'))
  if (failure !== undefined) throw failure
  return { receivedBytes: bytes, expiresAt: isComplete ? null : expiresAt }
}

/** Bytes that were promised are gone, as those of a bucket that throws away what takes too long: the client begins before them. */
async function rewindToStoredSize(deps: AppendDeps, row: UploadRow): Promise<ServiceError> {
  const sizeBytes = (await deps.artifacts.store.resumable.findSize(row.blob)) ?? 0
  if (sizeBytes < row.received_bytes) {
    const { id: artifactId, received_bytes: receivedBytes } = row
    deps.log.warn({ artifactId, sizeBytes, receivedBytes }, 'bytes were lost')
    if (!(await updateLeased(deps.db, row, { received_bytes: sizeBytes }))) return explainLostLease(deps, row)
  }
  return new ServiceError('conflict', `Upload-Offset: the upload is at ${sizeBytes}`)
}

/** The most bytes the upload may hold in all: its length, or as long as nobody knows that, what there is room for. */
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

/** Why what is written under a lease is not taken any more. */
async function explainLostLease({ db }: Pick<Dependencies, 'db'>, upload: Upload): Promise<ServiceError> {
  return (await findUploadRow(db, upload)) === undefined ? uploadDeleted() : leaseStolen()
}

/** Whoever does not renew it in time has lost it; until they find out, the fence shuts them out. */
const LEASE_SECONDS = 30

const RENEW_EVERY_MS = 10_000

const RETRY_RELEASE_EVERY_MS = 1_000

type LeaseDeps = Pick<Dependencies, 'db' | 'clock' | 'log' | 'artifacts'>

/** A lease, renewed until it is given back. */
export interface UploadLease {
  /** The upload as it was when the lease began; its fence is the lease's. */
  readonly row: UploadRow
  /** Aborts when somebody else wants the upload. */
  readonly stopped: AbortSignal
  release(): Promise<void>
}

/**
 * Takes the lease from whoever has it: a client that comes back is not kept waiting by the connection it has lost, whichever replica
 * that leads to.
 * @throws ServiceError `not_found` when the upload was removed meanwhile, `locked` when whoever is writing does not stop, or there is
 * nothing to write any more.
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
  // Its replica is, or cannot be heard: then the fence shuts it out, should it come back.
  if (isGone) {
    const row = await stealLease(deps.db, seen, leaseEnd(deps))
    if (row !== undefined) return startRenewing(deps, row)
  }
  return acquireUploadLease(deps, upload)
}

/** @throws ServiceError `locked` when somebody else is writing, or there is nothing to write any more. */
export async function acquireUploadLease(
  deps: LeaseDeps,
  upload: Upload & { readonly id: string },
): Promise<UploadLease> {
  const lease = await tryAcquireLease(deps, upload)
  if (lease === undefined) throw locked('Another request is writing into this upload; try again.')
  return lease
}

/** Undefined when somebody else has it. */
async function tryAcquireLease(deps: LeaseDeps, upload: Upload): Promise<UploadLease | undefined> {
  const row = await acquireLease(deps.db, upload, unixSeconds(deps.clock), leaseEnd(deps))
  return row === undefined ? undefined : startRenewing(deps, row)
}

function leaseEnd({ clock }: LeaseDeps): number {
  return unixSeconds(clock) + LEASE_SECONDS
}

/** Keeps a lease that was taken until it is given back. */
function startRenewing(deps: LeaseDeps, row: UploadRow): UploadLease {
  const { db, artifacts } = deps
  const registration = artifacts.activeUploads.register(row.id)
  const onFailure = (error: unknown) =>
    deps.log.warn({ err: error, artifactId: row.id }, 'a lease could not be renewed')
  const renewing = setInterval(() => {
    updateLeased(db, row, { lease_until: leaseEnd(deps) }).catch(onFailure)
  }, RENEW_EVERY_MS).unref()
  return {
    row,
    stopped: registration.stopped,
    async release() {
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

/** With the database away: whoever goes on with the upload once it is back need not wait until the lease runs out. */
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
