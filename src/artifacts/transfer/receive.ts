/** Writes a request body to a resumable blob, and periodically records how many bytes are durable. */
import type { Hash } from 'node:crypto'
import type { Readable } from 'node:stream'
import { ServiceError } from '../../lib/errors.ts'
import { countExternalBytes } from '../../lib/external-memory.ts'
import type { ResumableBlob } from '../../storage/blobs.ts'

/** After receiving this many bytes, syncs and records them. */
const SYNC_EVERY_BYTES = 8 * 1024 ** 2
/** Interval between reports of the number of received bytes, in milliseconds. */
const REPORT_EVERY_MS = 1_000
/** Maximum memory for chunks that are waiting for the disk, in bytes. */
const MAX_HELD_BYTES = 1024 ** 2
/** Memory that a chunk uses in addition to its content, in bytes. */
const CHUNK_OVERHEAD_BYTES = 256

export interface ReceivingOptions {
  readonly source: Readable
  readonly blob: ResumableBlob
  readonly offset: number
  readonly limit: number
  refuse(): ServiceError
  /** Reserves quota for this many bytes of the upload. @throws if they exceed it. */
  reserve(bytes: number): Promise<void>
  /** The longest pause allowed between two chunks, in milliseconds. */
  readonly idleMs: number
  /** Interval at which received bytes are recorded as durable, in milliseconds. */
  readonly syncEveryMs: number
  readonly hash: Hash | undefined
  /** Aborts when the client disconnects or the service stops; received bytes are stored. */
  readonly disconnected: AbortSignal
  /** Aborts when the lease is stolen or the upload is deleted; unrecorded bytes are discarded. */
  readonly stopped: AbortSignal
  /** Records the number of durable bytes. @throws if the lease was lost. */
  commit(beforeBytes: number, afterBytes: number): Promise<void>
  /** Publishes the number of received bytes, including those that are not durable yet. */
  report(bytes: number): Promise<void>
}

export interface Received {
  /** Number of recorded bytes of the whole upload. */
  readonly bytes: number
  /** Number of written bytes, including unrecorded ones. */
  readonly writtenBytes: number
  readonly failure: unknown
}

/** Writes a request body to the blob. Resolves when the request has ended and no write is running. */
export function receive(options: ReceivingOptions): Promise<Received> {
  return new Receiving(options).run()
}

/**
 * The bytes to retain after a failure: all received bytes (`all`), the written bytes (`written`), or only the
 * recorded bytes (`safe`).
 */
type Retained = 'all' | 'written' | 'safe'

class Receiving {
  private readonly options: ReceivingOptions
  private waiting: Uint8Array[] = []
  private waitingBytes = 0
  /** Memory used by the waiting chunks, in bytes. */
  private heldBytes = 0
  private arrivedBytes: number
  private writtenBytes: number
  private safeBytes: number
  private hasEnded = false
  private halt: { readonly failure: unknown; readonly retained: Retained } | undefined
  private syncing: Promise<void> | undefined
  private reportedBytes: number
  private reporting: Promise<void> | undefined
  private wake: () => void = () => {}

  constructor(options: ReceivingOptions) {
    this.options = options
    this.arrivedBytes = options.offset
    this.writtenBytes = options.offset
    this.safeBytes = options.offset
    this.reportedBytes = options.offset
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
    await this.reporting
    if (this.halt?.retained !== 'safe') await this.sync().catch((error) => this.end(error, 'safe'))
    return { bytes: this.safeBytes, writtenBytes: this.writtenBytes, failure: this.halt?.failure }
  }

  private attach(): () => void {
    const { source, idleMs, syncEveryMs, disconnected, stopped } = this.options
    const fail = (code: 'request_timeout' | 'invalid_value', problem: string) =>
      this.end(new ServiceError(code, `${problem}. You can resume the upload.`), 'all')
    const idle = setTimeout(() => {
      // The client is not idle while its bytes are waiting for the disk.
      if (this.waitingBytes > 0) idle.refresh()
      else fail('request_timeout', 'The client sent no data before the timeout')
    }, idleMs)
    const syncing = setInterval(() => this.syncInBackground(), syncEveryMs)
    // Reports are not needed if received bytes are recorded as durable at least as often.
    const reporting =
      syncEveryMs > REPORT_EVERY_MS
        ? setInterval(() => this.reportInBackground(), REPORT_EVERY_MS)
        : undefined
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
    // Leaves the error listener attached, because the stream may still emit an error.
    return () => {
      clearTimeout(idle)
      clearInterval(syncing)
      clearInterval(reporting)
      source.off('data', onData).off('end', onEnd).off('close', onClose)
      disconnected.removeEventListener('abort', onDisconnect)
      stopped.removeEventListener('abort', onStopped)
    }
  }

  private take(chunk: Uint8Array): void {
    const { limit, refuse, source } = this.options
    if (this.halt !== undefined) return
    this.arrivedBytes += chunk.length
    // Discards unrecorded bytes, because a client that sends more than it declared may also have sent wrong
    // bytes.
    if (this.arrivedBytes > limit) {
      this.end(refuse(), 'safe')
      return
    }
    this.waiting.push(chunk)
    this.waitingBytes += chunk.length
    this.heldBytes += chunk.length + CHUNK_OVERHEAD_BYTES
    if (this.heldBytes >= MAX_HELD_BYTES) source.pause()
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
    this.heldBytes = 0
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

  /**
   * Does not sync a complete upload until the request ends, because the client may still send more than it
   * declared.
   */
  private syncInBackground(): void {
    if (this.syncing !== undefined || this.writtenBytes >= this.options.limit) return
    this.syncing = this.sync()
      .catch((error) => this.end(error, 'safe'))
      .finally(() => {
        this.syncing = undefined
      })
  }

  private reportInBackground(): void {
    const bytes = this.writtenBytes
    if (this.reporting !== undefined || bytes <= Math.max(this.reportedBytes, this.safeBytes)) return
    this.reportedBytes = bytes
    this.reporting = this.options.report(bytes).finally(() => {
      this.reporting = undefined
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
