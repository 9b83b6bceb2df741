/** Appends a request's body to an upload while holding the upload's lease. */
import { createHash } from 'node:crypto'
import type { Readable } from 'node:stream'
import { unixSeconds } from '../../lib/clock.ts'
import { ServiceError } from '../../lib/errors.ts'
import { leaseStolen, uploadDeleted } from '../access.ts'
import { acquireOrStealLease } from '../coordination.ts'
import type { Dependencies } from '../dependencies.ts'
import { findUploadRow, type Upload, type UploadRow, updateLeased, updateReceived } from '../store.ts'
import { completeUpload } from './complete.ts'
import { type Received, type ReceivingOptions, receive } from './receive.ts'
import { assertLength, tooLarge, type UploadDeps } from './uploads.ts'

type AppendDeps = UploadDeps & Pick<Dependencies, 'log' | 'onUploadComplete' | 'metrics'>

export interface Part {
  readonly offset: number
  /** The upload's total length, if this request declares it. */
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
 * Appends the body and completes the upload after its last byte. After most failures, the client can resume.
 * @throws ServiceError `conflict` (different offset), `locked`, `too_large`, `invalid_value` (different
 * length, or the client disconnected), `request_timeout`, `storage_full`, `checksum_mismatch` (the upload is
 * then deleted), `not_found`, or the abort reason of `disconnected`.
 */
export async function appendBytes(
  deps: AppendDeps,
  row: UploadRow,
  part: Part,
  source: Readable,
  disconnected: AbortSignal,
): Promise<Progress> {
  assertFits(deps, row, part)
  if (row.state !== 'uploading') {
    await assertNoBytes(deps, row, part, source, disconnected)
    return { receivedBytes: row.received_bytes, expiresAt: null }
  }
  const { resumable } = deps.artifacts.store
  const lease = await acquireOrStealLease(deps, row)
  try {
    // Opens the blob before any check can fail, because the next writer expects a file with this lease's
    // fence.
    const { blob: name, received_bytes: offset, fence } = lease.row
    const blob = await resumable.extend(name, offset, fence, lease.isPreviousDone)
    if (blob === undefined) throw await rewindToStoredSize(deps, lease.row)
    const receiveBody = async () => {
      // Checks again, because another request may have appended bytes before the lease was acquired.
      assertFits(deps, lease.row, part)
      const { size_bytes: sizeBytes } = await declareLength(deps, lease.row, part)
      const receiving = { ...part, source, disconnected, stopped: lease.stopped, sizeBytes, blob }
      return receiveLeased(deps, lease.row, receiving)
    }
    const received = await receiveBody().finally(() => blob.close())
    return await finishRequest(deps, lease.row, received)
  } finally {
    await lease.release()
  }
}

/**
 * Reads a chunked body to check that it is empty; `assertFits` has already checked other bodies.
 * @throws ServiceError `too_large`
 */
async function assertNoBytes(
  deps: AppendDeps,
  { received_bytes: limit }: UploadRow,
  { offset, bodyBytes }: Part,
  source: Readable,
  disconnected: AbortSignal,
): Promise<void> {
  if (bodyBytes !== undefined) return
  const nothing = async () => {}
  const { failure } = await receive({
    ...{ source, offset, limit, disconnected, hash: undefined, stopped: new AbortController().signal },
    blob: { append: nothing, sync: nothing, close: nothing },
    idleMs: deps.config.timings.uploadIdleMs,
    syncEveryMs: deps.artifacts.store.resumable.syncEveryMs,
    refuse: () => bodyTooLong(limit),
    reserve: nothing,
    commit: nothing,
    report: nothing,
  })
  if (failure !== undefined) throw failure
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
      throw new ServiceError('invalid_value', 'Upload-Length was already set to a different value')
    if (declaredBytes < receivedBytes)
      throw new ServiceError(
        'invalid_value',
        'Upload-Length: must not be less than the number of bytes already received',
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
  Pick<ReceivingOptions, 'blob' | 'source' | 'disconnected' | 'stopped'> & {
    readonly sizeBytes: number | null
  }

interface LeasedResult extends Received {
  readonly sizeBytes: number | null
  readonly expiresAt: number | null
  readonly digest: string | undefined
}

async function receiveLeased(deps: AppendDeps, row: UploadRow, part: LeasedPart): Promise<LeasedResult> {
  const { config, artifacts, metrics } = deps
  const { offset, sizeBytes, bodyBytes } = part
  const limit = sizeBytes ?? config.limits.maxUploadBytes
  const reservation = sizeBytes === null ? reserveBytes(deps, row) : undefined
  await reservation?.grow(offset + (bodyBytes ?? 0))
  await artifacts.store.resumable.assertSpace(bodyBytes ?? 0)
  // Hashes bytes on arrival only if this request sends the upload from its first byte.
  const hash = row.checksum === null || offset > 0 ? undefined : createHash('sha256')
  let expiresAt = row.expires_at
  const commit = async (beforeBytes: number, afterBytes: number) => {
    expiresAt = unixSeconds(deps.clock) + config.uploads.expirySeconds
    const values = { received_bytes: afterBytes, expires_at: expiresAt }
    if (!(await updateReceived(deps.db, row, beforeBytes, values))) throw await explainLostLease(deps, row)
    metrics.uploads.receivedBytes.inc(afterBytes - beforeBytes)
    artifacts.changes.publish(row.id)
  }
  const report = async (bytes: number) => {
    try {
      if (await updateLeased(deps.db, row, { arrived_bytes: bytes })) artifacts.changes.publish(row.id)
    } catch (err) {
      deps.log.warn({ err, artifactId: row.id }, 'failed to report the progress of an upload')
    }
  }
  const idleMs = config.timings.uploadIdleMs
  const { syncEveryMs } = artifacts.store.resumable
  const refuse = () => bodyTooLong(limit)
  const reserve = async (bytes: number) => reservation?.grow(bytes)
  const recording = { reserve, commit, report }
  const received = await receive({ ...part, ...recording, limit, refuse, hash, idleMs, syncEveryMs })
  await reservation?.shrink(received.writtenBytes)
  return { ...received, sizeBytes, expiresAt, digest: hash?.digest('hex') }
}

/**
 * Completes the upload even if the client disconnected after the last byte, because no further request
 * follows.
 */
async function finishRequest(deps: AppendDeps, row: UploadRow, received: LeasedResult): Promise<Progress> {
  const { bytes, sizeBytes, failure, digest } = received
  const isComplete = bytes === sizeBytes
  if (isComplete) await completeUpload(deps, { ...row, received_bytes: bytes }, digest)
  if (failure !== undefined) throw failure
  return { receivedBytes: bytes, expiresAt: isComplete ? null : received.expiresAt }
}

/**
 * Lowers the recorded offset after acknowledged bytes were lost. Returns the error that makes the client send
 * them again.
 */
async function rewindToStoredSize(deps: AppendDeps, row: UploadRow): Promise<ServiceError> {
  const sizeBytes = (await deps.artifacts.store.resumable.findSize(row.blob, row.fence)) ?? 0
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

const RESERVED_AHEAD_BYTES = 8 * 1024 ** 2

/** Reserves quota for an upload of unknown length before its bytes are written. */
function reserveBytes(deps: AppendDeps, row: UploadRow) {
  let keptBytes = row.kept_bytes
  return {
    /** @throws ServiceError `too_large` (`storage_quota_exceeded`), `locked`, `not_found` */
    async grow(bytes: number): Promise<void> {
      if (bytes <= keptBytes) return
      keptBytes = await deps.db.transaction().execute(async (trx) => {
        const leastBytes = bytes - keptBytes
        const tenantId = row.parent_key_id
        const moreBytes = await deps.quota.countReservable(trx, tenantId, leastBytes, RESERVED_AHEAD_BYTES)
        const values = { kept_bytes: keptBytes + moreBytes }
        if (!(await updateLeased(trx, row, values))) throw await explainLostLease({ db: trx }, row)
        return values.kept_bytes
      })
    },
    /** Never throws, because the received bytes are already recorded. */
    async shrink(bytes: number): Promise<void> {
      if (bytes >= keptBytes) return
      await updateLeased(deps.db, row, { kept_bytes: bytes }).catch((err) =>
        deps.log.warn({ err, artifactId: row.id }, 'failed to release reserved quota'),
      )
    },
  }
}

async function explainLostLease({ db }: Pick<Dependencies, 'db'>, upload: Upload): Promise<ServiceError> {
  return (await findUploadRow(db, upload)) === undefined ? uploadDeleted() : leaseStolen()
}
