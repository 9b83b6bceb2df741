/** Deletes calls after the retention period. */

import { createDeletionTime } from '../lib/clock.ts'
import { firstCallIdAt } from './call-ids.ts'
import type { Dependencies } from './dependencies.ts'
import { deleteCallsBefore } from './store.ts'

const MAINTAIN_EVERY_MS = 600_000
const DAY_MS = 86_400_000
const PRUNE_BATCH = 500
/** Milliseconds between batches, so that other statements can run. */
const PAUSE_MS = 20

/** Runs now and every ten minutes; the returned function stops it and waits for the current run. */
export function startUsageMaintenance(
  deps: Pick<Dependencies, 'config' | 'db' | 'clock' | 'log'>,
): () => Promise<void> {
  const stopping = new AbortController()
  const readDeletionTime = createDeletionTime(deps.clock, (seconds) =>
    deps.log.warn(
      { seconds },
      'the clock jumped ahead; usage that is old only because of the jump will not be deleted for a day',
    ),
  )
  let running = Promise.resolve()

  async function maintain(): Promise<void> {
    if (stopping.signal.aborted) return
    try {
      await pruneCalls(deps, stopping.signal, readDeletionTime())
    } catch (error) {
      if (!stopping.signal.aborted) deps.log.warn({ err: error }, 'could not delete old usage')
    }
  }
  function runNext(): void {
    running = running.then(maintain)
  }

  runNext()
  const timer = setInterval(runNext, MAINTAIN_EVERY_MS).unref()
  return () => {
    clearInterval(timer)
    stopping.abort()
    return running
  }
}

/**
 * Deletes calls older than the retention period in small batches, but not their daily totals; returns the
 * number of deleted calls.
 */
export async function pruneCalls(
  { config, db, clock }: Pick<Dependencies, 'config' | 'db' | 'clock'>,
  signal: AbortSignal,
  nowMs: number = clock.now(),
): Promise<number> {
  const firstKept = firstCallIdAt(nowMs - config.usageRetentionDays * DAY_MS)
  let pruned = 0
  for (;;) {
    const batch = await deleteCallsBefore(db, firstKept, PRUNE_BATCH)
    pruned += batch
    if (batch < PRUNE_BATCH || signal.aborted) return pruned
    await clock.wait(PAUSE_MS, signal)
  }
}
