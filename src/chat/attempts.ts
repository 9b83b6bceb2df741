/** Tries a backend again when that may help, within one budget and with a jittered pause. Decision: 7 (Retry). */
import type { Clock, Random } from '../deps.ts'
import { BackendFailure } from './backend.ts'
import { isRetryable } from './failures.ts'

/** Pauses grow from the first to the last, in milliseconds. Security: 2.5 (retries). */
const FIRST_PAUSE_MS = 250
const LONGEST_PAUSE_MS = 4_000
/** A backend that wants to rest longer is not asked again. */
const LONGEST_RETRY_AFTER_SECONDS = 20

/** What one request of a caller may cost: retries are shared by all its rounds. */
export interface AttemptBudget {
  /** Calls of backends so far. */
  attempts: number
  retriesLeft: number
}

export interface AttemptDeps {
  readonly clock: Pick<Clock, 'wait'>
  readonly random: Random
}

/**
 * Runs a call until it succeeds, fails for good, or the budget is used up.
 * @throws BackendFailure the last one; whatever else the call throws, at once.
 */
export async function withAttempts<T>(
  { clock, random }: AttemptDeps,
  budget: AttemptBudget,
  signal: AbortSignal,
  call: () => Promise<T>,
): Promise<T> {
  for (let retries = 0; ; retries++) {
    budget.attempts += 1
    try {
      return await call()
    } catch (thrown) {
      if (signal.aborted || budget.retriesLeft === 0 || !(thrown instanceof BackendFailure)) throw thrown
      const pauseMs = pauseBeforeRetry(thrown, retries, random)
      if (pauseMs === undefined) throw thrown
      budget.retriesLeft -= 1
      await clock.wait(pauseMs, signal).catch(() => {})
      signal.throwIfAborted()
    }
  }
}

/** Milliseconds to wait after so many retries; undefined when another makes no sense. */
export function pauseBeforeRetry(
  failure: BackendFailure,
  retries: number,
  random: Random,
): number | undefined {
  if (!isRetryable(failure)) return undefined
  const { retryAfterSeconds } = failure
  if (retryAfterSeconds !== undefined) {
    return retryAfterSeconds <= LONGEST_RETRY_AFTER_SECONDS ? retryAfterSeconds * 1000 : undefined
  }
  const ceilingMs = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** retries)
  return ceilingMs * ((random(1)[0] as number) / 256)
}
