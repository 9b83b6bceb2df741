/** Announces the readers of a turn to the process that runs it, which stops a turn without readers. */
import type { EventEmitter } from 'node:events'
import { unixSeconds } from '../../lib/clock.ts'
import type { Dependencies } from '../dependencies.ts'
import { markRead, type TurnRow } from '../store.ts'

/** Interval at which a reader announces itself, and looks for events of a turn that another process runs. */
export const POLL_MS = 2_000

/**
 * Announces a reader of another process's turn until the returned function is called. `changes` emits the
 * turn's id for each message about it from the bus.
 */
export function announceReader(
  { bus, clock, log, storage }: Pick<Dependencies, 'bus' | 'clock' | 'log' | 'storage'>,
  turn: TurnRow,
  changes: EventEmitter,
): () => void {
  if (!bus.reachesOthers || turn.status !== 'in_progress' || turn.on_disconnect !== 'cancel') return () => {}
  let hasHeard = false
  const onChange = () => {
    hasHeard = true
  }
  async function store(): Promise<void> {
    try {
      const { write } = await storage.open()
      await markRead(write, turn.id, unixSeconds(clock))
    } catch (error) {
      log.warn({ err: error }, 'could not record that a client is reading a turn')
    }
  }
  function announce(): void {
    bus.publish('read-turn', turn.id)
    // Also records it in the database if the bus has delivered nothing since the last announcement, because
    // the bus may be unavailable.
    if (!hasHeard) void store()
    hasHeard = false
  }
  changes.on(turn.id, onChange)
  const timer = setInterval(announce, POLL_MS).unref()
  announce()
  return () => {
    clearInterval(timer)
    changes.off(turn.id, onChange)
    // Announces the reader once more, so that the time without a reader is counted from now.
    announce()
  }
}
