/** Takes the bytes of one request into a growing blob as they come, and writes down now and then how many are safe. */
import type { Hash } from 'node:crypto'
import type { Readable } from 'node:stream'
import { ServiceError } from '../../lib/errors.ts'
import { countPassed } from '../../lib/external-memory.ts'
import type { ResumableBlob } from '../../storage/blobs.ts'

/** After so many bytes, or so long, what has come is made safe in the middle of a request. Security: 2.8. */
const SYNC_EVERY_BYTES = 8 * 1024 ** 2
const SYNC_EVERY_MS = 5_000
/** While the disk is busy, so many bytes may wait for it in memory. */
const MAX_WAITING_BYTES = 1024 ** 2

export interface ReceivingOptions {
  readonly source: Readable
  readonly blob: ResumableBlob
  /** Bytes that were there before. */
  readonly offset: number
  /** The most bytes there may be in all. */
  readonly limit: number
  /** Why there may be no more. */
  refuse(): ServiceError
  /** The longest silence. Security: 2.4. */
  readonly idleMs: number
  /** Fed with every byte. */
  readonly hash: Hash | undefined
  /** Aborted when the sender leaves or the service does: what has come is kept. */
  readonly disconnected: AbortSignal
  /** Aborted when somebody else takes the upload over, or it is removed: what was not written down yet is dropped. */
  readonly stopped: AbortSignal
  /** Writes down how many bytes are safe, on top of those that were. @throws when that is not ours to say any more. */
  commit(beforeBytes: number, afterBytes: number): Promise<void>
}

/** What came of it. */
export interface Received {
  /** So many bytes are safe, in all. */
  readonly bytes: number
  /** Why no more came than did; undefined when the request was whole. */
  readonly failure: unknown
}

/** Resolves when the request is over, one way or the other, and nothing is being written any more. */
export function receive(options: ReceivingOptions): Promise<Received> {
  return new Receiving(options).run()
}

/** What is still done with bytes once something ended it: `all` that came are kept, or those `written`, or no more than the `safe` ones. */
interface Halt {
  readonly failure: unknown
  readonly keeps: 'all' | 'written' | 'safe'
}

class Receiving {
  private readonly options: ReceivingOptions
  private waiting: Uint8Array[] = []
  private waitingBytes = 0
  private arrivedBytes: number
  private writtenBytes: number
  private safeBytes: number
  private hasEnded = false
  private halt: Halt | undefined
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
    if (this.halt?.keeps !== 'safe') await this.sync().catch((error) => this.end(error, 'safe'))
    return { bytes: this.safeBytes, failure: this.halt?.failure }
  }

  /** Listens to everything that can happen; the function returned ends that. */
  private attach(): () => void {
    const { source, idleMs, disconnected, stopped } = this.options
    const idle = setTimeout(() => {
      // A busy disk is not the sender's silence.
      if (this.waitingBytes > 0) idle.refresh()
      else this.end(idleTimeout(), 'all')
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
      if (!this.hasEnded) this.end(bodyEndedEarly(), 'all')
    }
    const onDisconnect = () => this.end(disconnected.reason, 'all')
    const onStopped = () => this.end(stopped.reason, 'safe')
    source.on('data', onData).on('end', onEnd).on('error', onClose).on('close', onClose)
    disconnected.addEventListener('abort', onDisconnect)
    stopped.addEventListener('abort', onStopped)
    if (source.destroyed) onClose()
    if (disconnected.aborted) onDisconnect()
    if (stopped.aborted) onStopped()
    // A listener for errors stays: one may still come.
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
    // Whoever sends more than was announced is wrong about the rest as well.
    if (this.arrivedBytes > limit) {
      this.end(refuse(), 'safe')
      return
    }
    this.waiting.push(chunk)
    this.waitingBytes += chunk.length
    if (this.waitingBytes >= MAX_WAITING_BYTES) source.pause()
    this.wake()
  }

  /** The first end counts. */
  private end(failure: unknown, keeps: Halt['keeps']): void {
    this.halt ??= { failure, keeps }
    this.wake()
  }

  private async hasMore(): Promise<boolean> {
    while (this.waitingBytes === 0 && !this.hasEnded && this.halt === undefined) {
      await new Promise<void>((resolve) => {
        this.wake = resolve
      })
    }
    return this.waitingBytes > 0 && (this.halt === undefined || this.halt.keeps === 'all')
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
    countPassed(sizeBytes)
    if (this.writtenBytes - this.safeBytes >= SYNC_EVERY_BYTES) this.syncInBackground()
  }

  /**
   * Makes safe what is written while more comes in. The last byte waits for the end of the request: until then there may be one too
   * many.
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
      if (this.halt?.keeps === 'safe') throw this.halt.failure
      await this.options.commit(before, after)
      this.safeBytes = after
    })
  }
}

function idleTimeout(): ServiceError {
  return new ServiceError('request_timeout', 'No bytes arrived for too long; the upload can be resumed.')
}

function bodyEndedEarly(): ServiceError {
  return new ServiceError('invalid_value', 'The request body ended early; the upload can be resumed.')
}
