/** Holds a running turn's events in memory, for readers and until the events are stored. */
import type { LogEntry } from './segments.ts'
import { toStoredEntry } from './tool-data.ts'

/** Reading from the model pauses while this many bytes of a turn wait to be stored. */
const MAX_WAITING_BYTES = 1024 * 1024
/** A turn with this many bytes is stored without waiting for the next flush. */
const FLUSH_AT_BYTES = 64 * 1024

export interface LogEvents {
  /** Called with true when the turn should be stored soon. */
  onAppend(isLarge: boolean): void
}

export class TurnLog {
  readonly turnId: string
  private readonly events: LogEvents
  private readonly entries: LogEntry[] = []
  /** The number of entries that are stored. */
  private stored = 0
  private waitingBytes = 0
  private isEnded = false
  private isStoring = true
  private changed = Promise.withResolvers<void>()
  private storedSome = Promise.withResolvers<void>()

  constructor(turnId: string, events: LogEvents) {
    this.turnId = turnId
    this.events = events
  }

  get length(): number {
    return this.entries.length
  }

  get all(): readonly LogEntry[] {
    return this.entries
  }

  append(entry: LogEntry): void {
    this.entries.push(entry)
    this.notify()
    if (!this.isStoring) return
    this.waitingBytes += entry.bytes.length
    this.events.onAppend(this.waitingBytes >= FLUSH_AT_BYTES)
  }

  /** Ends the log: readers return after the last entry. */
  end(): void {
    this.isEnded = true
    this.notify()
  }

  /** The entries that are not yet stored, and the number of the first. */
  get waiting(): { readonly firstSeq: number; readonly entries: readonly LogEntry[] } {
    return { firstSeq: this.stored, entries: this.entries.slice(this.stored).map(toStoredEntry) }
  }

  /** The number and size of the entries that are not yet stored. */
  get waitingSize(): { readonly events: number; readonly bytes: number } {
    if (!this.isStoring) return { events: 0, bytes: 0 }
    return { events: this.entries.length - this.stored, bytes: this.waitingBytes }
  }

  markStored(count: number): void {
    for (const { bytes } of this.entries.slice(this.stored, this.stored + count))
      this.waitingBytes -= bytes.length
    this.stored += count
    this.storedSome.resolve()
    this.storedSome = Promise.withResolvers()
  }

  /** Keeps the log in memory only, because the store does not accept it. */
  stopStoring(): void {
    this.isStoring = false
    this.waitingBytes = 0
    this.storedSome.resolve()
  }

  /** Resolves when the model may be read further. */
  async hasRoom(): Promise<void> {
    while (this.isStoring && this.waitingBytes > MAX_WAITING_BYTES) await this.storedSome.promise
  }

  /** Resolves when every entry so far is stored. */
  async isDurable(): Promise<void> {
    const wanted = this.entries.length
    this.events.onAppend(true)
    while (this.isStoring && this.stored < wanted) await this.storedSome.promise
  }

  /**
   * Yields the entries as they arrive, starting with number `from`, until the turn ends or the signal aborts.
   */
  async *read(from: number, signal?: AbortSignal): AsyncGenerator<LogEntry, void, void> {
    const aborted = signal === undefined ? undefined : onAbort(signal)
    for (let at = from; ; at++) {
      while (at >= this.entries.length) {
        if (this.isEnded || signal?.aborted) return
        await (aborted === undefined ? this.changed.promise : Promise.race([this.changed.promise, aborted]))
      }
      yield this.entries[at] as LogEntry
    }
  }

  private notify(): void {
    this.changed.resolve()
    this.changed = Promise.withResolvers()
  }
}

function onAbort(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
}
