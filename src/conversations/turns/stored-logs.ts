/** Reads the stored events of turns, and follows turns that other processes run. */
import { EventEmitter } from 'node:events'
import type { ConversationStorage } from '../../db/open.ts'
import { findTurn, readEvents, type TurnRow } from '../store.ts'
import { countEntries, type LogRun } from './segments.ts'

/** Interval at which a reader looks for events of a turn that another process runs. */
const POLL_MS = 2_000
const ROWS_PER_READ = 16

export class StoredLogs {
  private readonly storage: ConversationStorage
  private readonly changes = new EventEmitter().setMaxListeners(0)

  constructor(storage: ConversationStorage) {
    this.storage = storage
  }

  /** Reports that another process has stored events of a turn. */
  wake(turnId: string): void {
    this.changes.emit(turnId)
  }

  wakeAll(): void {
    for (const id of this.changes.eventNames()) this.changes.emit(id)
  }

  /** Reads stored entries from `from` on, in parts, so that a long turn needs little memory. */
  async read(turnId: string, from: number): Promise<readonly LogRun[]> {
    const { read } = await this.storage.open()
    return readEvents(read, turnId, from, ROWS_PER_READ)
  }

  /** Follows a turn from the entry `from` on; returns at its end or when the signal aborts. */
  async *follow(
    turn: TurnRow,
    from: number,
    signal?: AbortSignal,
  ): AsyncGenerator<readonly LogRun[], void, void> {
    const { read } = await this.storage.open()
    let next = from
    for (let current: TurnRow | undefined = turn; ; ) {
      // Checked before the events are read: an ended turn has no later events.
      const isEnded = current?.status !== 'in_progress'
      const change = this.waitForChange(turn.id, signal)
      try {
        for (let runs = await this.read(turn.id, next); runs.length > 0; ) {
          yield runs
          next += countEntries(runs)
          runs = await this.read(turn.id, next)
        }
        if (isEnded || signal?.aborted) return
        await change.promise
      } finally {
        change.cancel()
      }
      current = await findTurn(read, turn.tenant, 'id', turn.id)
    }
  }

  private waitForChange(id: string, signal: AbortSignal | undefined) {
    const { promise, resolve } = Promise.withResolvers<void>()
    const onChange = () => resolve()
    const timer = setTimeout(onChange, POLL_MS)
    this.changes.on(id, onChange)
    signal?.addEventListener('abort', onChange)
    const cancel = () => {
      clearTimeout(timer)
      this.changes.off(id, onChange)
      signal?.removeEventListener('abort', onChange)
    }
    return { promise, cancel }
  }
}
