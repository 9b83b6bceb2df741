/** Numbers that only the database knows: asked for by whoever scrapes, seldom, and never waited for long. */
import type { Clock } from '../lib/clock.ts'
import { within } from '../shared-state/within.ts'
import { type Looked, lookUp, type Meter } from './meters.ts'

/** Security: 2.12: as long as `/readyz` waits. */
const ANSWER_WITHIN_MS = 500
/** Several who scrape ask the database once. */
const KNOWN_FOR_MS = 5_000

/** What there is of something, in all processes together. */
export interface StoredCounts {
  readonly openUploads: number
  readonly waitingJobs: Readonly<Record<string, number>>
}

/** Meters over what `count` says; what it does not say in time is left out. */
export function createStoredMeters(
  count: () => Promise<StoredCounts>,
  clock: Pick<Clock, 'monotonic'>,
): Meter[] {
  let known: { readonly counts: StoredCounts; readonly sinceMs: number } | undefined
  let asking: Promise<StoredCounts> | undefined

  async function ask(): Promise<StoredCounts> {
    try {
      const counts = await count()
      known = { counts, sinceMs: clock.monotonic() }
      return counts
    } finally {
      asking = undefined
    }
  }

  function read(): Promise<StoredCounts> {
    if (known !== undefined && clock.monotonic() - known.sinceMs < KNOWN_FOR_MS)
      return Promise.resolve(known.counts)
    asking ??= ask()
    return within(ANSWER_WITHIN_MS, asking)
  }

  return [
    lookUp(
      { name: 'parley_uploads_open', help: 'Uploads that are not complete, in the whole installation.' },
      async () => [[{}, (await read()).openUploads]],
      { aggregator: 'max' },
    ),
    lookUp(
      { name: 'parley_jobs_waiting', help: 'Jobs nobody has taken yet, in the whole installation.' },
      async () => Object.entries((await read()).waitingJobs).map(([kind, jobs]): Looked => [{ kind }, jobs]),
      { aggregator: 'max' },
    ),
  ]
}
