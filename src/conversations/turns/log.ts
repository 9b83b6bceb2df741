/** Holds the events of a running turn in memory, until they are stored and its readers have them. */
import { type LogRun, skipEntries } from './segments.ts'

/** The model is not read further while this many bytes of a turn wait to be stored. */
const MAX_WAITING_BYTES = 1024 * 1024
/** A turn with this many bytes is stored without waiting for the next flush. */
const FLUSH_AT_BYTES = 64 * 1024
/** A reader that is more bytes behind reads stored events from the database. */
const MAX_KEPT_BYTES = 64 * 1024

/** No model is read further while this many bytes of all turns wait to be stored. */
const MAX_BACKLOG_BYTES = 32 * 1024 * 1024

/** The bytes of all turns that wait to be stored. */
export class StoreBacklog {
  private bytes = 0
  private change = Promise.withResolvers<void>()

  get isFull(): boolean {
    return this.bytes > MAX_BACKLOG_BYTES
  }

  /** Resolves when bytes have been stored. */
  get freed(): Promise<void> {
    return this.change.promise
  }

  add(bytes: number): void {
    this.bytes += bytes
  }

  remove(bytes: number): void {
    const wasFull = this.isFull
    this.bytes -= bytes
    if (!wasFull) return
    this.change.resolve()
    this.change = Promise.withResolvers()
  }
}

export interface LogEvents {
  /** Called with true when the turn should be stored soon. */
  onAppend(isLarge: boolean): void
}

/** The position of a reader. */
export interface Cursor {
  /** The number of the next entry. */
  next: number
}

export class TurnLog {
  readonly turnId: string
  /** The number of entries so far. */
  length = 0
  /** The number of their bytes. */
  bytes = 0
  private readonly events: LogEvents
  private readonly backlog: StoreBacklog
  private runs: LogRun[] = []
  /** The number of the first entry in `runs`. */
  private first = 0
  private keptBytes = 0
  /** The number of entries that are stored. */
  private stored = 0
  private waitingBytes = 0
  private readonly cursors = new Set<Cursor>()
  private isEnded = false
  private isStoring = true
  private isStopped = false
  private changed: PromiseWithResolvers<void> | undefined
  private storedSome = Promise.withResolvers<void>()

  constructor(turnId: string, backlog: StoreBacklog, events: LogEvents) {
    this.turnId = turnId
    this.backlog = backlog
    this.events = events
  }

  append(run: LogRun): void {
    const { bytes, ends } = run
    if (ends.length === 0) return
    this.runs.push(run)
    this.length += ends.length
    this.bytes += bytes.length
    this.keptBytes += bytes.length
    this.wakeReaders()
    if (!this.isStoring) return
    this.waitingBytes += bytes.length
    this.backlog.add(bytes.length)
    this.events.onAppend(this.waitingBytes >= FLUSH_AT_BYTES)
  }

  /** Ends the log: readers return after the last entry. */
  end(): void {
    this.isEnded = true
    this.wakeReaders()
  }

  /** The entries that are not yet stored, and the number of the first. */
  get waiting(): { readonly firstSeq: number; readonly runs: readonly LogRun[] } {
    return { firstSeq: this.stored, runs: this.since(this.stored) }
  }

  get hasWaiting(): boolean {
    return this.stored < this.length
  }

  markStored({ count, bytes }: { readonly count: number; readonly bytes: number }): void {
    this.stored += count
    this.free(bytes)
    this.trim()
  }

  /** Keeps the log in memory only, because the store does not accept it. */
  stopStoring(): void {
    this.isStoring = false
    this.free(this.waitingBytes)
  }

  /** Lets a turn that was stopped end, even while nothing can be stored. */
  stopWaiting(): void {
    this.isStopped = true
    this.storedSome.resolve()
  }

  /** Whether the model must wait until more is stored. */
  get isFull(): boolean {
    const isFull = this.waitingBytes > MAX_WAITING_BYTES || this.backlog.isFull
    return isFull && this.isStoring && !this.isStopped
  }

  /** Resolves when the model may be read further. */
  async hasRoom(): Promise<void> {
    while (this.isFull) await Promise.race([this.storedSome.promise, this.backlog.freed])
  }

  /** Resolves when every entry so far is stored. */
  async isDurable(): Promise<void> {
    const wanted = this.length
    this.events.onAppend(true)
    while (this.isStoring && !this.isStopped && this.stored < wanted) await this.storedSome.promise
  }

  /** Returns the entries from `from` on; undefined if they are only in the database, where all of them are stored. */
  readKept(from: number): readonly LogRun[] | undefined {
    return from < this.first ? undefined : this.since(from)
  }

  /** Keeps the entries after a reader's position in memory, unless the reader is far behind. */
  open(cursor: Cursor): () => void {
    this.cursors.add(cursor)
    return () => this.cursors.delete(cursor)
  }

  /** Undefined after the end. Resolves when the log has changed. */
  get change(): Promise<void> | undefined {
    if (this.isEnded) return undefined
    this.changed ??= Promise.withResolvers()
    return this.changed.promise
  }

  private since(from: number): LogRun[] {
    const { runs } = this
    let index = runs.length
    let start = this.length
    while (index > 0 && start > from) {
      index -= 1
      start -= (runs[index] as LogRun).ends.length
    }
    const found = runs.slice(index)
    if (start < from && found[0] !== undefined) found[0] = skipEntries(found[0], from - start)
    return found
  }

  private free(bytes: number): void {
    this.waitingBytes -= bytes
    this.backlog.remove(bytes)
    this.storedSome.resolve()
    this.storedSome = Promise.withResolvers()
  }

  /** Drops stored entries that no reader needs. */
  private trim(): void {
    if (!this.isStoring) return
    let needed = this.stored
    for (const { next } of this.cursors) needed = Math.min(needed, next)
    let dropped = 0
    for (const { bytes, ends } of this.runs) {
      const end = this.first + ends.length
      if (end > (this.keptBytes > MAX_KEPT_BYTES ? this.stored : needed)) break
      this.first = end
      this.keptBytes -= bytes.length
      dropped += 1
    }
    if (dropped > 0) this.runs = this.runs.slice(dropped)
  }

  wakeReaders(): void {
    this.changed?.resolve()
    this.changed = undefined
  }
}

