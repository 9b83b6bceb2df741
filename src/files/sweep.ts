/** Clears away what no file needs any more: files that have expired, and bytes that belong to none. */
import { type Deps, unixSeconds } from '../deps.ts'
import { deleteExpiredRows, listOwnedBlobs } from './store.ts'

/** Rows and names looked at in one statement. */
const BATCH = 200
/** Most deletions of each kind in one run; the rest waits for the next. Security: 2.8. */
const MOST_PER_RUN = 1_000
/** Bytes without a file may belong to an upload whose row is about to be written; after so long they do not. */
const ORPHAN_AFTER_MS = 3_600_000
const LOOK_FOR_ORPHANS_EVERY_MS = 3_600_000
/** Two clocks that differ by more than this since the last run mean that one of them was set. */
const CLOCK_JUMP_MS = 60_000
const SWEEP_EVERY_MS = 60_000

export interface FileSweeper {
  /** Does what is due. */
  run(): Promise<void>
}

type SweepDeps = Pick<Deps, 'db' | 'clock' | 'fileBlobs'>

/** A sweeper over one store. It looks for orphans, and for what never came to its end, on its first run, then once an hour. */
export function createFileSweeper(deps: SweepDeps): FileSweeper {
  const { clock } = deps
  let last = { wallMs: clock.now(), monotonicMs: clock.monotonic() }
  let nextOrphansAtMs = clock.monotonic()

  /** A clock that was set is believed from the next run on: by then somebody has set it right, or it is right. */
  function hasClockJumped(): boolean {
    const now = { wallMs: clock.now(), monotonicMs: clock.monotonic() }
    const driftMs = now.wallMs - last.wallMs - (now.monotonicMs - last.monotonicMs)
    last = now
    return Math.abs(driftMs) > CLOCK_JUMP_MS
  }

  async function sweep(): Promise<void> {
    if (hasClockJumped()) return
    await sweepExpired(deps)
    if (clock.monotonic() < nextOrphansAtMs) return
    nextOrphansAtMs = clock.monotonic() + LOOK_FOR_ORPHANS_EVERY_MS
    await sweepOrphans(deps)
    await deps.fileBlobs.discardAbandoned()
  }

  return { run: sweep }
}

/** Sweeps every minute; the function returned ends that, and waits for a run under way. */
export function startFileSweeper(deps: SweepDeps & Pick<Deps, 'log'>): () => Promise<void> {
  const sweeper = createFileSweeper(deps)
  let running = Promise.resolve()
  const onFailure = (error: unknown) => deps.log.warn({ err: error }, 'files could not be swept')
  const timer = setInterval(() => {
    running = running.then(() => sweeper.run()).catch(onFailure)
  }, SWEEP_EVERY_MS).unref()
  return async () => {
    clearInterval(timer)
    await running
  }
}

async function sweepExpired({ db, clock, fileBlobs }: SweepDeps): Promise<void> {
  for (let deleted = 0; deleted < MOST_PER_RUN; deleted += BATCH) {
    const blobs = await deleteExpiredRows(db, unixSeconds(clock), BATCH)
    for (const blob of blobs) await fileBlobs.delete(blob)
    if (blobs.length < BATCH) return
  }
}

async function sweepOrphans({ db, clock, fileBlobs }: SweepDeps): Promise<void> {
  let deleted = 0
  for await (const batch of inBatches(listOldBlobs(fileBlobs, clock.now() - ORPHAN_AFTER_MS))) {
    const owned = await listOwnedBlobs(db, batch)
    for (const blob of batch) {
      if (owned.has(blob)) continue
      if (deleted++ === MOST_PER_RUN) return
      await fileBlobs.delete(blob)
    }
  }
}

async function* listOldBlobs(blobs: Deps['fileBlobs'], keptBeforeMs: number): AsyncIterable<string> {
  for await (const { name, keptAtMs } of blobs.list()) if (keptAtMs < keptBeforeMs) yield name
}

async function* inBatches(names: AsyncIterable<string>): AsyncIterable<string[]> {
  let batch: string[] = []
  for await (const name of names) {
    batch.push(name)
    if (batch.length < BATCH) continue
    yield batch
    batch = []
  }
  if (batch.length > 0) yield batch
}
