/** Holds the events of a running turn in memory, until they are stored and its readers have them. */
import type { NewData } from '../inline-data/data-rows.ts'
import { decodeSegment, type LogRun, SegmentEncoder, skipEntries } from './segments.ts'
import type { ToolDataFilter } from './tool-data.ts'

/** Reading from the model pauses while this many bytes of a turn wait to be stored. */
const MAX_WAITING_BYTES = 1024 * 1024
/** A turn with this many bytes is stored without waiting for the next flush. */
const FLUSH_AT_BYTES = 64 * 1024
/** A reader that is further behind reads encoded or stored events instead. */
const MAX_KEPT_BYTES = 64 * 1024

/** Reading from all models pauses while this many bytes of all turns wait to be stored. */
const MAX_BACKLOG_BYTES = 32 * 1024 * 1024

/** Counts the bytes of all turns that wait to be stored. */
export class StoreBacklog {
  private bytes = 0
  private change = Promise.withResolvers<void>()

  get isFull(): boolean {
    return this.bytes > MAX_BACKLOG_BYTES
  }

  /** Resolves when bytes have been stored while the backlog was full. */
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
  /** Called when entries wait to be stored; `isLarge` asks to store them at once. */
  onAppend(isLarge: boolean): void
}

export interface Cursor {
  /** The number of the next entry. */
  next: number
}

/** Entries that are encoded and not yet stored. */
export interface LogSegment {
  /** The number of the first entry. */
  readonly firstSeq: number
  readonly count: number
  readonly body: Uint8Array
  /** The bytes of the entries before they were encoded. */
  readonly bytes: number
  /** The blobs that the entries name. */
  readonly data: readonly NewData[]
}

export class TurnLog {
  readonly turnId: string
  /** The number of entries so far. */
  length = 0
  /** The number of bytes in these entries. */
  bytes = 0
  private readonly events: LogEvents
  private readonly backlog: StoreBacklog
  private readonly filter: ToolDataFilter | undefined
  /** The last entries, for readers that wait for them. */
  private runs: LogRun[] = []
  private runsBytes = 0
  /** The number of the first entry in `runs`. */
  private runsFirst = 0
  private segments: LogSegment[] = []
  /** Encodes the entries after `segments`. */
  private encoder = new SegmentEncoder()
  private encoderBytes = 0
  private encoderData: NewData[] = []
  private stored = 0
  private waitingBytes = 0
  private readonly cursors = new Set<Cursor>()
  private isEnded = false
  private isStoring = true
  private isStopped = false
  private changed: PromiseWithResolvers<void> | undefined
  private storedSome = Promise.withResolvers<void>()

  /** `filter` removes data before it is stored; readers of this process still receive that data. */
  constructor(turnId: string, backlog: StoreBacklog, events: LogEvents, filter?: ToolDataFilter) {
    this.turnId = turnId
    this.backlog = backlog
    this.events = events
    this.filter = filter
  }

  /** Adds entries; `data` are the blobs that they name. */
  append(run: LogRun, data: readonly NewData[] = []): void {
    const { bytes, ends } = run
    if (ends.length === 0) return
    this.dropRead()
    this.runs.push(run)
    this.runsBytes += bytes.length
    this.encoder.add(this.filter?.apply(run) ?? run)
    this.encoderBytes += bytes.length
    this.encoderData.push(...data)
    this.length += ends.length
    this.bytes += bytes.length
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

  /** Whether new entries will be stored. */
  get isStored(): boolean {
    return this.isStoring
  }

  get hasWaiting(): boolean {
    return this.stored < this.length
  }

  /** The number and size of the entries that are not yet stored. */
  get waitingSize(): { readonly events: number; readonly bytes: number } {
    if (!this.isStoring) return { events: 0, bytes: 0 }
    return { events: this.length - this.stored, bytes: this.waitingBytes }
  }

  /** Returns the entries that are not yet stored. */
  takeWaiting(): readonly LogSegment[] {
    this.seal()
    return this.segments.slice()
  }

  /** Removes segments that `takeWaiting` has returned. */
  markStored(segments: readonly LogSegment[]): void {
    this.segments = this.segments.slice(segments.length)
    let bytes = 0
    for (const segment of segments) {
      this.stored += segment.count
      bytes += segment.bytes
    }
    this.free(bytes)
  }

  /** Keeps the log in memory only, because the store does not accept it. */
  stopStoring(): void {
    this.isStoring = false
    this.free(this.waitingBytes)
  }

  /** Lets a stopped turn end even while the store accepts nothing. */
  stopWaiting(): void {
    this.isStopped = true
    this.storedSome.resolve()
  }

  /** Whether the model must wait until more is stored. */
  get isFull(): boolean {
    const isFull = this.waitingBytes > MAX_WAITING_BYTES || this.backlog.isFull
    return isFull && this.isStoring && !this.isStopped
  }

  /** Resolves when reading from the model may continue. */
  async hasRoom(): Promise<void> {
    while (this.isFull) await Promise.race([this.storedSome.promise, this.backlog.freed])
  }

  /** Resolves when every entry so far is stored, or when the turn no longer waits for the store. */
  async isDurable(): Promise<void> {
    const wanted = this.length
    this.events.onAppend(true)
    while (this.isStoring && !this.isStopped && this.stored < wanted) await this.storedSome.promise
  }

  /**
   * Returns the entries from `from` on that are in memory; undefined if the first of them must be read from
   * the store.
   */
  readKept(from: number): readonly LogRun[] | undefined {
    if (from >= this.runsFirst) return skipRuns(this.runs, from - this.runsFirst)
    if (from < this.stored) return undefined
    this.seal()
    const index = this.segments.findLastIndex(({ firstSeq }) => firstSeq <= from)
    const segments = this.segments.slice(index)
    const runs = segments.flatMap(({ body }) => decodeSegment(body))
    return skipRuns(runs, from - (segments[0] as LogSegment).firstSeq)
  }

  /**
   * Keeps the entries after a reader's position in memory, unless the reader is far behind, until the
   * returned function is called.
   */
  open(cursor: Cursor): () => void {
    this.cursors.add(cursor)
    return () => this.cursors.delete(cursor)
  }

  /** Resolves when the log has changed. Undefined after its end. */
  get change(): Promise<void> | undefined {
    if (this.isEnded) return undefined
    this.changed ??= Promise.withResolvers()
    return this.changed.promise
  }

  wakeReaders(): void {
    this.changed?.resolve()
    this.changed = undefined
  }

  private seal(): void {
    const { encoder, segments } = this
    if (encoder.count === 0) return
    const firstSeq = this.length - encoder.count
    segments.push({
      ...{ firstSeq, count: encoder.count, body: encoder.encode() },
      ...{ bytes: this.encoderBytes, data: this.encoderData },
    })
    this.encoder = new SegmentEncoder()
    this.encoderBytes = 0
    this.encoderData = []
  }

  private free(bytes: number): void {
    this.waitingBytes -= bytes
    this.backlog.remove(bytes)
    this.storedSome.resolve()
    this.storedSome = Promise.withResolvers()
  }

  /** Drops the entries that all readers have, and those that a slow reader can read elsewhere. */
  private dropRead(): void {
    // With a filter, the stored entries lack data that readers receive.
    if (this.filter !== undefined) return
    let needed = this.length
    if (this.runsBytes <= MAX_KEPT_BYTES) for (const { next } of this.cursors) needed = Math.min(needed, next)
    let dropped = 0
    for (const { bytes, ends } of this.runs) {
      if (this.runsFirst + ends.length > needed) break
      this.runsFirst += ends.length
      this.runsBytes -= bytes.length
      dropped += 1
    }
    if (dropped === this.runs.length) this.runs = []
    else if (dropped > 0) this.runs = this.runs.slice(dropped)
  }
}

/** Returns the entries of the runs without the first `count`. */
function skipRuns(runs: readonly LogRun[], count: number): readonly LogRun[] {
  let skipped = count
  let index = 0
  for (const { ends } of runs) {
    if (skipped < ends.length) break
    skipped -= ends.length
    index += 1
  }
  const rest = runs.slice(index)
  if (skipped > 0 && rest[0] !== undefined) rest[0] = skipEntries(rest[0], skipped)
  return rest
}
