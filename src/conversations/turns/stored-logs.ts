/** Reads the stored events of turns, and follows turns that other processes run. */
import { EventEmitter } from 'node:events'
import type { Dependencies } from '../dependencies.ts'
import { findTurn, readEvents, type TurnRow } from '../store.ts'
import { announceReader, POLL_MS } from './announce-reader.ts'
import { findFailure } from './failures.ts'
import { countEntries, type LogRun } from './segments.ts'

const ROWS_PER_READ = 16

type LogDependencies = Pick<Dependencies, 'bus' | 'clock' | 'log' | 'storage'>

export class StoredLogs {
  private readonly deps: LogDependencies
  private readonly changes = new EventEmitter().setMaxListeners(0)

  constructor(deps: LogDependencies) {
    this.deps = deps
  }

  /** Wakes everything in this process that waits for this turn, conversation or tenant. */
  wake(id: string): void {
    this.changes.emit(id)
  }

  wakeAll(): void {
    for (const id of this.changes.eventNames()) this.changes.emit(id)
  }

  /**
   * Reads the next stored entries from `from` on, at most 16 rows, so that a long turn needs little memory.
   */
  async read(turnId: string, from: number): Promise<readonly LogRun[]> {
    const { read } = await this.deps.storage.open()
    return readEvents(read, turnId, from, ROWS_PER_READ)
  }

  /**
   * Follows a turn from the entry `from` on; returns at its end or when the signal aborts.
   * @throws ServiceError if the turn failed before its first event
   */
  async *follow(
    turn: TurnRow,
    from: number,
    signal?: AbortSignal,
  ): AsyncGenerator<readonly LogRun[], void, void> {
    const { read } = await this.deps.storage.open()
    const leave = announceReader(this.deps, turn, this.changes)
    let next = from
    try {
      for (let current: TurnRow | undefined = turn; ; ) {
        // Must be checked before the events are read: a turn that has ended gets no more events, so the read
        // below is complete.
        const isEnded = current?.status !== 'in_progress'
        const change = this.waitForChange(turn.id, signal)
        try {
          for (let runs = await this.read(turn.id, next); runs.length > 0; ) {
            yield runs
            next += countEntries(runs)
            runs = await this.read(turn.id, next)
          }
          const failure = isEnded && next === 0 && current ? findFailure(current) : undefined
          if (failure !== undefined) throw failure
          if (isEnded || signal?.aborted) return
          await change.promise
        } finally {
          change.cancel()
        }
        current = await findTurn(read, turn.tenant, 'id', turn.id)
      }
    } finally {
      leave()
    }
  }

  /**
   * Returns a promise that resolves when the turn, conversation or tenant may have changed, after `mostMs`,
   * or when the signal aborts. `cancel` ends the wait.
   */
  waitForChange(id: string, signal: AbortSignal | undefined, mostMs = POLL_MS) {
    const { promise, resolve } = Promise.withResolvers<void>()
    const waiting = new AbortController()
    const cancel = () => {
      waiting.abort()
      this.changes.off(id, onChange)
      signal?.removeEventListener('abort', onChange)
    }
    const onChange = () => {
      cancel()
      resolve()
    }
    this.changes.on(id, onChange)
    signal?.addEventListener('abort', onChange)
    this.deps.clock.wait(mostMs, waiting.signal).then(onChange, () => {})
    if (signal?.aborted) onChange()
    return { promise, cancel }
  }
}
