/** Clears away in small steps what nobody needs any more: what has expired, and bytes that belong to nothing. Security: 2.8. */
import type { Clock } from '../lib/clock.ts'
import type { BlobEntry } from './blobs.ts'
import type { Dependencies } from './dependencies.ts'

/** Rows and names looked at in one statement. */
const BATCH = 200
/** Most deletions of each kind in one run; the rest waits for the next. */
const MOST_PER_RUN = 1_000
/** Bytes without a row may belong to something whose row is about to be written; after so long they do not. */
const ORPHAN_AFTER_MS = 3_600_000
const LOOK_FOR_ORPHANS_EVERY_MS = 3_600_000
/** Two clocks that differ by more than this since the last run mean that one of them was set. */
const CLOCK_JUMP_MS = 60_000
const SWEEP_EVERY_MS = 60_000

export interface Sweeper {
  /** Does what is due. */
  run(): Promise<void>
}

/** What a sweeper does. */
export interface Sweeping {
  /** In every run. */
  sweepExpired(): Promise<void>
  /** In the first run, then once an hour; `keptBeforeMs` (Unix milliseconds) is when their bytes must have been left alone. */
  sweepOrphans(keptBeforeMs: number): Promise<void>
}

/** A sweeper that does nothing in a run before which the clock was set. */
export function createSweeper(clock: Clock, { sweepExpired, sweepOrphans }: Sweeping): Sweeper {
  let last = { wallMs: clock.now(), monotonicMs: clock.monotonic() }
  let nextOrphansAtMs = clock.monotonic()

  /** A clock that was set is believed from the next run on: by then somebody has set it right, or it is right. */
  function hasClockJumped(): boolean {
    const now = { wallMs: clock.now(), monotonicMs: clock.monotonic() }
    const driftMs = now.wallMs - last.wallMs - (now.monotonicMs - last.monotonicMs)
    last = now
    return Math.abs(driftMs) > CLOCK_JUMP_MS
  }

  async function run(): Promise<void> {
    if (hasClockJumped()) return
    await sweepExpired()
    if (clock.monotonic() < nextOrphansAtMs) return
    nextOrphansAtMs = clock.monotonic() + LOOK_FOR_ORPHANS_EVERY_MS
    await sweepOrphans(clock.now() - ORPHAN_AFTER_MS)
  }

  return { run }
}

/** Sweeps every minute; the function returned ends that, and waits for a run under way. */
export function startSweeper(
  sweeper: Sweeper,
  what: string,
  { log }: Pick<Dependencies, 'log'>,
): () => Promise<void> {
  let running = Promise.resolve()
  const onFailure = (error: unknown) => log.warn({ err: error }, `${what} could not be swept`)
  const timer = setInterval(() => {
    running = running.then(() => sweeper.run()).catch(onFailure)
  }, SWEEP_EVERY_MS).unref()
  return async () => {
    clearInterval(timer)
    await running
  }
}

/** Deletes as long as `deleteSome` finds as many as it may, but no more than a run may; it answers how many it has deleted. */
export async function deleteInBatches(deleteSome: (limit: number) => Promise<number>): Promise<void> {
  for (let deleted = 0; deleted < MOST_PER_RUN; deleted += BATCH) {
    if ((await deleteSome(BATCH)) < BATCH) return
  }
}

/** What tells orphans from the others, and removes them. */
export interface Orphanage {
  readonly keptBeforeMs: number
  /** Those of the names that something is made of. */
  listOwned(names: readonly string[]): Promise<ReadonlySet<string>>
  remove(name: string): Promise<void>
}

/** Removes the blobs that nothing is made of, as many as a run may. */
export async function deleteOrphans(blobs: AsyncIterable<BlobEntry>, orphanage: Orphanage): Promise<void> {
  let deleted = 0
  for await (const batch of inBatches(listOld(blobs, orphanage.keptBeforeMs))) {
    const owned = await orphanage.listOwned(batch)
    for (const name of batch) {
      if (owned.has(name)) continue
      if (deleted++ === MOST_PER_RUN) return
      await orphanage.remove(name)
    }
  }
}

async function* listOld(blobs: AsyncIterable<BlobEntry>, keptBeforeMs: number): AsyncIterable<string> {
  for await (const { name, keptAtMs } of blobs) if (keptAtMs < keptBeforeMs) yield name
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
