/** Clears away in small steps what nobody needs any more: what has expired, and bytes that belong to nothing. Security: 2.8. */
import type { Clock } from '../lib/clock.ts'
import type { BlobEntry } from './blobs.ts'
import type { Dependencies } from './dependencies.ts'

/** Rows and names looked at in one statement. */
const BATCH = 200
/** Most deletions of each kind in one run; the rest waits for the next. */
const MAX_PER_RUN = 1_000
/** A run that finds more orphans than both of these deletes none of them. */
const MAX_ORPHANS = 100
const MAX_ORPHAN_SHARE = 0.05
/** Bytes without a row may belong to something whose row is about to be written; after so long they do not. */
const ORPHAN_AFTER_MS = 3_600_000
const ORPHAN_SWEEP_INTERVAL_MS = 3_600_000
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
  /** In the first run, then once an hour; `storedBeforeMs` (Unix milliseconds) is when their bytes must have been left alone. */
  sweepOrphans(storedBeforeMs: number): Promise<void>
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
    nextOrphansAtMs = clock.monotonic() + ORPHAN_SWEEP_INTERVAL_MS
    await sweepOrphans(orphanCutoff(clock))
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
  for (let deleted = 0; deleted < MAX_PER_RUN; deleted += BATCH) {
    if ((await deleteSome(BATCH)) < BATCH) return
  }
}

/** A place of blobs, with what tells orphans from the others. */
export interface BlobPlace {
  list(): AsyncIterable<BlobEntry>
  /** Those of the names that something is made of. */
  listOwned(names: readonly string[]): Promise<ReadonlySet<string>>
  remove(name: string): Promise<void>
}

/** What a look at all places of a store found. */
export interface OrphanReport {
  readonly objects: number
  readonly orphans: number
  readonly deleted: number
}

/** What a sweep of orphans needs besides the places. */
interface OrphanSweep extends Pick<Dependencies, 'log'> {
  readonly what: string
  readonly storedBeforeMs: number
}

/** Before this time (Unix milliseconds) a blob was stored if it has no row yet and will not get one. */
export function orphanCutoff(clock: Clock): number {
  return clock.now() - ORPHAN_AFTER_MS
}

/**
 * Removes the blobs that nothing is made of, as many as a run may. It removes none where they are more than crashes leave: then the
 * database is likely the wrong one, or an old one. See docs/adr/0040.
 */
export async function deleteOrphans(
  places: readonly BlobPlace[],
  { what, storedBeforeMs, log }: OrphanSweep,
): Promise<OrphanReport> {
  const found: [BlobPlace, string[]][] = []
  let collected = 0
  const counts = await countOrphans(places, storedBeforeMs, async (place, names) => {
    const some = names.slice(0, MAX_PER_RUN - collected)
    collected += some.length
    if (some.length > 0) found.push([place, some])
  })
  const limit = Math.max(MAX_ORPHANS, Math.floor(counts.objects * MAX_ORPHAN_SHARE))
  if (counts.orphans > limit) {
    log.warn(
      { what, ...counts, limit },
      'too many stored objects belong to no row, so none was deleted; check that the database and the storage belong together, then delete them with `parley store orphans --delete`',
    )
    return { ...counts, deleted: 0 }
  }
  for (const [place, names] of found) await removeUnowned(place, names)
  return { ...counts, deleted: collected }
}

/** Removes every orphan, because an operator has confirmed it. */
export async function deleteAllOrphans(
  places: readonly BlobPlace[],
  storedBeforeMs: number,
): Promise<OrphanReport> {
  const counts = await countOrphans(places, storedBeforeMs, removeUnowned)
  return { ...counts, deleted: counts.orphans }
}

/** Looks at every blob; `onOrphans` gets the orphans of each batch. */
export async function countOrphans(
  places: readonly BlobPlace[],
  storedBeforeMs: number,
  onOrphans: (place: BlobPlace, names: readonly string[]) => Promise<void> = async () => {},
): Promise<Omit<OrphanReport, 'deleted'>> {
  let [objects, orphans] = [0, 0]
  for (const place of places) {
    for await (const batch of inBatches(place.list())) {
      objects += batch.length
      const old = batch.filter(({ storedAtMs }) => storedAtMs < storedBeforeMs).map(({ name }) => name)
      const names = await listUnowned(place, old)
      orphans += names.length
      if (names.length > 0) await onOrphans(place, names)
    }
  }
  return { objects, orphans }
}

async function listUnowned(place: BlobPlace, names: readonly string[]): Promise<string[]> {
  if (names.length === 0) return []
  const owned = await place.listOwned(names)
  return names.filter((name) => !owned.has(name))
}

/** Asks for the rows again: to look at a large store takes a while. */
async function removeUnowned(place: BlobPlace, names: readonly string[]): Promise<void> {
  for (const name of await listUnowned(place, names)) await place.remove(name)
}

async function* inBatches<T>(items: AsyncIterable<T>): AsyncIterable<T[]> {
  let batch: T[] = []
  for await (const item of items) {
    batch.push(item)
    if (batch.length < BATCH) continue
    yield batch
    batch = []
  }
  if (batch.length > 0) yield batch
}
