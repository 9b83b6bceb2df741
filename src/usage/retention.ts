/** Tends what usage leaves behind: old calls are pruned, tokens held by calls that never ended are given back. */

import { sweepReservations } from './budget-enforcer.ts'
import type { Dependencies } from './dependencies.ts'
import { deleteCallsBefore } from './store.ts'
import { callIdsFrom } from './tracker.ts'

const TEND_EVERY_MS = 600_000
const DAY_MS = 86_400_000
/** Calls deleted at once, and the pause in which others may write. */
const PRUNED_AT_ONCE = 500
const PAUSE_MS = 20

type TendingDeps = Pick<Dependencies, 'config' | 'db' | 'clock' | 'log'>

/** Tends now and every ten minutes; the result ends that, and resolves when nothing is under way. */
export function startTending(deps: TendingDeps): () => Promise<void> {
  const stopping = new AbortController()
  let underWay = Promise.resolve()

  async function tend(): Promise<void> {
    try {
      await pruneCalls(deps, stopping.signal)
      await sweepReservations(deps)
    } catch (error) {
      if (!stopping.signal.aborted) deps.log.warn({ err: error }, 'old usage could not be pruned')
    }
  }
  function tendNext(): void {
    underWay = underWay.then(() => (stopping.signal.aborted ? undefined : tend()))
  }

  tendNext()
  const timer = setInterval(tendNext, TEND_EVERY_MS).unref()
  return () => {
    clearInterval(timer)
    stopping.abort()
    return underWay
  }
}

/**
 * Deletes calls older than the retention time, in batches small enough that nobody waits for them; answers how many. Their daily
 * sums stay.
 */
export async function pruneCalls(
  { config, db, clock }: Pick<Dependencies, 'config' | 'db' | 'clock'>,
  signal: AbortSignal,
): Promise<number> {
  const firstKept = callIdsFrom(clock.now() - config.usageRetentionDays * DAY_MS)
  let pruned = 0
  for (;;) {
    const batch = await deleteCallsBefore(db, firstKept, PRUNED_AT_ONCE)
    pruned += batch
    if (batch < PRUNED_AT_ONCE || signal.aborted) return pruned
    await clock.wait(PAUSE_MS, signal)
  }
}
