/** Appends the body of one request to an upload under a lease, and records at intervals how many bytes are durable. */
import { createHash, type Hash } from 'node:crypto'
import type { Readable } from 'node:stream'
import { unixSeconds } from '../../lib/clock.ts'
import { ServiceError } from '../../lib/errors.ts'
import { countExternalBytes } from '../../lib/external-memory.ts'
import type { ResumableBlob } from '../../storage/blobs.ts'
import { leaseStolen, uploadDeleted } from '../access.ts'
import { acquireOrStealLease } from '../coordination.ts'
import type { Dependencies } from '../dependencies.ts'
import { findUploadRow, type Upload, type UploadRow, updateLeased, updateReceived } from '../store.ts'
import { completeUpload } from './complete.ts'
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

/** Received bytes are synced and recorded at this interval during a request. */
const SYNC_EVERY_BYTES = 8 * 1024 ** 2
const SYNC_EVERY_MS = 5_000
/** Maximum number of bytes that wait in memory for a busy disk. */
const MAX_WAITING_BYTES = 1024 ** 2

interface ReceivingOptions {
  readonly source: Readable
  readonly blob: ResumableBlob
  readonly offset: number
  readonly limit: number
  refuse(): ServiceError
  /** The longest pause allowed between two chunks, in milliseconds. */
  readonly idleMs: number
  readonly hash: Hash | undefined
  /** Aborts when the client disconnects or the service stops; received bytes are kept. */
  readonly disconnected: AbortSignal
  /** Aborts when the lease is stolen or the upload is deleted; unrecorded bytes are dropped. */
  readonly stopped: AbortSignal
  /** Records the number of durable bytes. @throws if the lease is lost. */
  commit(beforeBytes: number, afterBytes: number): Promise<void>
}

interface Received {
  readonly bytes: number
  readonly failure: unknown
}

/** Resolves when the request has ended and no write is running. */
function receive(options: ReceivingOptions): Promise<Received> {
  return new Receiving(options).run()
}

/**
 * Which bytes to keep after a failure: `all` that were received, those `written`, or only the `safe`
 * (recorded) ones.
 */
type Retained = 'all' | 'written' | 'safe'

class Receiving {
  private readonly options: ReceivingOptions
  private waiting: Uint8Array[] = []
  private waitingBytes = 0
  private arrivedBytes: number
  private writtenBytes: number
  private safeBytes: number
  private hasEnded = false
  private halt: { readonly failure: unknown; readonly retained: Retained } | undefined
  private syncing: Promise<void> | undefined
  private wake: () => void = () => {}

  constructor(options: ReceivingOptions) {
    this.options = options
    this.arrivedBytes = options.offset
    this.writtenBytes = options.offset
    this.safeBytes = options.offset
  }

  async run(): Promise<Received> {
    const detach = this.attach()
    try {
      while (await this.hasMore()) await this.write()
    } catch (error) {
      this.end(error, 'written')
    }
    detach()
    await this.syncing
    if (this.halt?.retained !== 'safe') await this.sync().catch((error) => this.end(error, 'safe'))
    return { bytes: this.safeBytes, failure: this.halt?.failure }
  }

  private attach(): () => void {
    const { source, idleMs, disconnected, stopped } = this.options
    const fail = (code: 'request_timeout' | 'invalid_value', problem: string) =>
      this.end(new ServiceError(code, `${problem}. You can resume the upload.`), 'all')
    const idle = setTimeout(() => {
      // A busy disk does not count as a pause of the client.
      if (this.waitingBytes > 0) idle.refresh()
      else fail('request_timeout', 'The client sent no data before the timeout')
    }, idleMs)
    const syncing = setInterval(() => this.syncInBackground(), SYNC_EVERY_MS)
    const onData = (chunk: Uint8Array) => {
      idle.refresh()
      this.take(chunk)
    }
    const onEnd = () => {
      this.hasEnded = true
      this.wake()
    }
    const onClose = () => {
      if (!this.hasEnded) fail('invalid_value', 'The request body ended early')
    }
    const onDisconnect = () => this.end(disconnected.reason, 'all')
    const onStopped = () => this.end(stopped.reason, 'safe')
    source.on('data', onData).on('end', onEnd).on('error', onClose).on('close', onClose)
    disconnected.addEventListener('abort', onDisconnect)
    stopped.addEventListener('abort', onStopped)
    if (source.destroyed) onClose()
    if (disconnected.aborted) onDisconnect()
    if (stopped.aborted) onStopped()
    // Keeps the error listener, because an error may still be emitted.
    return () => {
      clearTimeout(idle)
      clearInterval(syncing)
      source.off('data', onData).off('end', onEnd).off('close', onClose)
      disconnected.removeEventListener('abort', onDisconnect)
      stopped.removeEventListener('abort', onStopped)
    }
  }

  private take(chunk: Uint8Array): void {
    const { limit, refuse, source } = this.options
    if (this.halt !== undefined) return
    this.arrivedBytes += chunk.length
    // Keeps no unrecorded bytes of a client that sends more than it announced, because the others may be wrong too.
    if (this.arrivedBytes > limit) {
      this.end(refuse(), 'safe')
      return
    }
    this.waiting.push(chunk)
    this.waitingBytes += chunk.length
    if (this.waitingBytes >= MAX_WAITING_BYTES) source.pause()
    this.wake()
  }

  private end(failure: unknown, retained: Retained): void {
    this.halt ??= { failure, retained }
    this.wake()
  }

  private async hasMore(): Promise<boolean> {
    while (this.waitingBytes === 0 && !this.hasEnded && this.halt === undefined) {
      await new Promise<void>((resolve) => {
        this.wake = resolve
      })
    }
    return this.waitingBytes > 0 && (this.halt === undefined || this.halt.retained === 'all')
  }

  private async write(): Promise<void> {
    const { blob, source, hash } = this.options
    const [chunks, sizeBytes] = [this.waiting, this.waitingBytes]
    this.waiting = []
    this.waitingBytes = 0
    if (source.isPaused()) source.resume()
    const appending = blob.append(chunks)
    for (const chunk of chunks) hash?.update(chunk)
    await appending
    this.writtenBytes += sizeBytes
    countExternalBytes(sizeBytes)
    if (this.writtenBytes - this.safeBytes >= SYNC_EVERY_BYTES) this.syncInBackground()
  }

  /**
   * Syncs in the background. Leaves a complete upload unsynced until the request ends, because the client
   * may still send more than it declared.
   */
  private syncInBackground(): void {
    if (this.syncing !== undefined || this.writtenBytes >= this.options.limit) return
    this.syncing = this.sync()
      .catch((error) => this.end(error, 'safe'))
      .finally(() => {
        this.syncing = undefined
      })
  }

  private async sync(): Promise<void> {
    const [before, after] = [this.safeBytes, this.writtenBytes]
    if (after === before) return
    await this.options.blob.sync(async () => {
      if (this.halt?.retained === 'safe') throw this.halt.failure
      await this.options.commit(before, after)
      this.safeBytes = after
    })
  }
}
