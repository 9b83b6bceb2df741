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
 * Receives bytes and completes the upload after its last one. After most failures the upload can be resumed.
 * @throws ServiceError `conflict` (another offset), `locked`, `too_large`, `invalid_value` (another length; the client disconnected),
 * `request_timeout`, `storage_full`, `checksum_mismatch` (then the upload is gone), `not_found`, the reason of `disconnected`.
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
  const { resumable } = deps.artifacts.store
  const lease = await acquireOrStealLease(deps, row)
  try {
    // Before anything that may reject the request, so that the next writer finds the file of this lease.
    const { blob: name, received_bytes: offset, fence } = lease.row
    const blob = await resumable.extend(name, offset, fence, lease.isPreviousDone)
    if (blob === undefined) throw await rewindToStoredSize(deps, lease.row)
    const receiveBody = async () => {
      // Another request may have appended bytes before the lease was acquired.
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
  // Earlier bytes are not read again, so only an upload in a single request is hashed on arrival.
  const hash = row.checksum === null || offset > 0 ? undefined : createHash('sha256')
  let expiresAt = row.expires_at
  const commit = async (beforeBytes: number, afterBytes: number) => {
    expiresAt = unixSeconds(deps.clock) + config.uploads.expirySeconds
    const values = { received_bytes: afterBytes, expires_at: expiresAt }
    if (!(await updateReceived(deps.db, row, beforeBytes, values))) throw await explainLostLease(deps, row)
    metrics.uploads.receivedBytes.inc(afterBytes - beforeBytes)
    artifacts.changes.publish(row.id)
  }
  const idleMs = config.timings.uploadIdleMs
  const refuse = () => bodyTooLong(limit)
  const reserve = async (bytes: number) => reservation?.grow(bytes)
  const received = await receive({ ...part, limit, refuse, reserve, hash, idleMs, commit })
  await reservation?.shrink(received.writtenBytes)
  return { ...received, sizeBytes, expiresAt, digest: hash?.digest('hex') }
}

/** Completes the upload also after a failure: a client that disconnected after the last byte sends no further request. */
async function finishRequest(deps: AppendDeps, row: UploadRow, received: LeasedResult): Promise<Progress> {
  const { bytes, sizeBytes, failure, digest } = received
  const isComplete = bytes === sizeBytes
  if (isComplete) await completeUpload(deps, { ...row, received_bytes: bytes }, digest)
  if (failure !== undefined) throw failure
  return { receivedBytes: bytes, expiresAt: isComplete ? null : received.expiresAt }
}

/** Acknowledged bytes are gone, for example deleted by the bucket; the client must send them again. */
async function rewindToStoredSize(deps: AppendDeps, row: UploadRow): Promise<ServiceError> {
  const sizeBytes = (await deps.artifacts.store.resumable.findSize(row.blob, row.fence)) ?? 0
  if (sizeBytes < row.received_bytes) {
    const { id: artifactId, received_bytes: receivedBytes } = row
    deps.log.warn({ artifactId, sizeBytes, receivedBytes }, 'bytes were lost')
    if (!(await updateLeased(deps.db, row, { received_bytes: sizeBytes }))) return explainLostLease(deps, row)
  }
  return new ServiceError('conflict', `Upload-Offset: the upload is at ${sizeBytes}`)
}

const RESERVED_AHEAD_BYTES = 8 * 1024 ** 2

/** Counts the bytes of an upload of unknown length against the quota before they are written. */
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
    /** Never fails, because the received bytes are recorded already. */
    async shrink(bytes: number): Promise<void> {
      if (bytes >= keptBytes) return
      await updateLeased(deps.db, row, { kept_bytes: bytes }).catch((err) =>
        deps.log.warn({ err, artifactId: row.id }, 'reserved bytes could not be released yet'),
      )
    },
  }
}

async function explainLostLease({ db }: Pick<Dependencies, 'db'>, upload: Upload): Promise<ServiceError> {
  return (await findUploadRow(db, upload)) === undefined ? uploadDeleted() : leaseStolen()
}

/** How often received bytes are synced and recorded during a request. */
const SYNC_EVERY_BYTES = 8 * 1024 ** 2
const SYNC_EVERY_MS = 5_000
/** Bytes that may wait in memory for a busy disk. */
const MAX_WAITING_BYTES = 1024 ** 2

interface ReceivingOptions {
  readonly source: Readable
  readonly blob: ResumableBlob
  readonly offset: number
  readonly limit: number
  refuse(): ServiceError
  /** Counts so many bytes of the upload against the quota. @throws if they do not fit. */
  reserve(bytes: number): Promise<void>
  /** The longest pause of the client. */
  readonly idleMs: number
  readonly hash: Hash | undefined
  /** Aborts when the client disconnects or the service stops: received bytes are kept. */
  readonly disconnected: AbortSignal
  /** Aborts when the lease is stolen or the upload is deleted: unrecorded bytes are dropped. */
  readonly stopped: AbortSignal
  /** Records the number of durable bytes. @throws if the lease is lost. */
  commit(beforeBytes: number, afterBytes: number): Promise<void>
}

interface Received {
  /** The recorded bytes of the upload. */
  readonly bytes: number
  /** With the bytes that are stored, but will be dropped. */
  readonly writtenBytes: number
  readonly failure: unknown
}

/** Resolves when the request has ended and no write is running. */
function receive(options: ReceivingOptions): Promise<Received> {
  return new Receiving(options).run()
}

/** The bytes to keep after a failure: `all` received ones, those `written`, or only the `safe` (recorded) ones. */
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
    return { bytes: this.safeBytes, writtenBytes: this.writtenBytes, failure: this.halt?.failure }
  }

  private attach(): () => void {
    const { source, idleMs, disconnected, stopped } = this.options
    const fail = (code: 'request_timeout' | 'invalid_value', problem: string) =>
      this.end(new ServiceError(code, `${problem}; the upload can be resumed.`), 'all')
    const idle = setTimeout(() => {
      // A busy disk is not a pause of the client.
      if (this.waitingBytes > 0) idle.refresh()
      else fail('request_timeout', 'No bytes arrived for too long')
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
    // A client that sends more than it announced is wrong about the other bytes too.
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
    const { blob, source, hash, reserve } = this.options
    const [chunks, sizeBytes] = [this.waiting, this.waitingBytes]
    this.waiting = []
    this.waitingBytes = 0
    try {
      await reserve(this.writtenBytes + sizeBytes)
    } catch (error) {
      this.end(error, 'safe')
      return
    }
    if (source.isPaused()) source.resume()
    const appending = blob.append(chunks)
    for (const chunk of chunks) hash?.update(chunk)
    await appending
    this.writtenBytes += sizeBytes
    countExternalBytes(sizeBytes)
    if (this.writtenBytes - this.safeBytes >= SYNC_EVERY_BYTES) this.syncInBackground()
  }

  /** Syncs while more bytes arrive. The last byte is synced only after the request ends, because the body may be too long. */
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
